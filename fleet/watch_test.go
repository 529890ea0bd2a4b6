package fleet

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type things struct {
	Maps     map[string][]*kates.ConfigMap
	Services []Object[*kates.Service]
	Missing  []Missing
	Deltas   []*Delta
	Invalid  []Invalid
	Own      string `kates:"-"`
}

func configMap(name string) *kates.ConfigMap {
	m := &kates.ConfigMap{}
	m.Namespace, m.Name = "default", name
	return m
}

func service(name string) *kates.Service {
	s := &kates.Service{}
	s.Namespace, s.Name = "default", name
	return s
}

// text is a snapshot in a form that is easy to compare.
func (t *things) text() string {
	var all []string
	for cluster, maps := range t.Maps {
		for _, m := range maps {
			all = append(all, cluster+"/"+m.Name)
		}
		if len(maps) == 0 {
			all = append(all, cluster+"/-")
		}
	}
	for _, s := range t.Services {
		all = append(all, s.Cluster+"/svc/"+s.Object.Name)
	}
	for _, m := range t.Missing {
		all = append(all, fmt.Sprintf("missing %s (%t)", m.Cluster, m.Shown))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// watchThings watches, and ends with the test.
func watchThings(t *testing.T, f *Fleet, queries ...kates.Query) *Snapshots[things] {
	t.Helper()
	s, err := Watch[things](context.Background(), f, queries...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// settled waits for all that is under way, two intervals included, and returns the snapshot.
func settled(t *testing.T, s *Snapshots[things]) *things {
	t.Helper()
	time.Sleep(3 * time.Second)
	synctest.Wait()
	snap := new(things)
	if _, err := s.Update(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
	return snap
}

func expect(t *testing.T, snap *things, want string) {
	t.Helper()
	if got := snap.text(); got != want {
		t.Errorf("the snapshot is\n  %s, not\n  %s", got, want)
	}
}

// on has a fake answer a verb for a resource by an error while a flag is set.
func on(k *katestest.Fake, verb, resource string, failing *atomic.Bool, err error) {
	k.Dynamic.Lock()
	defer k.Dynamic.Unlock()
	k.Dynamic.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return failing.Load(), nil, err
	})
}

func TestG1AFleetsSnapshotHasAllClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		for _, name := range []string{"b", "a", "c"} {
			k := newCluster(t, types.UID(name), configMap(name+"1"), configMap(name+"2"), service("s"))
			if name == "c" {
				k = newCluster(t, "c")
			}
			_ = f.Set(Member{Name: name, Client: k.Client})
		}
		s := watchThings(t, f)
		signalled(t, s.Changed())
		snap := &things{Own: "mine"}
		if changed, err := s.Update(t.Context(), snap); !changed || err != nil {
			t.Fatal(changed, err)
		}
		expect(t, snap, "a/a1, a/a2, a/svc/s, b/b1, b/b2, b/svc/s, c/-")
		if snap.Own != "mine" || s.Ready() != nil || len(snap.Deltas) != 6 {
			t.Errorf("%q, %v, %d deltas", snap.Own, s.Ready(), len(snap.Deltas))
		}
		if changed, err := s.Update(t.Context(), snap); changed || err != nil || len(snap.Deltas) != 0 {
			t.Errorf("nothing has changed: %t, %v, %v", changed, err, snap.Deltas)
		}
	})
}

func TestG4AFleetsSnapshotShowsOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b := newCluster(t, "1"), newCluster(t, "2", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		s := watchThings(t, f)
		expect(t, settled(t, s), "a/-, b/x")
		if err := errors.Join(
			f.Cluster("a").Client().Create(t.Context(), configMap("y"), nil), b.Client.Delete(t.Context(), configMap("x"), nil),
		); err != nil {
			t.Fatal(err)
		}
		var snap things
		if changed, err := s.Update(t.Context(), &snap); !changed || err != nil {
			t.Fatal(changed, err)
		}
		expect(t, &snap, "a/y, b/-")
	})
}

