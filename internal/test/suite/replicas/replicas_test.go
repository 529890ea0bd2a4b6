package replicas

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// spaces is a struct whose objects are divided by namespace, but for the nodes, which belong to
// every partition, and the accounts, whose key is the label of a namespace.
type spaces struct {
	ConfigMaps []*corev1.ConfigMap
	Accounts   []*corev1.ServiceAccount
	Nodes      []*corev1.Node
	Deltas     []*kates.Delta
}

var silent = slog.New(slog.DiscardHandler)

// divided is a group of replicas that divide namespaces.
type divided struct {
	t      *testing.T
	server *katestest.Server
	teams  []string

	mu      sync.Mutex
	working map[string]string            // who has a key in a call
	calls   map[string]map[string]int    // by replica and key
	seen    map[string]map[string]string // what the last call for a key was handed
	shown   map[string]map[string]string // what the calls of a replica for a key have been handed as deltas
	slow    time.Duration                // of each call
}

// divide runs a test with replicas of a server that sends shares, and of one that does not.
func divide(t *testing.T, f func(t *testing.T, d *divided)) {
	for _, name := range rounds.Some([]string{"the server shards", "the server does not shard"}) {
		t.Run(name, func(t *testing.T) {
			var options []katestest.Option
			if name == "the server shards" {
				options = append(options, katestest.WithShardedLists())
			}
			synctest.Test(t, func(t *testing.T) {
				d := &divided{
					t: t, working: map[string]string{}, calls: map[string]map[string]int{}, seen: map[string]map[string]string{},
					shown: map[string]map[string]string{},
				}
				d.server = katestest.NewServer(t, append(options, katestest.WithClientOptions(kates.WithLogger(silent), kates.WithInterval(0)))...)
				c := d.server.Client(t)
				for i := range 24 {
					team := fmt.Sprintf("team-%02d", i)
					d.teams = append(d.teams, team)
					require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, nil))
					for j := range 3 {
						d.put(c, team, fmt.Sprint("first-", j), "1")
					}
				}
				require.NoError(t, c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, nil))
				f(t, d)
			})
		})
	}
}

// put writes an object.
func (d *divided) put(c *kates.Client, namespace, name, value string) {
	d.t.Helper()
	o := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"value": value},
	}
	require.NoError(d.t, c.Upsert(d.t.Context(), o, o, nil))
}

// content is what there is in a namespace.
func (d *divided) content(c *kates.Client, namespace string) map[string]string {
	var all []*corev1.ConfigMap
	require.NoError(d.t, c.List(d.t.Context(), kates.Query{Kind: "ConfigMap", Namespace: namespace}, &all))
	return contentOf(all)
}

func contentOf(all []*corev1.ConfigMap) map[string]string {
	content := map[string]string{}
	for _, o := range all {
		content[o.Name] = o.Data["value"]
	}
	return content
}

// dividedReplica is one of them.
type dividedReplica struct {
	name   string
	client *kates.Client
	end    func()
	ended  chan error
}

// join starts a replica. Other options take the place of its sharding.
func (d *divided) join(name string, sharding ...kates.RunOption) *dividedReplica {
	return d.joinWith(name, d.server.Client(d.t), sharding...)
}

func (d *divided) joinWith(name string, c *kates.Client, sharding ...kates.RunOption) *dividedReplica {
	d.mu.Lock()
	d.calls[name] = map[string]int{}
	d.mu.Unlock()
	work := func(_ context.Context, key string, s *spaces) error { return d.work(name, key, s) }
	if sharding == nil {
		sharding = []kates.RunOption{kates.Sharding{Namespace: "default", Name: "group", Identity: name}}
	}
	options := append([]kates.RunOption{
		kates.Query{Name: "ConfigMaps", Key: kates.ByNamespace},
		kates.Query{Name: "Accounts", LabelSelector: "team", Key: kates.ByLabel("team")}, kates.WithWorkers(3),
	}, sharding...)
	ctx, cancel := context.WithCancel(d.t.Context())
	r := &dividedReplica{name, c, cancel, make(chan error, 1)}
	go func() { r.ended <- kates.RunEach(ctx, c, work, options...) }()
	return r
}

// work is a call for a key: it is in no other hand, and the key is not taken for one that is gone.
func (d *divided) work(name, key string, s *spaces) error {
	d.mu.Lock()
	assert.Empty(d.t, d.working[key], "%s is in two hands", key)
	d.working[key] = name
	slow := d.slow
	d.mu.Unlock()
	if slow > 0 {
		<-time.After(slow)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.working, key)
	d.calls[name][key]++
	d.seen[key] = contentOf(s.ConfigMaps)
	d.follow(name+" "+key, s)
	return nil
}

// follow applies deltas to what the replica's last call for the key was handed.
func (d *divided) follow(of string, s *spaces) {
	had := d.shown[of]
	if had == nil {
		had = map[string]string{}
		d.shown[of] = had
	}
	for _, delta := range s.Deltas {
		if delta.Query == "ConfigMaps" && delta.DeltaType == kates.ObjectDelete {
			delete(had, delta.Name)
		} else if delta.Query == "ConfigMaps" {
			had[delta.Name] = delta.ResourceVersion
		}
	}
	now := map[string]string{}
	for _, o := range s.ConfigMaps {
		now[o.Name] = o.ResourceVersion
	}
	assert.Equal(d.t, now, had, "%s: the deltas lead to the snapshot", of)
}

