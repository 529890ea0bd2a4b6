package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// inTeam is what a replica has of a namespace.
type inTeam struct{ Inputs []*corev1.ConfigMap }

// sharers are replicas that divide namespaces.
type sharers struct {
	t *testing.T
	*audited
	admin *kates.Client

	mu   sync.Mutex
	seen map[string]map[string]string // what the last call for a namespace was handed
}

// sharer is one of them. Its requests can be held up.
type sharer struct {
	name   string
	client *kates.Client
	end    func()
	ended  chan error

	next   http.RoundTripper
	mu     sync.Mutex
	frozen chan struct{} // closed when requests go on; nil: they do
}

// RoundTrip holds a request up while the replica is frozen, whatever its context says.
func (s *sharer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	frozen := s.frozen
	s.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	return s.next.RoundTrip(req)
}

// WrappedRoundTripper lets others find the transport beneath.
func (s *sharer) WrappedRoundTripper() http.RoundTripper { return s.next }

func (s *sharer) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = make(chan struct{})
}

func (s *sharer) thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.frozen)
	s.frozen = nil
}

// newSharers starts a cluster with inputs in some namespaces, and there the objects that calls
// write at their beginning and at their end.
func newSharers(t *testing.T, flags ...string) *sharers {
	t.Helper()
	s := &sharers{t: t, audited: newAudited(t, flags...), seen: map[string]map[string]string{}}
	var err error
	s.admin, err = kates.NewClientFromRESTConfig(s.Config)
	require.NoError(t, err)
	t.Cleanup(s.admin.Close)
	for _, team := range shardedNamespaces {
		require.NoError(t, s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, nil))
		for _, name := range []string{"begin", "end"} {
			require.NoError(t, s.admin.Create(t.Context(), teamMap(team, name, nil), nil))
		}
		for i := range 3 {
			s.put(team, fmt.Sprint("input-", i), "1")
		}
	}
	return s
}

func teamMap(team, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, Labels: labels},
	}
}

func (s *sharers) put(team, name, value string) {
	o := teamMap(team, name, map[string]string{"input": ""})
	o.Data = map[string]string{"value": value}
	require.NoError(s.t, s.admin.Upsert(s.t.Context(), o, o, nil))
}

// join starts a replica.
func (s *sharers) join(name string) *sharer {
	r := &sharer{name: name, ended: make(chan error, 1)}
	config, err := s.AddUser(name, "system:masters")
	require.NoError(s.t, err)
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r.next = next
		return r
	})
	r.client, err = kates.NewClientFromRESTConfig(config, kates.WithInterval(0))
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	r.end = cancel
	go func() {
		r.ended <- kates.RunEach(ctx, r.client, func(ctx context.Context, team string, in *inTeam) error {
			return s.work(ctx, r, team, in)
		}, kates.Query{Name: "Inputs", LabelSelector: "input", Key: kates.ByNamespace}, kates.WithWorkers(4),
			kates.WithBackoff(10*time.Millisecond, 100*time.Millisecond), kates.Sharding{
				Namespace: "default", Name: "sharers", Identity: name,
				LeaseDuration: 2 * time.Second, RenewDeadline: 1500 * time.Millisecond, RetryPeriod: 200 * time.Millisecond,
			})
	}()
	return r
}

func (s *sharers) stop(r *sharer) {
	r.end()
	require.NoError(s.t, <-r.ended)
	r.client.Close()
}

