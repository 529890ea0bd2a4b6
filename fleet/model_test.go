package fleet

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// modelStep is one thing that happens to the fleet of the model.
type modelStep struct {
	action  string
	name    string // of a cluster in the fleet
	fake    int
	kind    string
	object  string
	seconds int
	unseen  int // if a look follows this step: how many later steps then go by without one
}

func drawModelStep(t *rapid.T) modelStep {
	return modelStep{
		action: rapid.SampledFrom([]string{
			"join", "join", "remove", "fail", "heal", "write", "write", "write", "delete", "own", "own", "wait", "look", "again",
		}).Draw(t, "action"),
		name:    rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
		fake:    rapid.IntRange(0, modelFakes-1).Draw(t, "fake"),
		kind:    rapid.SampledFrom([]string{"configmaps", "services"}).Draw(t, "kind"),
		object:  rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "object"),
		seconds: rapid.SampledFrom([]int{0, 1, 3, 20, 60}).Draw(t, "seconds"),
		unseen:  rapid.SampledFrom([]int{0, 0, 1, 2, 3, 6}).Draw(t, "unseen"),
	}
}

const modelFakes = 4

// version is an object's identity, and how often it was written.
type version struct {
	uid   types.UID
	round string
}

// fleetModel has clusters come, go, take others' names, fail and heal, and checks each snapshot.
// One or more steps lie between two snapshots.
type fleetModel struct {
	fleet  *Fleet
	snaps  *Snapshots[things]
	fakes  [modelFakes]*katestest.Fake
	down   [modelFakes]atomic.Bool
	made   int // objects and versions
	unseen int // steps that go by before the next look

	members map[string]int                // by name, the fake behind it
	own     map[string]map[string]version // by name and object, own writes to the present cluster
	last    *things
	shown   map[string]version // by the deltas
	newest  map[string]version // by name and UID, since the name came or changed
}

func TestModelG1G4G5G6G7G9AFleetIsTheModels(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		steps := rapid.SliceOfN(rapid.Custom(drawModelStep), 20, 300).Draw(rt, "steps")
		var err error
		synctest.Test(t, func(*testing.T) { err = runFleetModel(steps, step) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func runFleetModel(steps []modelStep, taken func()) error {
	m := &fleetModel{
		members: make(map[string]int), own: make(map[string]map[string]version),
		shown: make(map[string]version), newest: make(map[string]version),
	}
	for i := range m.fakes {
		k, err := m.newFake(i)
		if err != nil {
			return err
		}
		defer k.Close()
	}
	var err error
	if m.fleet, err = New(Options{Deadline: 15 * time.Second}); err != nil {
		return err
	}
	defer m.fleet.Close()
	if m.snaps, err = Watch[things](m.fleet.ctx, m.fleet); err != nil {
		return err
	}
	defer m.snaps.Close()
	for i, s := range steps {
		if err := m.do(s); err != nil {
			return fmt.Errorf("step %d, %+v: %w", i, s, err)
		}
		taken()
	}
	return m.settle()
}

// modelMapper knows the kinds of the models. One that knows all kinds of Kubernetes, and a fake of
// package katestest for each cluster, would take most of the models' time.
var modelMapper = sync.OnceValue(func() meta.RESTMapper {
	v1 := schema.GroupVersion{Version: "v1"}
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1})
	m.Add(v1.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	m.Add(v1.WithKind("Service"), meta.RESTScopeNamespace)
	m.Add(v1.WithKind("Namespace"), meta.RESTScopeRoot)
	return m
})

// newFake makes a cluster with an object of each kind that stays.
func (m *fleetModel) newFake(i int) (*katestest.Fake, error) {
	var objects []runtime.Object
	for kind, name := range map[string]string{"Namespace": "kube-system", "ConfigMap": "keep", "Service": "keep"} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		o.SetName(name)
		o.SetUID(types.UID(fmt.Sprint(kind, " of ", i)))
		if kind != "Namespace" {
			o.SetNamespace("default")
		}
		objects = append(objects, o)
	}
	k, err := newModelFake(objects...)
	if err != nil {
		return nil, err
	}
	m.fakes[i] = k
	for _, verb := range []string{"get", "list"} {
		on(k, verb, "*", &m.down[i], errors.New("connection refused"))
	}
	return k, nil
}

// newModelFake makes a cluster of the few kinds that the models have, whose client logs nothing.
func newModelFake(objects ...runtime.Object) (*katestest.Fake, error) {
	k := &katestest.Fake{Mapper: modelMapper()}
	k.Dynamic = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		resourceOf("configmaps"): "ConfigMapList", resourceOf("services"): "ServiceList", resourceOf("namespaces"): "NamespaceList",
	}, objects...)
	var err error
	k.Client, err = kates.NewClientFromDynamic(k.Dynamic, k.Mapper, kates.WithLogger(slog.New(slog.DiscardHandler)))
	return k, err
}

func (m *fleetModel) do(s modelStep) error {
	k := m.fakes[s.fake]
	var err error
	switch s.action {
	case "join":
		if was, is := m.members[s.name]; !is || was != s.fake {
			err = m.join(s.name, s.fake)
		}
	case "remove":
		m.remove(s.name)
	case "again": // nobody has seen the name leave
		m.remove(s.name)
		err = m.join(s.name, s.fake)
	case "fail", "heal":
		m.down[s.fake].Store(s.action == "fail")
	case "write":
		err = m.write(s)
	case "delete":
		err = k.Dynamic.Resource(resourceOf(s.kind)).Namespace("default").Delete(m.fleet.ctx, s.object, metav1.DeleteOptions{})
		if kates.IsNotFound(err) {
			err = nil
		}
	case "own":
		err = m.writeOwn(s)
	case "wait":
		time.Sleep(time.Duration(s.seconds) * time.Second)
	}
	if err != nil {
		return err
	}
	synctest.Wait() // the fake cannot bear another writer before its watches are read
	if m.unseen--; m.unseen >= 0 && s.action != "look" {
		return nil
	}
	m.unseen = s.unseen
	return m.look()
}

