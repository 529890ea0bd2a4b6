package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
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

	"github.com/kates-go/kates/internal/suite/rounds"
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
}

func drawModelStep(t *rapid.T) modelStep {
	return modelStep{
		action: rapid.SampledFrom([]string{
			"join", "join", "remove", "fail", "heal", "write", "write", "write", "delete", "own", "own", "wait", "look", "look",
		}).Draw(t, "action"),
		name:    rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
		fake:    rapid.IntRange(0, modelFakes-1).Draw(t, "fake"),
		kind:    rapid.SampledFrom([]string{"configmaps", "services"}).Draw(t, "kind"),
		object:  rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "object"),
		seconds: rapid.SampledFrom([]int{0, 1, 3, 20, 60}).Draw(t, "seconds"),
	}
}

const modelFakes = 4

// version is an object's identity, and how often it was written.
type version struct {
	uid   types.UID
	round string
}

// fleetModel has clusters come, go, take others' names, fail and heal, and checks each snapshot.
type fleetModel struct {
	fleet *Fleet
	snaps *Snapshots[things]
	fakes [modelFakes]*katestest.Fake
	down  [modelFakes]atomic.Bool
	made  int // objects and versions

	members map[string]int                // by name, the fake behind it
	own     map[string]map[string]version // by name and object, own writes to the present cluster
	last    *things
	shown   map[string]version // by the deltas
	newest  map[string]version // by name and UID, since the name came or changed
}

func TestG1G4G5G6G7G9ModelOfAFleet(t *testing.T) {
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

// modelMapper knows the kinds. A fake of package katestest, which knows all kinds of Kubernetes,
// would take most of the model's time.
var modelMapper = sync.OnceValues(func() (meta.RESTMapper, error) { return katestest.NewMapper() })

// newFake makes a cluster with an object of each kind that stays.
func (m *fleetModel) newFake(i int) (*katestest.Fake, error) {
	mapper, err := modelMapper()
	if err != nil {
		return nil, err
	}
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
	k := &katestest.Fake{Mapper: mapper}
	k.Dynamic = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		resourceOf("configmaps"): "ConfigMapList", resourceOf("services"): "ServiceList", resourceOf("namespaces"): "NamespaceList",
	}, objects...)
	if k.Client, err = kates.NewClientFromDynamic(k.Dynamic, k.Mapper); err != nil {
		return nil, err
	}
	m.fakes[i] = k
	for _, verb := range []string{"get", "list"} {
		on(k, verb, "*", &m.down[i], errors.New("connection refused"))
	}
	return k, nil
}

func (m *fleetModel) do(s modelStep) error {
	k := m.fakes[s.fake]
	var err error
	switch s.action {
	case "join":
		if was, is := m.members[s.name]; !is || was != s.fake {
			m.left(s.name)
			m.members[s.name] = s.fake
			err = m.fleet.Set(Member{Name: s.name, Client: k.Client})
		}
	case "remove":
		m.fleet.Remove(s.name)
		delete(m.members, s.name)
		m.left(s.name)
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
	return m.look()
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
	return m.look()
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

func (t *things) versions() map[string]version {
	all := make(map[string]version)
	for name, objects := range t.Maps {
		for _, o := range objects {
			all[name+" Maps "+o.Name] = versionOf(o)
		}
	}
	for _, o := range t.Services {
		all[o.Cluster+" Services "+o.Object.Name] = versionOf(o.Object)
	}
	return all
}

// ordered checks G9.
func ordered(snap *things) error {
	good := slices.IsSortedFunc(snap.Services, func(a, b Object[*kates.Service]) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	for _, objects := range snap.Maps {
		good = good && slices.IsSortedFunc(objects, func(a, b *kates.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
	}
	if !good {
		return fmt.Errorf("G9: %s", snap.text())
	}
	return nil
}

// check checks what is shown of one cluster: all of one cluster (G1), with own writes (G4).
func (m *fleetModel) check(name string, snap *things) error {
	var keep, also types.UID
	all := make(map[string]version)
	for _, o := range snap.Maps[name] {
		if all["configmaps "+o.Name] = versionOf(o); o.Name == "keep" {
			keep = o.UID
		}
	}
	for _, o := range snap.Services {
		if o.Cluster != name {
			continue
		}
		if all["services "+o.Object.Name] = versionOf(o.Object); o.Object.Name == "keep" {
			also = o.Object.UID
		}
	}
	of := -1
	for i := range m.fakes {
		if keep == types.UID(fmt.Sprint("ConfigMap of ", i)) && also == types.UID(fmt.Sprint("Service of ", i)) {
			of = i
		}
	}
	if of < 0 {
		return fmt.Errorf("G1: it shows %q and %q", keep, also)
	}
	behind, is := m.members[name]
	if !is {
		return errors.New("it has left")
	}
	if behind != of || slices.ContainsFunc(snap.Missing, func(x Missing) bool { return x.Cluster == name && x.Err == errNotYet }) {
		return nil // the former one, until the other is complete
	}
	for key, wrote := range m.own[name] {
		if all[key] != wrote {
			return fmt.Errorf("G4: own write %s %v is shown as %v", key, wrote, all[key])
		}
	}
	return nil
}

// gap checks that what was shown stays, and that what is not shown is missing.
func (m *fleetModel) gap(snap *things) error {
	missing := make(map[string]bool)
	for _, x := range snap.Missing {
		_, shown := snap.Maps[x.Cluster]
		_, is := m.members[x.Cluster]
		if missing[x.Cluster] || shown != x.Shown || !is || x.Err == nil || x.Since.IsZero() {
			return fmt.Errorf("missing: %+v, shown: %t", x, shown)
		}
		missing[x.Cluster] = true
	}
	for name := range m.members {
		_, shown := snap.Maps[name]
		if !shown && !missing[name] {
			return fmt.Errorf("G1: %s is neither shown nor missing: %s", name, snap.text())
		}
	}
	return nil
}

// sharing checks that what has not changed is the same slice.
func (m *fleetModel) sharing(snap *things) error {
	if m.last == nil {
		return nil
	}
	touched := make(map[string]bool)
	for _, d := range snap.Deltas {
		touched[d.Cluster+" "+d.Query] = true
		touched[d.Query] = true
	}
	for name, objects := range snap.Maps {
		before := m.last.Maps[name]
		if !touched[name+" Maps"] && len(before) > 0 && &before[0] != &objects[0] {
			return fmt.Errorf("%s's config maps have not changed, and are another slice", name)
		}
	}
	return nil
}

// settle heals all clusters, and checks that what is shown is what they hold (G6).
func (m *fleetModel) settle() error {
	for i := range m.down {
		m.down[i].Store(false)
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	if err := m.look(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	want := make(map[string]version)
	for name, i := range m.members {
		for kind, query := range map[string]string{"configmaps": "Maps", "services": "Services"} {
			list, err := m.fakes[i].Dynamic.Resource(resourceOf(kind)).List(m.fleet.ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, o := range list.Items {
				want[name+" "+query+" "+o.GetName()] = versionOf(&o)
			}
		}
	}
	if !maps.Equal(want, m.shown) || m.last == nil || len(m.last.Missing) > 0 {
		return fmt.Errorf("G6: the clusters hold %v, and shown is %v\n%s", want, m.shown, m.fleet.Status())
	}
	return nil
}
