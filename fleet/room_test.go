package fleet

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// boundedCluster makes a fake cluster with some configmaps, whose client may hold so many objects.
func boundedCluster(t *testing.T, uid types.UID, most, count int) *katestest.Fake {
	t.Helper()
	system := &kates.Namespace{}
	system.Name, system.UID = "kube-system", uid
	objects := []kates.Object{system}
	for i := range count {
		objects = append(objects, configMap(fmt.Sprint("m", i)))
	}
	return katestest.New(t, katestest.WithObjects(objects...), katestest.WithClientOptions(kates.WithMaxObjects(most)))
}

// says reports whether an error says that there is no room.
func says(err error) bool {
	return err != nil && strings.Contains(err.Error(), "all watches of this client together may hold 3: select fewer")
}

func TestG1G8AClusterPastItsBoundIsMissingAfterTheDeadlineAndHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Deadline: 5 * time.Second})
		a, b := boundedCluster(t, "1", 3, 5), boundedCluster(t, "2", 3, 3)
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		began := time.Now()
		s := watchThings(t, f)
		signalled(t, s.Changed())
		if d := time.Since(began); d < 5*time.Second || d > 6*time.Second {
			t.Errorf("the first snapshot came after %s", d)
		}
		snap := settled(t, s)
		expect(t, snap, "b/m0, b/m1, b/m2, missing a (false)")
		if len(snap.Missing) != 1 || !says(snap.Missing[0].Err) {
			t.Errorf("why it is missing: %+v", snap.Missing)
		}
		status := f.Status()
		if !says(status.Err()) || !says(status.Clusters[0].Watches.Err()) || status.Clusters[1].Watches.Err() != nil {
			t.Errorf("%v\n%s", status.Err(), status)
		}
		for _, name := range []string{"m0", "m1"} {
			if err := a.Client.Delete(t.Context(), configMap(name), nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		expect(t, settled(t, s), "a/m2, a/m3, a/m4, b/m0, b/m1, b/m2")
		if err := f.Status().Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestG5G8AClusterThatGrowsPastItsBoundKeepsWhatItShowedAndDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Deadline: 5 * time.Second})
		a, b := boundedCluster(t, "1", 3, 3), boundedCluster(t, "2", 3, 1)
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		s := watchThings(t, f)
		one := settled(t, s)
		expect(t, one, "a/m0, a/m1, a/m2, b/m0")
		outside, err := kates.NewClientFromDynamic(a.Dynamic, a.Mapper) // another program's
		if err != nil {
			t.Fatal(err)
		}
		defer outside.Close()
		for i := range 5 {
			if err := outside.Create(t.Context(), configMap(fmt.Sprint("runaway", i)), nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		two := settled(t, s)
		expect(t, two, "a/m0, a/m1, a/m2, b/m0, missing a (true)")
		if len(two.Missing) != 1 || !says(two.Missing[0].Err) || !says(f.Status().Err()) {
			t.Errorf("%+v, %v", two.Missing, f.Status().Err())
		}
		if &one.Maps["a"][0] != &two.Maps["a"][0] {
			t.Error("what was shown was made anew")
		}
		if err := b.Client.Create(t.Context(), configMap("new"), nil); err != nil {
			t.Fatal(err)
		}
		expect(t, settled(t, s), "a/m0, a/m1, a/m2, b/m0, b/new, missing a (true)")
		for i := range 5 {
			if err := outside.Delete(t.Context(), configMap(fmt.Sprint("runaway", i)), nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		expect(t, settled(t, s), "a/m0, a/m1, a/m2, b/m0, b/new")
	})
}

// Options.Client makes the clients, and each has the bound for itself.
func TestG8EachClusterHasABoundOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Deadline: 5 * time.Second, Client: []kates.Option{kates.WithMaxObjects(3)}})
		for name, count := range map[string]int{"a": 5, "b": 3, "c": 2} {
			w := newWired(t, name)
			for i := range count {
				w.put("configmaps", fmt.Sprint("m", i))
			}
			_ = f.Add(name, w.config())
		}
		s := watchThings(t, f)
		signalled(t, s.Changed())
		expect(t, settled(t, s), "b/m0, b/m1, b/m2, c/m0, c/m1, missing a (false)")
		if !says(f.Status().Clusters[0].Watches.Err()) {
			t.Error(f.Status())
		}
	})
}
