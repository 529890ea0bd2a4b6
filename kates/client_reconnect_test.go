package kates_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// rotated is what the tests of Reconnect watch: typed, untyped, and metadata.
type rotated struct {
	ConfigMaps []*kates.ConfigMap
	Untyped    []*kates.Unstructured          `kates:"configmaps"`
	Secrets    []*kates.PartialObjectMetadata `kates:"secrets"`
	Deltas     []*kates.Delta
}

// connected returns a client of a site.
func connected(t *testing.T, config *rest.Config, options ...kates.Option) *kates.Client {
	t.Helper()
	quiet := kates.WithLogger(slog.New(slog.DiscardHandler))
	client, err := kates.NewClientFromRESTConfig(config, append([]kates.Option{quiet, kates.WithInterval(0)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// started waits for the first snapshot.
func started[S any](t *testing.T, client *kates.Client) (*kates.Snapshots[S], *S) {
	t.Helper()
	snapshots, err := kates.Watch[S](t.Context(), client)
	require.NoError(t, err)
	snap := new(S)
	for complete := false; !complete; {
		<-snapshots.Changed()
		complete, err = snapshots.Update(t.Context(), snap)
		require.NoError(t, err)
	}
	return snapshots, snap
}

// until updates until a condition holds.
func until[S any](t *testing.T, snapshots *kates.Snapshots[S], snap *S, holds func() bool) {
	t.Helper()
	for !holds() {
		<-snapshots.Changed()
		_, err := snapshots.Update(t.Context(), snap)
		require.NoError(t, err)
	}
}

// follower looks at each snapshot: it is complete, and no object goes back.
type numbers map[string]int

func (n numbers) look(t *testing.T, snap *rotated, objects int) {
	t.Helper()
	require.Len(t, snap.ConfigMaps, objects, "complete")
	require.Len(t, snap.Untyped, objects)
	require.Len(t, snap.Secrets, objects)
	see := func(kind string, o kates.Object) {
		key, now := kind+o.GetName(), numberOf(t, o)
		require.GreaterOrEqual(t, now, n[key], "%s goes back", key)
		n[key] = now
	}
	for i := range objects {
		see("typed ", snap.ConfigMaps[i])
		see("untyped ", snap.Untyped[i])
		see("secret ", snap.Secrets[i])
	}
	for _, d := range snap.Deltas {
		require.Equal(t, kates.ObjectUpdate, d.DeltaType, "%s %s: nothing comes or goes", d.Kind, d.Name)
	}
}

func TestG4G5CredentialsAreExchangedUnderLoadWithoutAGapOrASecondList(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			const objects, rotations = 20, 8
			s := newSite("uid-1")
			server := s.serve(t, http2)
			for i := range objects {
				s.put("configmaps", fmt.Sprint("c", i), thing("ConfigMap", fmt.Sprint("c", i), 0))
				s.put("secrets", fmt.Sprint("s", i), thing("Secret", fmt.Sprint("s", i), 0))
			}
			client := connected(t, with(server, "token-0"))
			snapshots, snap := started[rotated](t, client)
			s.watched(t) // a stream that has listed, and does not watch yet, asks for the version after a move
			snap.Deltas = nil
			lists := s.count("", "list")

			ctx, stop := context.WithCancel(t.Context())
			var others sync.WaitGroup
			defer others.Wait()
			defer stop()
			others.Go(func() { // another program writes all the time
				for n := 1; ctx.Err() == nil; n++ {
					i := 1 + n%(objects-1)
					s.put("configmaps", fmt.Sprint("c", i), thing("ConfigMap", fmt.Sprint("c", i), n))
					s.put("secrets", fmt.Sprint("s", i), thing("Secret", fmt.Sprint("s", i), n))
					<-time.After(100 * time.Microsecond) // a client that decodes is slower than this writer
				}
			})
			var done atomic.Bool
			others.Go(func() {
				defer done.Store(true)
				for i := 1; i <= rotations; i++ {
					if !assert.NoError(t, client.Reconnect(t.Context(), with(server, fmt.Sprint("token-", i)))) {
						return
					}
					s.revoke(fmt.Sprint("token-", i-1)) // what it still has open ends at once
				}
			})
			seen := numbers{}
			for own := 1; !done.Load() || own < 2*rotations; own++ {
				require.NoError(t, writeThrough(client, t.Context(), own))
				_, err := snapshots.Update(t.Context(), snap)
				require.NoError(t, err)
				seen.look(t, snap, objects)
				require.Equal(t, own, numberOf(t, snap.ConfigMaps[0]), "G4: before, during and after")
			}
			stop()
			others.Wait()
			last := fmt.Sprint("token-", rotations)
			require.NoError(t, client.Sync(t.Context()))
			assert.Equal(t, lists, s.count("", "list")-3, "no list but those of Sync")
			assert.Zero(t, s.count("", "probe"))
			assert.GreaterOrEqual(t, s.count(last, "watch"), 3, "a watch for each stream")
			for _, q := range snapshots.Status().Queries {
				assert.Zero(t, q.Restarts)
				assert.Equal(t, kates.StateSynced, q.State)
			}
			s.mu.Lock()
			assert.Zero(t, s.gaps, "there is a watch at every moment")
			s.mu.Unlock()
		})
	}
}

// writeThrough sets the number of the first config map. A token may be revoked while a request
// with it is under way: then it is sent again.
func writeThrough(client *kates.Client, ctx context.Context, n int) error {
	for {
		err := client.Update(ctx, thing("ConfigMap", "c0", n), nil)
		if !apierrors.IsUnauthorized(err) {
			return err
		}
	}
}

// kept checks that the client goes on over its old connection, as if nothing had been tried.
func kept(t *testing.T, s *site, client *kates.Client, snapshots *kates.Snapshots[rotated], snap *rotated, token string, number int) {
	t.Helper()
	before := s.count(token, "PUT")
	require.NoError(t, client.Update(t.Context(), thing("ConfigMap", "c0", number), nil))
	assert.Equal(t, before+1, s.count(token, "PUT"))
	s.put("secrets", "s0", thing("Secret", "s0", number))
	until(t, snapshots, snap, func() bool {
		return numberOf(t, snap.Secrets[0]) == number && numberOf(t, snap.ConfigMaps[0]) == number
	})
	assert.Equal(t, 3, s.count("", "list"))
	assert.Equal(t, kates.StateSynced, snapshots.Status().Queries[0].State)
}

func TestAConnectionThatDoesNotWorkLeavesTheOldOneInUse(t *testing.T) {
	s := newSite("uid-1")
	server, second, third := s.serve(t, true), newSite("uid-2").serve(t, true), s.serve(t, false)
	s.put("configmaps", "c0", thing("ConfigMap", "c0", 0))
	s.put("secrets", "s0", thing("Secret", "s0", 0))
	s.rule(func(token string, r *http.Request) int {
		secrets := strings.Contains(r.URL.Path, "secrets") && r.URL.Query().Get("watch") != ""
		switch {
		case token == "bad":
			return http.StatusUnauthorized
		case token == "blind" && strings.Contains(r.URL.Path, "kube-system"), token == "poor" && secrets:
			return http.StatusForbidden
		case token == "odd" && secrets:
			return http.StatusNotFound
		}
		return 0
	})
	client := connected(t, with(server, "old"))
	snapshots, snap := started[rotated](t, client)
	gone := third.URL
	third.Close()
	garbage := with(server, "new")
	garbage.CAData = []byte("no certificate")
	number := 0
	for name, c := range map[string]struct {
		config *rest.Config
		says   []string
		is     func(error) bool
	}{
		"no configuration":         {nil, []string{"reconnect: it needs a rest.Config"}, nil},
		"a CA that does not parse": {garbage, []string{"reconnect: make an HTTP client"}, nil},
		"a bad token":              {with(server, "bad"), []string{"reconnect: read the UID of namespace kube-system", "the test refuses"}, apierrors.IsUnauthorized},
		"another cluster": {with(second, "new"), []string{"uid-1", "uid-2"}, func(err error) bool {
			return errors.Is(err, kates.ErrOtherCluster)
		}},
		"a cluster that is not known": {with(server, "blind"), []string{"kube-system", "the test refuses"}, apierrors.IsForbidden},
		"a kind that is refused":      {with(server, "poor"), []string{"reconnect: watch v1/secrets: ", "the test refuses"}, apierrors.IsForbidden},
		"a kind that is not there":    {with(server, "odd"), []string{"reconnect: watch v1/secrets: ", "the test refuses"}, apierrors.IsNotFound},
		"an address where nobody is":  {&rest.Config{Host: gone}, []string{"cannot reach the API server at " + gone + ": "}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := client.Reconnect(t.Context(), c.config)
			for _, says := range c.says {
				assert.ErrorContains(t, err, says)
			}
			assert.True(t, c.is == nil || c.is(err), "%v", err)
			number++
			kept(t, s, client, snapshots, snap, "old", number)
		})
	}
	s.watched(t) // the watches of the trial have ended
}