// taken returns whose calls there were since the last time, by key.
func (d *divided) taken() map[string][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	by := map[string][]string{}
	for name, calls := range d.calls {
		for key := range calls {
			by[key] = append(by[key], name)
		}
		clear(calls)
	}
	return by
}

// status is how a replica stands with the group.
func (r *dividedReplica) status() kates.ShardStatus { return r.client.Status().Shards[0] }

// objects is how many config maps a replica holds.
func (r *dividedReplica) objects() int {
	for _, q := range r.client.Status().Queries {
		if q.Name == "ConfigMaps" {
			return q.Objects
		}
	}
	return -1
}

// rest checks that each key has one of the replicas as its owner, that they hold no more than they
// need, and that the last call for each key was handed what there is.
func (d *divided) rest(replicas ...*dividedReplica) {
	d.t.Helper()
	<-time.After(2 * time.Minute)
	synctest.Wait()
	keys, objects := 0, 0
	for _, r := range replicas {
		s := r.status()
		assert.True(d.t, s.Member, r.name)
		assert.Equal(d.t, len(replicas), s.Members, r.name)
		assert.Empty(d.t, s.Error, r.name)
		keys, objects = keys+s.Keys, objects+r.objects()
	}
	c := replicas[0].client
	total, there := 0, 0
	for _, team := range d.teams {
		content := d.content(c, team)
		d.mu.Lock()
		assert.Equal(d.t, content, d.seen[team], team)
		d.mu.Unlock()
		if total += len(content); len(content) > 0 {
			there++
		}
	}
	assert.Equal(d.t, there, keys, "each key has one owner")
	assert.Equal(d.t, total, objects, "each object is held once")
}

func (d *divided) stop(replicas ...*dividedReplica) {
	for _, r := range replicas {
		r.end()
		require.NoError(d.t, <-r.ended)
	}
}

// TestReplicasHoldTheirPartAlone: with each replica that comes, the others hold less, and what one
// that leaves had is held by the others. A key that moves has a call by its new owner alone, and
// no key is taken for one that is gone.
func TestReplicasHoldTheirPartAlone(t *testing.T) {
	divide(t, func(t *testing.T, d *divided) {
		a := d.join("a")
		d.rest(a)
		assert.Len(t, d.taken(), len(d.teams), "alone it has all")
		b := d.join("b")
		d.rest(a, b)
		moved := d.taken()
		assert.InDelta(t, len(d.teams)/2, len(moved), 2, "half of the keys move")
		for key, by := range moved {
			assert.Equal(t, []string{"b"}, by, key)
		}
		c := d.join("c")
		e := d.join("d")
		d.rest(a, b, c, e)
		for _, r := range []*dividedReplica{a, b, c, e} {
			assert.InDelta(t, len(d.teams)/4*3, r.objects(), 6, "%s holds a quarter", r.name)
			s := r.status()
			assert.Positive(t, s.Ranges)
			assert.Positive(t, s.Part)
			if t.Name() == "TestReplicasHoldTheirPartAlone/the_server_shards" {
				assert.Equal(t, "the server sends this share alone", s.Streams)
			} else {
				assert.Equal(t, "the server does not shard: it sends the objects of all shards, and others are dropped here", s.Streams)
			}
		}
		d.taken()
		had := b.status().Keys
		d.stop(b)
		d.rest(a, c, e)
		moved = d.taken()
		assert.Len(t, moved, had, "what it had moves, and nothing else")
		d.stop(a, c, e)
	})
}

// TestG4G5G7PartitionsOfReplicasAreRightWhilePlansChange: replicas come and go at random moments,
// while they and others write, and calls take their time.
func TestG4G5G7PartitionsOfReplicasAreRightWhilePlansChange(t *testing.T) {
	divide(t, func(t *testing.T, d *divided) {
		d.slow = 300 * time.Millisecond
		other := d.server.Client(t)
		replicas := map[string]*dividedReplica{"r0": d.join("r0")}
		for i := range 40 {
			name := fmt.Sprint("r", i*7%5)
			switch r := replicas[name]; {
			case i%3 == 0 && r == nil:
				replicas[name] = d.join(name)
			case i%3 == 0 && len(replicas) > 1:
				d.stop(r)
				delete(replicas, name)
			}
			writer := other
			if i%2 == 0 {
				writer = replicas[slices.Sorted(maps.Keys(replicas))[0]].client
			}
			for j := range 3 {
				d.put(writer, d.teams[(i*5+j*11)%len(d.teams)], fmt.Sprint("first-", j), fmt.Sprint("of step ", i))
			}
			<-time.After(time.Duration(i*37%11) * 700 * time.Millisecond)
		}
		all := slices.Collect(maps.Values(replicas))
		d.rest(all...)
		d.stop(all...)
	})
}

// TestAKeyThatIsGoneHasOneMoreCallByItsOwner: the last object of a namespace goes while its owner
// keeps the key.
func TestAKeyThatIsGoneHasOneMoreCallByItsOwner(t *testing.T) {
	divide(t, func(t *testing.T, d *divided) {
		a, b := d.join("a"), d.join("b")
		d.rest(a, b)
		owner := d.taken()[d.teams[0]]
		for j := range 3 {
			o := &corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: d.teams[0], Name: fmt.Sprint("first-", j)},
			}
			require.NoError(t, a.client.Delete(t.Context(), o, nil))
		}
		d.rest(a, b)
		assert.Subset(t, owner, d.taken()[d.teams[0]])
		assert.Empty(t, d.seen[d.teams[0]])
		d.stop(a, b)
	})
}