// work writes at the beginning of a call, and at its end.
func (s *sharers) work(ctx context.Context, r *sharer, team string, in *inTeam) error {
	content := map[string]string{}
	for _, o := range in.Inputs {
		content[o.Name] = o.Data["value"]
	}
	for _, name := range []string{"begin", "end"} {
		patch, err := json.Marshal(map[string]any{"data": map[string]any{"by": r.name, "seen": fmt.Sprint(content)}})
		if err != nil {
			return err
		}
		if err := r.client.Patch(ctx, teamMap(team, name, nil), kates.MergePatchType, patch, nil); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[team] = content
	return nil
}

// rest waits until each namespace has one owner among the replicas, which hold no more than their
// parts, and until the last call for each was handed what there is.
func (s *sharers) rest(shards bool, replicas ...*sharer) {
	s.t.Helper()
	want := map[string]string{}
	for i := range 3 {
		var o *corev1.ConfigMap
		require.NoError(s.t, s.admin.Get(s.t.Context(), teamMap(shardedNamespaces[0], fmt.Sprint("input-", i), nil), &o))
		want[o.Name] = o.Data["value"]
	}
	require.EventuallyWithT(s.t, func(c *assert.CollectT) {
		keys, objects := 0, 0
		for _, r := range replicas {
			status := r.client.Status()
			if !assert.Len(c, status.Shards, 1) {
				return
			}
			m := status.Shards[0]
			assert.Equal(c, len(replicas), m.Members)
			assert.Positive(c, m.Ranges)
			assert.Equal(c, !shards, strings.Contains(m.Streams, "the server does not shard"), m.Streams)
			keys += m.Keys
			for _, q := range status.Queries {
				if q.Name == "Inputs" {
					objects += q.Objects
				}
			}
		}
		assert.Equal(c, len(shardedNamespaces), keys, "each namespace has one owner")
		assert.Equal(c, 3*len(shardedNamespaces), objects, "each object is held once")
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, team := range shardedNamespaces {
			assert.Equal(c, want, s.seen[team], team)
		}
	}, patience, 20*time.Millisecond)
}

// putAll changes an input of each namespace.
func (s *sharers) putAll(value string) {
	for _, team := range shardedNamespaces {
		s.put(team, "input-1", value)
	}
}

// TestNoKeyIsInTwoHandsAndNoneWithoutAnOwnerWhileShardedReplicasComeGoAndFreeze: on a server that
// shards, and on one that does not. The API server's audit log says that no call for a namespace
// has begun while another one was under way.
func TestNoKeyIsInTwoHandsAndNoneWithoutAnOwnerWhileShardedReplicasComeGoAndFreeze(t *testing.T) {
	t.Parallel()
	for gate, flags := range map[string][]string{"on": {"feature-gates=ShardedListAndWatch=true"}, "off": nil} {
		t.Run("gate "+gate, func(t *testing.T) {
			t.Parallel()
			s, shards := newSharers(t, flags...), gate == "on"
			a := s.join("replica-a")
			require.Eventually(t, func() bool {
				status := a.client.Status().Shards
				return len(status) == 1 && status[0].Keys == len(shardedNamespaces)
			}, patience, 20*time.Millisecond, "alone it has all")
			b, c := s.join("replica-b"), s.join("replica-c")
			s.rest(shards, a, b, c)
			s.putAll("2")
			s.rest(shards, a, b, c)
			a.freeze()
			s.putAll("3")
			s.rest(shards, b, c)
			a.thaw()
			s.rest(shards, a, b, c)
			s.stop(b)
			s.putAll("4")
			s.rest(shards, a, c)
			s.stop(a)
			s.stop(c)
			s.judge()
		})
	}
}

// judge reads the audit log. Calls of one namespace write "begin" and "end" by turns. A call whose
// replica was frozen has begun, and another one begins: then nothing of the former lands any more.
func (s *sharers) judge() {
	type call struct {
		by    string
		ended bool
	}
	last, over := map[string]call{}, map[string]map[string]bool{}
	writes := 0
	for _, w := range s.calls(s.t) {
		if over[w.namespace] == nil {
			over[w.namespace] = map[string]bool{}
		}
		before := last[w.namespace]
		switch {
		case w.name == "begin":
			if before.by != "" && before.by != w.by && !before.ended {
				over[w.namespace][before.by] = true // it has lost the key, or it has failed
			}
			delete(over[w.namespace], w.by)
			last[w.namespace] = call{by: w.by}
		case over[w.namespace][w.by]:
			assert.Fail(s.t, "a write of one who has lost the key has landed", "%+v", w)
		default:
			assert.Equal(s.t, before.by, w.by, "%s is in two hands", w.namespace)
			last[w.namespace] = call{w.by, true}
		}
		writes++
	}
	assert.Greater(s.t, writes, 8*len(shardedNamespaces))
}

// callWrite is a write of a call that has landed.
type callWrite struct{ namespace, name, by string }

// calls are the writes of calls, in the order in which they have come.
func (s *sharers) calls(t *testing.T) (all []callWrite) {
	for _, team := range shardedNamespaces {
		for _, w := range s.writes(t, team) {
			if w.landed() && w.resource == "configmaps" && (w.name == "begin" || w.name == "end") && strings.HasPrefix(w.user, "replica-") {
				all = append(all, callWrite{team, w.name, w.user})
			}
		}
	}
	return all
}