func TestWhatIsRefusedAlreadyIsNoReasonToStayAndHealsAtOnce(t *testing.T) {
	s := newSite("uid-1")
	server := s.serve(t, true)
	s.put("configmaps", "c0", thing("ConfigMap", "c0", 0))
	s.put("secrets", "s0", thing("Secret", "s0", 0))
	refused := func(tokens ...string) {
		s.rule(func(token string, r *http.Request) int {
			for _, of := range tokens {
				if token == of && (strings.Contains(r.URL.Path, "secrets") || strings.Contains(r.URL.Path, "kube-system")) {
					return http.StatusForbidden
				}
			}
			return 0
		})
	}
	refused("old", "new")
	client := connected(t, with(server, "old"))
	acc, err := client.Watch(t.Context(), kates.Query{Name: "ConfigMaps", Kind: "configmaps"},
		kates.Query{Name: "Secrets", Kind: "secrets", Optional: true})
	require.NoError(t, err)
	<-acc.Changed()
	var snap rotated
	_, err = acc.Update(t.Context(), &snap)
	require.NoError(t, err)
	require.Nil(t, snap.Secrets)
	require.NoError(t, client.Reconnect(t.Context(), with(server, "new")), "neither may say which cluster it is, nor read secrets")
	require.NoError(t, client.Reconnect(t.Context(), with(server, "rich")))
	for len(snap.Secrets) == 0 {
		<-acc.Changed()
		_, err = acc.Update(t.Context(), &snap)
		require.NoError(t, err)
	}
}

