package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kates-go/kates/kates"
)

var (
	soak = flag.Duration("soak", 20*time.Second, "how long the coherence run takes")
	seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the coherence run")
)

// fact is what an own writer knows of one of its objects: nobody else creates or deletes those.
type fact struct {
	uid     types.UID
	version string // "" where it is gone
}

// world is the objects of the run, and what the own writers know.
type world struct {
	ns     string
	kinds  []schema.GroupVersionResource
	client *kates.Client
	mu     sync.Mutex
	facts  map[string]fact // by kind and name
}

func (w *world) learn(gvr schema.GroupVersionResource, name string, f fact) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.facts[gvr.Resource+"/"+name] = f
}

// own writes objects of its own, at random, until ctx ends.
func (w *world) own(ctx context.Context, t *testing.T, writer int, r *rand.Rand) {
	known := map[string]*kates.Unstructured{}
	for ctx.Err() == nil {
		gvr := w.kinds[r.IntN(len(w.kinds))]
		name := fmt.Sprintf("own-%d-%d", writer, r.IntN(8))
		key := gvr.Resource + "/" + name
		o := object(gvr, w.ns, name, map[string]string{"in": fmt.Sprint(r.IntN(2))})
		var got *kates.Unstructured
		var err error
		switch {
		case known[key] == nil:
			if r.IntN(4) == 0 {
				o.SetFinalizers([]string{"example.com/f"})
			}
			err = w.client.Create(ctx, o, &got)
		case r.IntN(3) == 0:
			w.remove(ctx, t, gvr, known[key])
			if ctx.Err() == nil {
				delete(known, key)
			}
			continue
		case r.IntN(2) == 0:
			patch := fmt.Sprintf(`{"metadata":{"labels":{"in":"%d"}}}`, r.IntN(2)) // may change nothing
			err = w.client.Patch(ctx, o, kates.MergePatchType, []byte(patch), &got)
		case r.IntN(2) == 0:
			o.SetLabels(map[string]string{"applied": fmt.Sprint(r.IntN(100))})
			err = w.client.Apply(ctx, o, &got, kates.ForceOwnership())
		default:
			o.SetLabels(map[string]string{"upserted": fmt.Sprint(r.IntN(100))})
			err = w.client.Upsert(ctx, nil, o, &got)
		}
		if ctx.Err() != nil {
			return
		}
		if assert.NoError(t, err) {
			known[key] = got
			w.learn(gvr, name, fact{got.GetUID(), got.GetResourceVersion()})
		}
	}
}

