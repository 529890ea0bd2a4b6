package replicas

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

// app is a root and what it owns.
type app struct {
	Root    *corev1.ConfigMap `kates:",root"`
	Secrets []*corev1.Secret  `kates:",owned"`
}

// rooted is a group of controllers.
type rooted struct {
	*divided
	by    kates.ShardBy
	roots map[string]types.UID // by key

	mu      sync.Mutex
	working map[types.UID]string
	owned   map[string]int            // of the last reconcile of each key
	last    map[string]string         // who has reconciled it
	counts  map[string]map[string]int // reconciles, by replica and key
}

// controlled is one of them.
type controlled struct {
	name   string
	client *kates.Client
	of     *controller.Controller[app]
	end    func()
	ended  chan error
}

func rootedIn(t *testing.T, d *divided, by kates.ShardBy) *rooted {
	r := &rooted{
		divided: d, by: by, roots: map[string]types.UID{}, working: map[types.UID]string{},
		owned: map[string]int{}, last: map[string]string{}, counts: map[string]map[string]int{},
	}
	c := d.server.Client(t)
	for _, team := range d.teams {
		for i := range 2 {
			root := &corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprint("root-", i), Labels: map[string]string{"root": "yes"}},
			}
			require.NoError(t, c.Create(t.Context(), root, &root))
			r.roots[team+"/"+root.Name] = root.UID
			for j := range 3 {
				require.NoError(t, c.Create(t.Context(), r.secret(team, fmt.Sprint(root.Name, "-", j), root.Name), nil))
			}
		}
	}
	return r
}

// secret is one that a root owns.
func (r *rooted) secret(namespace, name, root string) *corev1.Secret {
	yes := true
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: root, UID: r.roots[namespace+"/"+root], Controller: &yes},
		}},
	}
}

func (r *rooted) join(name string) *controlled {
	c := r.server.Client(r.t)
	r.mu.Lock()
	r.counts[name] = map[string]int{}
	r.mu.Unlock()
	of, err := controller.New(c, "apps", func(_ context.Context, a *app) (controller.Result, error) {
		r.work(name, a)
		return controller.Done, nil
	}, kates.Sharding{Namespace: "default", Name: "group", Identity: name, By: r.by}, kates.WithWorkers(3),
		kates.Query{Name: "Root", LabelSelector: "root"})
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(r.t.Context())
	one := &controlled{name, c, of, cancel, make(chan error, 1)}
	go func() { one.ended <- of.Run(ctx) }()
	return one
}

func (r *rooted) work(name string, a *app) {
	key, uid := a.Root.Namespace+"/"+a.Root.Name, a.Root.UID
	r.mu.Lock()
	assert.Empty(r.t, r.working[uid], "%s is in two hands", key)
	r.working[uid] = name
	r.mu.Unlock()
	<-time.After(50 * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.working, uid)
	r.counts[name][key]++
	r.owned[key], r.last[key] = len(a.Secrets), name
	for _, s := range a.Secrets {
		assert.Equal(r.t, uid, s.OwnerReferences[0].UID)
	}
}

// rest checks that each root has one owner, which was handed what the root owns, and that no
// replica holds what others' roots own.
func (r *rooted) rest(total int, replicas ...*controlled) {
	r.t.Helper()
	<-time.After(2 * time.Minute)
	roots, objects, secrets := 0, 0, 0
	for _, one := range replicas {
		s := one.client.Status()
		require.Len(r.t, s.Shards, 1)
		assert.Equal(r.t, len(replicas), s.Shards[0].Members)
		assert.Positive(r.t, s.Shards[0].Ranges)
		roots += s.Shards[0].Keys
		for _, q := range s.Queries {
			switch q.Name {
			case "Root":
				objects += q.Objects
			case "Secrets":
				secrets += q.Objects
			}
		}
	}
	assert.Equal(r.t, len(r.roots), roots, "each root has one owner")
	assert.Equal(r.t, len(r.roots), objects, "each root is held once")
	assert.Equal(r.t, total, secrets, "what is owned is held once")
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for key := range r.roots {
		sum += r.owned[key]
	}
	assert.Equal(r.t, total, sum, "each root was handed what it owns")
}

// TestRootsAndWhatTheyOwnAreHeldByOneReplica: by UID and by namespace, while replicas come and go,
// and when an object gets another owner.
func TestRootsAndWhatTheyOwnAreHeldByOneReplica(t *testing.T) {
	for _, by := range []kates.ShardBy{"", kates.ShardByNamespace} {
		t.Run(fmt.Sprintf("by %q", by), func(t *testing.T) {
			divide(t, func(t *testing.T, d *divided) {
				r := rootedIn(t, d, by)
				total := 3 * len(r.roots)
				a := r.join("a")
				r.rest(total, a)
				b, c := r.join("b"), r.join("c")
				r.rest(total, a, b, c)
				for _, one := range []*controlled{a, b, c} {
					keys := one.client.Status().Shards[0].Keys
					assert.InDelta(t, len(r.roots)/3, keys, float64(len(r.roots))/6, one.name)
				}
				r.moved(t, a.client)
				r.rest(total, a, b, c)
				b.end()
				require.NoError(t, <-b.ended)
				r.rest(total, a, c)
				for _, one := range []*controlled{a, c} {
					one.end()
					require.NoError(t, <-one.ended)
				}
			})
		})
	}
}

// moved gives objects of a root to another one, of which each has its owner among the replicas.
func (r *rooted) moved(t *testing.T, c *kates.Client) {
	for _, team := range r.teams {
		o := r.secret(team, "root-0-0", "root-1")
		require.NoError(t, c.Update(t.Context(), o, nil))
		o = r.secret(team, "root-1-0", "root-0")
		require.NoError(t, c.Update(t.Context(), o, nil))
		o = r.secret(team, "root-1-1", "root-0")
		require.NoError(t, c.Update(t.Context(), o, nil))
	}
	<-time.After(time.Minute)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, team := range r.teams {
		assert.Equal(t, []int{4, 2}, []int{r.owned[team+"/root-0"], r.owned[team+"/root-1"]}, team)
	}
}
