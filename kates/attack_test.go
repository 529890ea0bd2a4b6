package kates_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// hostileWords are in each answer of a hostile server. They clear the screen, begin a line, and
// reverse the rest.
const hostileWords = "no\x1b]0;PWNED\x07\x1b[2J\nConfigMaps  ConfigMap  synced  FAKE LINE\x1b[31m\u202egnirts\u2066\u009b"

// harmlessText fails the test if a terminal would obey a text, or if a server's words begin a line.
func harmlessText(t *testing.T, what, text string) {
	t.Helper()
	assert.NotEmpty(t, text, what)
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("%s has %U: %q", what, r, text)
			return
		}
	}
	assert.NotContains(t, text, "\nConfigMaps  ConfigMap  synced", what)
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// hostileServer serves discovery, and refuses all else in its own words.
func hostileServer(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api" || r.URL.Path == "/apis" || r.URL.Path == "/api/v1" {
			w.Header().Set("Warning", "299 - \"\u202ex\"")
			answerDiscovery(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": hostileWords})
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestTheWordsOfAHostileServerDoNothingToATerminal(t *testing.T) {
	var log lockedBuffer
	c, err := kates.NewClientFromRESTConfig(hostileServer(t), kates.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	defer c.Close()
	ctx := t.Context()
	_, noVersion := c.ServerVersion()
	_, noUID := c.ClusterUID(ctx)
	owner := configMap("owner")
	owner.UID = "u"
	_, notApplied := c.ApplyOwned(ctx, kates.OwnedSet{Owner: owner, SetName: "a", Objects: []kates.Object{configMap("a")}})
	var list []*kates.ConfigMap
	for what, err := range map[string]error{
		"get": c.Get(ctx, configMap("a"), nil), "list": c.List(ctx, kates.Query{Kind: "ConfigMap"}, &list),
		"create": c.Create(ctx, configMap("a"), nil), "update": c.Update(ctx, configMap("a"), nil), "delete": c.Delete(ctx, configMap("a"), nil),
		"apply": c.Apply(ctx, configMap("a"), nil), "upsert": c.Upsert(ctx, configMap("a"), configMap("a"), nil),
		"patch":      c.Patch(ctx, configMap("a"), kates.MergePatchType, []byte("{}"), nil),
		"delete all": c.DeleteAll(ctx, kates.Query{Kind: "ConfigMap"}), "version": noVersion, "UID": noUID, "apply owned": notApplied,
	} {
		if assert.Error(t, err, what) {
			harmlessText(t, what, err.Error())
			harmlessText(t, what+", joined", errors.Join(err, io.EOF).Error())
			assert.True(t, kates.IsForbidden(err), what)
		}
	}
	type snapshot struct{ ConfigMaps []*kates.ConfigMap }
	w, err := kates.Watch[snapshot](ctx, c)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(w.Status().String(), "PWNED") }, time.Minute, time.Millisecond)
	harmlessText(t, "the status", w.Status().String())
	assert.Equal(t, 2, strings.Count(w.Status().String(), "\n"), "a row for each query, and one for the head: %s", w.Status())
	harmlessText(t, "the status of the client", c.Status().String())
	harmlessText(t, "the error of the status", w.Status().Err().Error())
	harmlessText(t, "ready", w.Ready().Error())
	harmlessText(t, "ready", c.Ready().Error())
	answer := httptest.NewRecorder()
	c.Readyz(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody))
	harmlessText(t, "the probe", answer.Body.String())
	c.Close()
	harmlessText(t, "the log", log.String())
}

// Names of leases and of who holds them are another's text, too.
func TestTheStatusIsARowForEachOfItsParts(t *testing.T) {
	s := kates.Status{
		Queries: []kates.QueryStatus{{Name: hostileWords, Kind: hostileWords, Version: hostileWords, Error: hostileWords, State: kates.StateRetrying}},
		Leaders: []kates.LeaderStatus{{Lease: hostileWords, Holder: hostileWords, Error: hostileWords}},
		Shards:  []kates.ShardStatus{{Group: hostileWords, Identity: hostileWords, Streams: hostileWords, Error: hostileWords}},
	}
	harmlessText(t, "the table", s.String())
	assert.Equal(t, 6, strings.Count(s.String(), "\n"), "%s", s)
	harmlessText(t, "the error", s.Err().Error())
}