// remove deletes an object and what keeps it.
func (w *world) remove(ctx context.Context, t *testing.T, gvr schema.GroupVersionResource, o *kates.Unstructured) {
	w.mu.Lock()
	delete(w.facts, gvr.Resource+"/"+o.GetName()) // in doubt from here on
	w.mu.Unlock()
	err := w.client.Delete(ctx, o, nil, kates.IfUID(o.GetUID()))
	if err == nil && len(o.GetFinalizers()) > 0 {
		err = w.client.Patch(ctx, o, kates.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
	}
	if ctx.Err() == nil && assert.NoError(t, err) {
		w.learn(gvr, o.GetName(), fact{uid: o.GetUID()})
	}
}

// foreign is somebody else: it touches the own writers' objects, and has its own.
func (w *world) foreign(ctx context.Context, t *testing.T, writers int, r *rand.Rand) {
	d := foreign(t)
	for ctx.Err() == nil {
		gvr := w.kinds[r.IntN(len(w.kinds))]
		in := d.Resource(gvr).Namespace(w.ns)
		label := fmt.Sprintf(`{"metadata":{"labels":{"in":"%d","n":"%d"}}}`, r.IntN(2), r.IntN(1000))
		theirs := fmt.Sprintf("foreign-%d", r.IntN(30))
		switch r.IntN(5) { // errors are other writers' doing
		case 0:
			_, _ = in.Create(ctx, object(gvr, w.ns, theirs, map[string]string{"in": "1"}), metav1.CreateOptions{})
		case 1:
			_ = in.Delete(ctx, theirs, metav1.DeleteOptions{})
		case 2:
			_, _ = in.Patch(ctx, theirs, types.MergePatchType, []byte(label), metav1.PatchOptions{})
		default:
			_, _ = in.Patch(ctx, fmt.Sprintf("own-%d-%d", r.IntN(writers), r.IntN(8)), types.MergePatchType, []byte(label), metav1.PatchOptions{})
		}
		pause(ctx, time.Duration(r.IntN(5))*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// seen is one shown object.
type seen struct {
	uid     types.UID
	version string
}

// judge checks every Update of one accumulator.
type judge struct {
	t     *testing.T
	w     *world
	acc   *kates.Accumulator
	whole bool // no selector
	snap  struct{ ConfigMaps, Secrets, Hosts []*kates.Unstructured }
	shown map[string]seen
	dead  map[types.UID]bool
	count int
}

func (w *world) judge(t *testing.T, selector string) *judge {
	t.Helper()
	var queries []kates.Query
	for name, kind := range map[string]string{"ConfigMaps": "cm", "Secrets": "secrets", "Hosts": "hosts"} {
		queries = append(queries, kates.Query{Name: name, Kind: kind, Namespace: w.ns, LabelSelector: selector})
	}
	acc, err := w.client.Watch(t.Context(), queries...)
	require.NoError(t, err)
	<-acc.Changed()
	return &judge{t: t, w: w, acc: acc, whole: selector == "", shown: map[string]seen{}, dead: map[types.UID]bool{}}
}

func (j *judge) objects() map[string][]*kates.Unstructured {
	return map[string][]*kates.Unstructured{"configmaps": j.snap.ConfigMaps, "secrets": j.snap.Secrets, "hosts": j.snap.Hosts}
}

var resourceOf = map[string]string{"ConfigMaps": "configmaps", "Secrets": "secrets", "Hosts": "hosts"}

// update reads a snapshot and checks it. It reports false once something was wrong.
func (j *judge) update() bool {
	j.w.mu.Lock()
	facts := map[string]fact{}
	for k, f := range j.w.facts { // what had been written before the Update
		facts[k] = f
	}
	j.w.mu.Unlock()
	var deltas []*kates.Delta
	changed, err := j.acc.UpdateWithDeltas(context.Background(), &j.snap, &deltas)
	require.NoError(j.t, err)
	j.count++
	now := map[string]seen{}
	for resource, objects := range j.objects() {
		for _, o := range objects {
			now[resource+"/"+o.GetName()] = seen{o.GetUID(), o.GetResourceVersion()}
		}
	}
	ok := assert.Equal(j.t, changed, len(deltas) > 0 || j.count == 1, "a change has deltas")
	return ok && j.replay(deltas, now) && j.monotonic(now) && j.coherent(facts, now)
}

func (j *judge) replay(deltas []*kates.Delta, now map[string]seen) bool {
	replayed := map[string]seen{}
	for k, s := range j.shown {
		replayed[k] = s
	}
	for _, d := range deltas {
		key := resourceOf[d.Query] + "/" + d.Name
		_, had := replayed[key]
		if !assert.Equal(j.t, had, d.DeltaType != kates.ObjectAdd, "G7: %s %s", d.DeltaType, key) {
			return false
		}
		if d.DeltaType == kates.ObjectDelete {
			delete(replayed, key)
		} else {
			replayed[key] = seen{d.UID, d.ResourceVersion}
		}
	}
	return assert.Equal(j.t, now, replayed, "G7: the deltas give the snapshot")
}

func older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

func (j *judge) monotonic(now map[string]seen) bool {
	ok := true
	for key, s := range now {
		before, had := j.shown[key]
		if had && before.uid == s.uid {
			ok = ok && assert.False(j.t, older(s.version, before.version), "G5: %s went from %s to %s", key, before.version, s.version)
		}
		ok = ok && assert.False(j.t, j.whole && j.dead[s.uid], "G5: %s is back", key)
	}
	for key, before := range j.shown {
		if s, there := now[key]; !there || s.uid != before.uid {
			j.dead[before.uid] = true
		}
	}
	j.shown = now
	return ok
}

func (j *judge) coherent(facts map[string]fact, now map[string]seen) bool {
	if !j.whole {
		return true // a foreign writer may have moved it out
	}
	ok := true
	for key, f := range facts {
		s, there := now[key]
		switch {
		case f.version == "":
			ok = ok && assert.False(j.t, there && s.uid == f.uid, "G4: %s was deleted by us", key)
		case !there || s.uid != f.uid:
			j.w.mu.Lock()
			still := j.w.facts[key] == f // the writer has not begun to delete it
			j.w.mu.Unlock()
			ok = ok && assert.False(j.t, still, "G4: %s, which we wrote, is not there", key)
		default:
			ok = ok && assert.False(j.t, older(s.version, f.version), "G4: %s is at %s, we wrote %s", key, s.version, f.version)
		}
	}
	return ok
}

// settled checks that the snapshot becomes the server's list, with nothing pending. Writes whose
// context ended may still be on their way to the server at first.
func (j *judge) settled(selector string) {
	j.t.Helper()
	var server map[string]seen
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		require.NoError(j.t, j.w.client.Sync(j.t.Context()))
		j.update()
		if server = j.server(selector); reflect.DeepEqual(server, j.shown) {
			break
		}
	}
	assert.Equal(j.t, server, j.shown, "G6: the snapshot is what the server has")
	for _, q := range j.acc.Status().Queries {
		assert.Zero(j.t, q.Pending, "G6: %s", j.acc.Status())
	}
}

func (j *judge) server(selector string) map[string]seen {
	j.t.Helper()
	all := map[string]seen{}
	for _, gvr := range j.w.kinds {
		list, err := foreign(j.t).Resource(gvr).Namespace(j.w.ns).List(j.t.Context(), metav1.ListOptions{LabelSelector: selector})
		require.NoError(j.t, err)
		for _, o := range list.Items {
			all[gvr.Resource+"/"+o.GetName()] = seen{o.GetUID(), o.GetResourceVersion()}
		}
	}
	return all
}

func TestG4G5G6G7UnderManyWritersWithALateWatchThatIsCut(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d", *seed)
	const writers = 4
	wire := newWire()
	w := &world{
		ns: namespace(t), kinds: []schema.GroupVersionResource{configMaps, secrets, hosts},
		client: wire.client(t, kates.WithInterval(0)), facts: map[string]fact{},
	}
	whole, selective := w.judge(t, ""), w.judge(t, "in=1")
	ctx, cancel := context.WithTimeout(t.Context(), *soak)
	defer cancel()
	var wg sync.WaitGroup
	random := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, n)) }
	for i := range writers {
		wg.Go(func() { w.own(ctx, t, i, random(uint64(i))) })
	}
	for i := range 8 {
		wg.Go(func() { w.foreign(ctx, t, writers, random(uint64(100+i))) })
	}
	wg.Go(func() { // the network
		r := random(1000)
		for ctx.Err() == nil {
			wire.set("configmaps", time.Duration(r.IntN(500))*time.Millisecond)
			if r.IntN(4) == 0 {
				wire.cut("configmaps")
			}
			pause(ctx, time.Duration(r.IntN(800))*time.Millisecond)
		}
	})
	wg.Go(func() { // a slow reader
		r := random(2000)
		for ctx.Err() == nil && selective.update() {
			pause(ctx, time.Duration(r.IntN(300))*time.Millisecond)
		}
	})
	for ctx.Err() == nil && whole.update() {
		pause(ctx, time.Millisecond)
	}
	cancel()
	wg.Wait()
	wire.set("configmaps", 0)
	whole.settled("")
	selective.settled("in=1")
	t.Logf("%d and %d snapshots, %d own writes known", whole.count, selective.count, len(w.facts))
}
