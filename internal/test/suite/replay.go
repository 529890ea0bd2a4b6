package suite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// The random writers work in small batches: the fake panics when a watch has a hundred unread
// events.
const (
	replayBatches = 8
	replayWrites  = 30
)

// replayed lets this client and another program write at random. A reader applies every delta to
// its own copy. The test compares the copy with each snapshot, and the last snapshot of each
// batch with the API's objects.
func replayed(t *testing.T, e *env) {
	snapshots := watch[replaySnapshot](e, e.client,
		kates.Query{Name: "ConfigMaps", Namespace: e.ns, LabelSelector: "in=yes"}, kates.Query{Name: "Hosts", Namespace: e.ns})
	copied := replica{}
	var snap replaySnapshot
	for batch := range replayBatches {
		var writers sync.WaitGroup
		for i, w := range e.randomWriters() {
			writers.Go(func() { w.run(t, rand.New(rand.NewPCG(uint64(batch), uint64(i))), replayWrites, fmt.Sprint(batch)) })
		}
		awaitEach(t, snapshots, &snap, "the end of the batch", func() bool {
			copied.apply(t, snap.Deltas)
			require.Equal(t, snap.replica(t), copied, "deltas applied to the snapshot before give the one after")
			return snap.ended(fmt.Sprint(batch))
		})
		writers.Wait()
		for !t.Failed() && !assertEqualsServer(t, e, &snap) {
			// A write may still be on its way when the other writer's marker has arrived.
			awaitEach(t, snapshots, &snap, "what the API holds", func() bool {
				copied.apply(t, snap.Deltas)
				return true
			})
		}
	}
}

type replaySnapshot struct {
	ConfigMaps []*kates.ConfigMap
	Hosts      []*hostType `kates:"hosts.getambassador.io"`
	Deltas     []*kates.Delta
}

// version is the part that a delta and a snapshot must agree on. On the fake it is empty.
type version struct{ uid, resourceVersion string }

// replica is a snapshot rebuilt from deltas alone.
type replica map[string]version

func (r replica) apply(t testing.TB, deltas []*kates.Delta) {
	t.Helper()
	last := map[string]*kates.Delta{}
	for _, delta := range deltas {
		key, to := delta.Query+" "+delta.Name, version{string(delta.UID), delta.ResourceVersion}
		from, known := r[key]
		if before := last[key]; before != nil {
			require.True(t, before.DeltaType == kates.ObjectDelete && delta.DeltaType == kates.ObjectAdd && before.UID != delta.UID,
				"two deltas of %s can only be a delete and an add of another UID: %v, %v", key, before, delta)
		}
		last[key] = delta
		switch delta.DeltaType {
		case kates.ObjectAdd:
			require.False(t, known, "add of %s, which is there", key)
			r[key] = to
		case kates.ObjectUpdate:
			require.True(t, known, "update of %s, which is not there", key)
			require.Equal(t, from.uid, to.uid, "update of %s", key)
			r[key] = to
		case kates.ObjectDelete:
			require.True(t, known, "delete of %s, which is not there", key)
			require.Equal(t, from.uid, to.uid, "delete of %s", key)
			delete(r, key)
		}
	}
}

// replica returns what the snapshot itself shows, and checks its order.
func (s *replaySnapshot) replica(t testing.TB) replica {
	t.Helper()
	r := replica{}
	for _, cm := range s.ConfigMaps {
		r["ConfigMaps "+cm.Name] = version{string(cm.UID), cm.ResourceVersion}
		require.Equal(t, "yes", cm.Labels["in"], cm.Name)
	}
	for _, host := range s.Hosts {
		r["Hosts "+host.Name] = version{string(host.UID), host.ResourceVersion}
	}
	require.True(t, slices.IsSorted(names(s.ConfigMaps)) && slices.IsSorted(names(s.Hosts)), "ordered by name")
	return r
}

// ended reports whether the snapshot shows the last write of both writers, of both kinds.
func (s *replaySnapshot) ended(batch string) bool {
	for _, marker := range []string{"marker-0", "marker-1"} {
		cm, host := byName(s.ConfigMaps, marker), byName(s.Hosts, marker)
		if cm == nil || cm.Labels["batch"] != batch || host == nil || host.Labels["batch"] != batch {
			return false
		}
	}
	return true
}

// assertEqualsServer reports whether the snapshot equals the API's objects when nobody writes any
// more.
func assertEqualsServer(t testing.TB, e *env, s *replaySnapshot) bool {
	t.Helper()
	want := replica{}
	for query, options := range map[string]metav1.ListOptions{"ConfigMaps": {LabelSelector: "in=yes"}, "Hosts": {}} {
		list, err := e.foreign.Resource(resources[query[:len(query)-1]]).Namespace(e.ns).List(e.ctx, options)
		require.NoError(t, err)
		for i := range list.Items {
			item := &list.Items[i]
			want[query+" "+item.GetName()] = version{string(item.GetUID()), item.GetResourceVersion()}
		}
	}
	return assert.ObjectsAreEqual(want, s.replica(t))
}

// writer writes at random. All have the same names.
type writer struct {
	names       []string
	marker      string
	put, remove func(object map[string]any) error
	e           *env
}

func (e *env) randomWriters() []writer {
	own := writer{marker: "marker-0", e: e,
		put:    func(o map[string]any) error { return e.client.Upsert(e.ctx, o, o, nil) },
		remove: func(o map[string]any) error { return e.client.Delete(e.ctx, o, nil) },
	}
	foreign := writer{marker: "marker-1", e: e, put: e.foreignPut, remove: func(o map[string]any) error {
		u := asUnstructured(e.t, o)
		return e.foreignResource(u).Delete(e.ctx, u.GetName(), metav1.DeleteOptions{})
	}}
	for i := range 5 {
		own.names = append(own.names, fmt.Sprintf("o%d", i))
	}
	foreign.names = own.names
	return []writer{own, foreign}
}

func (e *env) foreignPut(object map[string]any) error {
	u := asUnstructured(e.t, object)
	current, err := e.foreignResource(u).Get(e.ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = e.foreignResource(u).Create(e.ctx, u, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	u.SetResourceVersion(current.GetResourceVersion())
	_, err = e.foreignResource(u).Update(e.ctx, u, metav1.UpdateOptions{})
	return err
}

func (w writer) run(t testing.TB, random *rand.Rand, writes int, batch string) {
	for range writes {
		object := w.object(random.IntN(2) == 0, w.names[random.IntN(len(w.names))])
		setLabels(object, "in", []string{"yes", "yes", "no"}[random.IntN(3)], "n", fmt.Sprint(random.IntN(1000)))
		act := w.put
		if random.IntN(4) == 0 {
			act = w.remove
		}
		if err := act(object); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			assert.NoError(t, err)
		}
	}
	for _, host := range []bool{true, false} {
		marker := w.object(host, w.marker)
		setLabels(marker, "in", "yes", "batch", batch)
		assert.NoError(t, w.put(marker))
	}
}

func (w writer) object(host bool, name string) map[string]any {
	if host {
		return w.e.host(name, name+".example")
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": w.e.ns, "name": name}}
}

func setLabels(object map[string]any, keysAndValues ...string) {
	labels := map[string]any{}
	for k, v := range pairs(keysAndValues) {
		labels[k] = v
	}
	object["metadata"].(map[string]any)["labels"] = labels
}