func (m *fleetModel) join(name string, fake int) error {
	m.left(name)
	m.members[name] = fake
	return m.fleet.Set(Member{Name: name, Client: m.fakes[fake].Client})
}

func (m *fleetModel) remove(name string) {
	m.fleet.Remove(name)
	delete(m.members, name)
	m.left(name)
}

// left forgets what another cluster under the name may take back.
func (m *fleetModel) left(name string) {
	delete(m.own, name)
	maps.DeleteFunc(m.newest, func(id string, _ version) bool { return id[:1] == name })
}

func resourceOf(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: kind}
}

// next returns an object that is newer than all.
func (m *fleetModel) next(kind, name string, uid types.UID) *unstructured.Unstructured {
	m.made++
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	if kind == "services" {
		o.SetKind("Service")
	}
	o.SetNamespace("default")
	o.SetName(name)
	if uid == "" {
		uid = types.UID(fmt.Sprintf("%06d", m.made))
	}
	o.SetUID(uid)
	o.SetAnnotations(map[string]string{"round": fmt.Sprintf("%06d", m.made)})
	return o
}

// write creates or changes an object as another program.
func (m *fleetModel) write(s modelStep) error {
	objects := m.fakes[s.fake].Dynamic.Resource(resourceOf(s.kind)).Namespace("default")
	down := m.down[s.fake].Swap(false) // the model writes anyway
	defer m.down[s.fake].Store(down)
	present, err := objects.Get(m.fleet.ctx, s.object, metav1.GetOptions{})
	if kates.IsNotFound(err) {
		_, err = objects.Create(m.fleet.ctx, m.next(s.kind, s.object, ""), metav1.CreateOptions{})
		return err
	}
	if err == nil {
		_, err = objects.Update(m.fleet.ctx, m.next(s.kind, s.object, present.GetUID()), metav1.UpdateOptions{})
	}
	m.forget(s.fake, s.kind, s.object)
	return err
}

// forget notes that others write to an object of a cluster after the fleet's client.
func (m *fleetModel) forget(fake int, kind, object string) {
	for name, of := range m.members {
		if of == fake {
			delete(m.own[name], kind+" "+object)
		}
	}
}

// writeOwn creates an object of its own name through the fleet's client.
func (m *fleetModel) writeOwn(s modelStep) error {
	behind, is := m.members[s.name]
	c := m.fleet.Cluster(s.name)
	if !is || c == nil || c.Client() != m.fakes[behind].Client {
		return nil // not looked after yet
	}
	m.made++
	o := m.next(s.kind, fmt.Sprintf("own-%s-%06d", s.name, m.made), "")
	if err := c.Client().Create(m.fleet.ctx, o, nil); err != nil {
		return err
	}
	if m.own[s.name] == nil {
		m.own[s.name] = make(map[string]version)
	}
	m.own[s.name][s.kind+" "+o.GetName()] = version{o.GetUID(), o.GetAnnotations()["round"]}
	if m.unseen > 0 {
		return nil
	}
	return m.look() // before the watch has the event
}

func versionOf(o metav1.Object) version { return version{o.GetUID(), o.GetAnnotations()["round"]} }

// look reads a snapshot and checks it.
func (m *fleetModel) look() error {
	snap := new(things)
	changed, err := m.snaps.Update(m.fleet.ctx, snap)
	if err != nil {
		return err
	}
	if !changed {
		if m.last != nil && (len(snap.Deltas) > 0 || snap.text() != m.last.text()) {
			return fmt.Errorf("nothing has changed, but %s is now %s, by %d deltas", m.last.text(), snap.text(), len(snap.Deltas))
		}
		return nil
	}
	if err := m.replay(snap); err != nil {
		return err
	}
	for name := range snap.Maps {
		if err := m.check(name, snap); err != nil {
			return fmt.Errorf("cluster %q: %w\n%s", name, err, snap.text())
		}
	}
	if err := errors.Join(m.gap(snap), m.sharing(snap)); err != nil {
		return err
	}
	m.last = snap
	return nil
}

// replay checks G7: the deltas say which objects come, go and change, and no others.
func (m *fleetModel) replay(snap *things) error {
	now := snap.versions()
	next := maps.Clone(m.shown)
	for _, d := range snap.Deltas {
		key := d.Cluster + " " + d.Query + " " + d.Name
		before, had := next[key]
		switch {
		case d.DeltaType == kates.ObjectDelete:
			if !had || before.uid != d.UID {
				return fmt.Errorf("G7: %s %s is deleted, and was %v", key, d.UID, before)
			}
			delete(next, key)
			continue
		case d.DeltaType == kates.ObjectAdd && had, d.DeltaType == kates.ObjectUpdate && before.uid != d.UID, now[key].uid != d.UID:
			return fmt.Errorf("G7: %s of %s %s, which was %v and is %v", d.DeltaType, key, d.UID, before, now[key])
		case before == now[key]:
			return fmt.Errorf("G7: %s of %s, which has not changed", d.DeltaType, key)
		}
		id := d.Cluster + " " + string(d.UID)
		if last, was := m.newest[id]; was && last.round >= now[key].round && last.round != "" {
			return fmt.Errorf("G5: %s is %v after %v", key, now[key], last)
		}
		next[key], m.newest[id] = now[key], now[key]
	}
	if !maps.Equal(now, next) {
		return fmt.Errorf("G7: by the deltas it is %v, and the snapshot is %v", next, now)
	}
	m.shown = now
	return ordered(snap)
}
