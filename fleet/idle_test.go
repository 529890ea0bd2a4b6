package fleet

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestAnUpdateAsksNoClusterThatHasNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		for i := range 20 {
			k := katestest.New(t, katestest.WithoutMutationDetector(), // it compares in each Update
				katestest.WithObjects(configMap("x"), service("s"), systemOf(types.UID(fmt.Sprint(i)))))
			_ = f.Set(Member{Name: fmt.Sprint(i), Client: k.Client})
		}
		s := watchThings(t, f)
		snap := settled(t, s)
		if n := rounds.Allocs(10, func() { _, _ = s.Update(t.Context(), snap) }); n > 5 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestG2G4AFleetsSnapshotShowsWhatIsWorthNoSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		quiet := katestest.New(t, katestest.WithClientOptions(kates.WithQuietOwnWrites()))
		dropped := newCluster(t, "2")
		_ = f.Set(Member{Name: "a", Client: quiet.Client})
		_ = f.Set(Member{Name: "b", Client: dropped.Client})
		never := kates.SignalOf(func(_, _ metav1.Object) bool { return false })
		s := watchThings(t, f, kates.Query{Name: "Services", Signal: never})
		expect(t, settled(t, s), "a/-, b/-")
		signalled(t, s.Changed())
		for client, o := range map[*kates.Client]kates.Object{quiet.Client: configMap("x"), dropped.Client: service("y")} {
			if err := client.Create(t.Context(), o, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		select {
		case <-s.Changed():
			t.Error("it is worth a signal")
		default:
		}
		var snap things
		if changed, err := s.Update(t.Context(), &snap); !changed || err != nil {
			t.Error(changed, err)
		}
		expect(t, &snap, "a/x, b/-, b/svc/y")
	})
}

// meddling is a type of objects. As long as one is made, something happens.
type meddling struct{ kates.ConfigMap }

var meddle atomic.Pointer[func()]

func (m *meddling) UnmarshalJSON([]byte) error {
	if do := meddle.Load(); do != nil {
		(*do)()
	}
	return nil
}

func TestG2AChangeDuringAnUpdateOfAFleetIsInTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1")
		_ = f.Set(Member{Name: "a", Client: a.Client})
		s, err := Watch[struct {
			Maps     map[string][]meddling `kates:"configmaps"`
			Services map[string][]*kates.Service
		}](t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		signalled(t, s.Changed())
		write := func() {
			meddle.Store(nil)
			if err := a.Client.Create(t.Context(), service("s"), nil); err != nil {
				t.Error(err)
			}
		}
		meddle.Store(&write)
		if err := a.Client.Create(t.Context(), configMap("x"), nil); err != nil {
			t.Fatal(err)
		}
		snap := struct {
			Maps     map[string][]meddling `kates:"configmaps"`
			Services map[string][]*kates.Service
		}{}
		for _, services := range []int{0, 1} {
			if changed, err := s.Update(t.Context(), &snap); !changed || err != nil {
				t.Error(changed, err)
			}
			if n := len(snap.Services["a"]); n != services {
				t.Errorf("%d services, and not %d", n, services)
			}
		}
	})
}

func TestAFleetsSnapshotSaysThatAClientWasClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		s := watchThings(t, f)
		expect(t, settled(t, s), "a/x")
		settled(t, s)
		a.Client.Close()
		var snap things
		for range 2 {
			if _, err := s.Update(t.Context(), &snap); err != nil {
				t.Fatal(err)
			}
			expect(t, &snap, "a/x, missing a (true)")
		}
	})
}