func TestACredentialThatIsRefusedAlreadyIsReplacedWithoutAPauseOrAList(t *testing.T) {
	s := newSite("uid-1")
	server := s.serve(t, true)
	s.put("configmaps", "c0", thing("ConfigMap", "c0", 0))
	s.put("secrets", "s0", thing("Secret", "s0", 0))
	client := connected(t, with(server, "old"), kates.Tuning{KindPoll: time.Hour})
	snapshots, snap := started[rotated](t, client)
	_, err := client.ClusterUID(t.Context())
	require.NoError(t, err)
	s.revoke("old")
	retrying := func() bool {
		for _, q := range snapshots.Status().Queries {
			if q.State != kates.StateRetrying || !strings.Contains(q.Error, "refuses") {
				return false
			}
		}
		return true
	}
	require.Eventually(t, retrying, time.Minute, time.Millisecond)
	s.put("secrets", "s0", thing("Secret", "s0", 1))
	require.NoError(t, client.Reconnect(t.Context(), with(server, "new")))
	until(t, snapshots, snap, func() bool { return numberOf(t, snap.Secrets[0]) == 1 })
	assert.Equal(t, 3, s.count("", "list"))
	for _, q := range snapshots.Status().Queries {
		assert.Zero(t, q.Restarts)
	}

	other := connected(t, with(server, "new"))
	s.revoke("new")
	err = other.Reconnect(t.Context(), with(server, "newer"))
	require.ErrorContains(t, err, "ask for ClusterUID in good time")
	assert.True(t, apierrors.IsUnauthorized(err))
}