// What has not changed is the same slice, or the same map.
func TestAFleetsSnapshotSharesWhatHasNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b := newCluster(t, "1", configMap("x"), service("s")), newCluster(t, "2", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		s := watchThings(t, f)
		one := settled(t, s)
		if err := a.Client.Create(t.Context(), configMap("y"), nil); err != nil {
			t.Fatal(err)
		}
		two := settled(t, s)
		expect(t, two, "a/svc/s, a/x, a/y, b/x")
		if &one.Services[0] != &two.Services[0] || &one.Maps["b"][0] != &two.Maps["b"][0] {
			t.Error("what has not changed was made anew")
		}
		if len(one.Maps["a"]) != 1 {
			t.Error("an older snapshot has changed")
		}
	})
}

func TestClustersOfASnapshotComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		s := watchThings(t, f)
		expect(t, settled(t, s), "")
		a := newCluster(t, "1", configMap("x"), service("s"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		snap := settled(t, s)
		expect(t, snap, "a/svc/s, a/x")
		if len(snap.Deltas) != 2 || snap.Deltas[0].Cluster != "a" || snap.Deltas[0].DeltaType != kates.ObjectAdd {
			t.Errorf("deltas: %v", snap.Deltas)
		}
		_ = f.Set(Member{Name: "b", Client: newCluster(t, "2", configMap("y")).Client})
		expect(t, settled(t, s), "a/svc/s, a/x, b/y")
		f.Remove("b")
		expect(t, settled(t, s), "a/svc/s, a/x")
		f.Remove("a")
		snap = settled(t, s)
		expect(t, snap, "")
		if len(snap.Deltas) != 2 || snap.Deltas[1].DeltaType != kates.ObjectDelete || snap.Deltas[1].Name != "s" {
			t.Errorf("deltas: %v", snap.Deltas)
		}
		atRest()
		if n := len(a.Client.Status().Queries); n > 0 {
			t.Errorf("%d watches are left in a cluster that has left", n)
		}
	})
}

// All kinds of a cluster that comes later are in one snapshot.
func TestG1AClusterThatComesLaterIsShownWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		s := watchThings(t, f)
		settled(t, s)
		a := newCluster(t, "1", configMap("x"), service("s"))
		var refused atomic.Bool
		refused.Store(true)
		on(a, "list", "services", &refused, errors.New("not now"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		snap := settled(t, s)
		expect(t, snap, "missing a (false)")
		if err := snap.Missing[0].Err; err == nil || !strings.Contains(err.Error(), "not now") {
			t.Errorf("why it is missing: %v", err)
		}
		refused.Store(false)
		time.Sleep(time.Minute)
		expect(t, settled(t, s), "a/svc/s, a/x")
	})
}

// There is no snapshot of a fleet before its sources have spoken: an outage of the home cluster
// does not look like an empty fleet.
func TestG1NoSnapshotBeforeTheSourcesHaveSpoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := make(scripted)
		f := newFleet(t, Options{Sources: []Source{source}})
		s := watchThings(t, f)
		time.Sleep(time.Hour)
		synctest.Wait()
		if changed, err := s.Update(t.Context(), new(things)); changed || err != nil || s.Ready() == nil {
			t.Fatal(changed, err, s.Ready())
		}
		source <- nil
		signalled(t, s.Changed())
		expect(t, settled(t, s), "")
	})
}