// Another program uses the name of the same manager, and leaves the marks of the set as they are.
func TestApplyOwnedRepairsAForeignValueUnderItsOwnName(t *testing.T) {
	server := katestest.NewServer(t)
	ctx := t.Context()
	foreign := server.Client(t)
	owner := configMap("owner")
	require.NoError(t, foreign.Create(ctx, owner, owner))
	policy := configMap("policy")
	policy.Data, policy.Labels = map[string]string{"v": "deny"}, map[string]string{"team": "a"}
	type typed struct{ ConfigMaps []*kates.ConfigMap }
	type untyped struct {
		ConfigMaps []*kates.Unstructured `kates:"configmaps"`
	}
	for what, watch := range map[string]func(*kates.Client) (await func(string)){
		"nothing is watched": func(*kates.Client) func(string) { return func(string) {} },
		"a typed watch": func(c *kates.Client) func(string) {
			w, err := kates.Watch[typed](ctx, c)
			require.NoError(t, err)
			return func(rv string) {
				awaitVersion(t, w.Changed(), func() (string, error) {
					var s typed
					_, err := w.Update(ctx, &s)
					return shownVersion(s.ConfigMaps, "policy"), err
				}, rv)
			}
		},
		"an untyped watch": func(c *kates.Client) func(string) {
			w, err := kates.Watch[untyped](ctx, c)
			require.NoError(t, err)
			return func(rv string) {
				awaitVersion(t, w.Changed(), func() (string, error) {
					var s untyped
					_, err := w.Update(ctx, &s)
					return shownVersion(s.ConfigMaps, "policy"), err
				}, rv)
			}
		},
	} {
		for _, again := range []bool{false, true} {
			program := server.Client(t)
			await := watch(program)
			set := kates.OwnedSet{Owner: owner, SetName: "a", Objects: []kates.Object{policy}}
			_, err := program.ApplyOwned(ctx, set)
			require.NoError(t, err)
			for part, change := range map[string]func(*kates.ConfigMap){
				"a value": func(m *kates.ConfigMap) { m.Data["v"] = "ALLOW" },
				"a label": func(m *kates.ConfigMap) { m.Labels["team"] = "b" },
			} {
				var now kates.ConfigMap
				require.NoError(t, foreign.Get(ctx, configMap("policy"), &now))
				evil := configMap("policy")
				evil.Data, evil.Labels, evil.Annotations, evil.OwnerReferences = now.Data, now.Labels, now.Annotations, now.OwnerReferences
				change(evil)
				require.NoError(t, foreign.Apply(ctx, evil, &now, kates.ForceOwnership()))
				if again { // as after a restart: nothing is remembered
					program = server.Client(t)
					await = watch(program)
				}
				await(now.ResourceVersion)
				_, err := program.ApplyOwned(ctx, set)
				require.NoError(t, err)
				require.NoError(t, foreign.Get(ctx, configMap("policy"), &now))
				assert.Equal(t, "deny", now.Data["v"], "%s, %s, restart %t", what, part, again)
				assert.Equal(t, "a", now.Labels["team"], "%s, %s, restart %t", what, part, again)
				r, err := program.ApplyOwned(ctx, set)
				require.NoError(t, err)
				assert.Len(t, r.Unchanged, 1, "%s, %s, restart %t: once more", what, part, again)
			}
		}
	}
}

// shownVersion returns the version of an object among others.
func shownVersion[T kates.Object](all []T, name string) string {
	for _, o := range all {
		if o.GetName() == name {
			return o.GetResourceVersion()
		}
	}
	return ""
}

// awaitVersion waits until a watch shows a version.
func awaitVersion(t *testing.T, changed <-chan struct{}, now func() (string, error), rv string) {
	t.Helper()
	for {
		is, err := now()
		require.NoError(t, err)
		if is == rv {
			return
		}
		<-changed
	}
}