func TestTheSameClusterIsReachedAtAnotherAddressAndErrorsNameIt(t *testing.T) {
	s := newSite("uid-1")
	first, second := s.serve(t, false), s.serve(t, true)
	s.put("configmaps", "c0", thing("ConfigMap", "c0", 0))
	s.put("secrets", "s0", thing("Secret", "s0", 0))
	client := connected(t, with(first, "token"))
	held := client.DynamicInterface().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("ns")
	snapshots, snap := started[rotated](t, client)
	config := with(second, "token")
	config.Host += "/clusters/one"
	require.NoError(t, client.Reconnect(t.Context(), config))
	first.CloseClientConnections()
	first.Close()
	kept(t, s, client, snapshots, snap, "token", 1)
	_, err := held.Get(t.Context(), "c0", metav1.GetOptions{})
	require.NoError(t, err, "a client that was returned before")
	require.NoError(t, client.InvalidateCache())
	_, err = client.ServerResources()
	require.NoError(t, err)
	second.CloseClientConnections()
	second.Close()
	_, _ = client.ClusterUID(t.Context()) // it may yet find a connection that is about to be closed
	_, err = client.ClusterUID(t.Context())
	assert.ErrorContains(t, err, "cannot reach the API server at "+second.URL)
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(snapshots.Status().Err()), strings.TrimPrefix(second.URL, "https://"))
	}, time.Minute, time.Millisecond)
}

func TestEveryLaterRequestHasTheNewCredential(t *testing.T) {
	s := newSite("uid-1")
	server := s.serve(t, true)
	s.put("configmaps", "c0", thing("ConfigMap", "c0", 0))
	client := connected(t, with(server, "old"))
	held := client.DynamicInterface().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("ns")
	require.NoError(t, client.Reconnect(t.Context(), with(server, "new")))
	all := []string{"cluster", "discovery", "list", "probe", "watch", "GET", "PUT", "POST", "DELETE"}
	before := s.count("old", all...)
	require.NoError(t, client.Create(t.Context(), thing("ConfigMap", "c1", 0), nil))
	require.NoError(t, client.Get(t.Context(), thing("ConfigMap", "c1", 0), nil))
	require.NoError(t, client.Update(t.Context(), thing("ConfigMap", "c1", 1), nil))
	require.NoError(t, client.Delete(t.Context(), thing("ConfigMap", "c1", 0), nil))
	require.NoError(t, client.List(t.Context(), kates.Query{Kind: "configmaps"}, &[]*kates.ConfigMap{}))
	_, err := held.Get(t.Context(), "c0", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = client.ClusterUID(t.Context())
	require.NoError(t, err)
	started[rotated](t, client)
	require.Eventually(t, func() bool { return s.count("", "watch") > 0 }, time.Minute, time.Millisecond)
	assert.Equal(t, before, s.count("old", all...))
	for _, what := range []string{"cluster", "discovery", "list", "watch", "GET", "PUT", "POST", "DELETE"} {
		assert.NotZero(t, s.count("new", what), what)
	}
}

func TestAClientOfADynamicInterfaceHasNoConnectionToExchange(t *testing.T) {
	err := katestest.NewClient(t).Reconnect(t.Context(), &rest.Config{Host: "http://server.invalid"})
	assert.ErrorContains(t, err, "made of a dynamic.Interface")
	_, err = katestest.NewClient(t).ClusterUID(t.Context())
	assert.ErrorContains(t, err, "read the UID of namespace kube-system")
}