func TestStructsThatMakeNoSenseAreErrors(t *testing.T) {
	f := newFleet(t, Options{})
	fails := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	_, err := Watch[struct{ Maps []*kates.ConfigMap }](t.Context(), f)
	fails("field Maps: the type []*v1.ConfigMap does not say which cluster", err)
	_, err = Watch[struct{ Gone []*Missing }](t.Context(), f)
	fails("field Gone has type []*fleet.Missing: want []fleet.Missing", err)
	_, err = Watch[struct{ Changes []Delta }](t.Context(), f)
	fails("field Changes has type []fleet.Delta: want []*fleet.Delta", err)
	_, err = Watch[struct{ Changes []*kates.Delta }](t.Context(), f)
	fails("field Changes has type []*kates.Delta: want []*fleet.Delta", err)
	_, err = Watch[struct{ Bad map[string][]kates.Invalid }](t.Context(), f)
	fails("field Bad has type map[string][]kates.Invalid: want []fleet.Invalid", err)
	_, err = Watch[struct{ maps map[string][]*kates.ConfigMap }](t.Context(), f)
	fails("no field says what to watch: not exported are maps", err)
	_, err = Watch[struct{}](t.Context(), f)
	fails("no field says what to watch", err)
	_, err = Watch[int](t.Context(), f)
	fails("a snapshot is a struct", err)
	_, err = Watch[things](t.Context(), nil)
	fails("the fleet is nil", err)
	_, err = Watch[things](t.Context(), f, kates.Query{Name: "Pods"})
	fails(`query "Pods": fleet.things has no field of that name`, err)
	_, err = Watch[things](t.Context(), f, kates.Query{Name: "Maps"}, kates.Query{Name: "Maps"})
	fails("there are two of that name", err)
	_, err = Watch[struct {
		Maps map[string][]*kates.ConfigMap
		A, B []Missing
	}](t.Context(), f)
	fails("field B: there is another one for clusters that are missing", err)
	_, err = Watch[struct {
		maps map[string][]*kates.ConfigMap `kates:"configmaps"`
		X    []Missing
	}](t.Context(), f)
	fails("field maps has a kates tag but is not exported", err)
}

func TestG11AWatchOfAFleetEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(map[string]error)
		for name, end := range map[string]func(*Snapshots[things]){
			"close":   func(s *Snapshots[things]) { s.Close() },
			"context": func(*Snapshots[things]) { cancel() },
		} {
			life := ctx
			if name == "close" {
				life = t.Context()
			}
			s, err := Watch[things](life, f)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for snap, err := range s.All(context.Background()) {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				for _, err := range s.All(t.Context()) {
					if !errors.Is(err, kates.ErrSecondReader) {
						t.Errorf("%s: a second loop: %v", name, err)
					}
				}
				if _, err := s.Update(t.Context(), new(things)); !errors.Is(err, kates.ErrSecondReader) {
					t.Errorf("%s: a second reader: %v", name, err)
				}
				expect(t, snap, "a/x")
				n++
				end(s)
			}
			if n != 1 {
				t.Errorf("%s: %d snapshots", name, n)
			}
			_, ended[name] = s.Update(t.Context(), new(things))
			s.Close()
			if _, open := <-s.Changed(); open {
				<-s.Changed()
			}
		}
		if !errors.Is(ended["close"], kates.ErrClosed) || !errors.Is(ended["context"], context.Canceled) {
			t.Error(ended)
		}
		s, _ := Watch[things](t.Context(), f)
		f.Close()
		for range s.All(t.Context()) {
		}
		if _, err := s.Update(t.Context(), new(things)); !errors.Is(err, kates.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestAnEndWithoutASnapshotSaysWhatWasMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1")
		var refused atomic.Bool
		refused.Store(true)
		on(a, "list", "services", &refused, errors.New("not now"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s, err := Watch[things](ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, err = range s.All(context.Background()) {
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `cluster "a"`) {
			t.Error(err)
		}
	})
}

func TestObjectTypes(t *testing.T) {
	if objectType(reflect.TypeFor[Object[*kates.Service]]()) != reflect.TypeFor[*kates.Service]() || objectType(reflect.TypeFor[Missing]()) != nil {
		t.Error("the type of an Object is not recognised")
	}
}

func TestFieldsOfAFleetThatAreNotExportedAreLogged(t *testing.T) {
	var lines []string
	f := newFleet(t, logging(func(line string) { lines = append(lines, line) }))
	type snapshot struct {
		Maps     map[string][]*kates.ConfigMap
		services map[string][]*kates.Service
		missing  []Missing
		names    map[string][]string
	}
	_ = []any{snapshot{}.services, snapshot{}.missing, snapshot{}.names}
	w, err := Watch[snapshot](t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	const want = `"msg"="fields are not filled, because they are not exported" "type"="fleet.snapshot" "fields"=["services" "missing"]`
	if all := strings.Join(lines, "\n"); strings.Count(all, want) != 1 {
		t.Errorf("%s\nnot once: %s", all, want)
	}
}
