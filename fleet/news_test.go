package fleet

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// A hundred clusters that are added one by one are not all asked a hundred times.
func TestWhatASourceSaysAgainIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := make(scripted)
		f := newFleet(t, Options{Sources: []Source{script}})
		k := newCluster(t, "1")
		var asked atomic.Int32
		onGet(k, func() (bool, error) { asked.Add(1); return false, nil })
		all := []Member{{Name: "a", Client: k.Client, Labels: map[string]string{"x": "1"}}}
		for range 3 {
			script <- all
			synctest.Wait()
		}
		_ = f.Set(Member{Name: "b", Client: newCluster(t, "2").Client})
		synctest.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("the cluster was asked %d times", n)
		}
		script <- []Member{{Name: "a", Client: k.Client, Labels: map[string]string{"x": "2"}}}
		synctest.Wait()
		if l := f.Cluster("a").Labels()["x"]; l != "2" {
			t.Errorf("a change is no news: %s", l)
		}
	})
}

func TestAFleetCopiesWhatASourceSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := make(scripted)
		f := newFleet(t, Options{Sources: []Source{script}})
		if err := f.Add("nothing", nil); err == nil {
			t.Error("a cluster without a configuration is accepted")
		}
		m := Member{Name: "a", Config: hung(), Labels: map[string]string{"x": "1"}}
		script <- []Member{m}
		synctest.Wait()
		c := f.Cluster("a")
		m.Labels["x"], m.Config.Host = "2", "http://elsewhere"
		if c.Labels()["x"] != "1" {
			t.Error("the labels are the source's own")
		}
		script <- []Member{m}
		eventually(t, f, "the change is seen", func() bool { return f.Cluster("a").Labels()["x"] == "2" })
	})
}

// asking is a source whose name asks the fleet.
type asking struct {
	scripted
	fleet *Fleet
}

func (a *asking) String() string {
	if a.fleet != nil {
		_ = a.fleet.Clusters()
	}
	return "one that asks"
}

func TestASourceIsNotCalledWithLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, other := &asking{scripted: make(scripted)}, make(scripted)
		f := newFleet(t, Options{Sources: []Source{other, a}})
		a.fleet = f
		k := newCluster(t, "1").Client
		other <- []Member{{Name: "x", Client: k}}
		a.scripted <- []Member{{Name: "x", Client: k}}
		synctest.Wait()
		if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), "the one of one that asks is left out") {
			t.Errorf("the status: %v", err)
		}
		// When the earlier one says no more of it, nothing is wrong any more.
		other <- nil
		synctest.Wait()
		if err := f.Status().Err(); err != nil {
			t.Errorf("the status: %v", err)
		}
	})
}

func TestG11CloseWaitsForAClusterThatIsAddedMeanwhile(t *testing.T) {
	f := newFleet(t, Options{})
	f.mu.Lock() // as Set, between its look at whether the fleet lives and its goroutine
	go f.Close()
	for range 10_000 {
		runtime.Gosched()
	}
	ended := f.ctx.Err() != nil
	f.mu.Unlock()
	if ended {
		t.Error("the fleet has ended, and a goroutine may start")
	}
}

// The pauses of a cluster whose watch cannot be started do not depend on the others.
func TestAClusterThatComesAndGoesHurriesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		s, err := Watch[struct {
			Hosts map[string][]map[string]any `kates:"hosts.example.com"`
		}](t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_ = f.Set(Member{Name: "a", Client: newCluster(t, "1").Client}) // has no such kind
		synctest.Wait()
		s.mu.Lock()
		p := s.parts[0]
		s.mu.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		tries := 0
		last := p.failure.Load()
		for range 30 {
			f.signalNow() // as if something had happened to another cluster
			time.Sleep(time.Second)
			synctest.Wait()
			if now := p.failure.Load(); now != last {
				last = now
				tries++
			}
		}
		if tries > 1 {
			t.Errorf("%d tries in 30 seconds", tries)
		}
	})
}

// fading is a context that ends after it has been asked some times.
type fading struct {
	context.Context
	asked atomic.Int32
	after int32
}

func (f *fading) Err() error {
	if f.asked.Add(1) > f.after {
		return context.Canceled
	}
	return nil
}

func (f *fading) Done() <-chan struct{} { return make(chan struct{}) }

// If the context of Update ends while it takes what is new, no change gets lost, and no cluster
// seems to fail.
func TestG7DeltasAreExactThoughAnUpdateIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1")
		_ = f.Set(Member{Name: "a", Client: a.Client})
		s := watchThings(t, f)
		settled(t, s)
		snap := new(things)
		for after := range int32(6) {
			shown := 0 // by the deltas
			if err := a.Client.Create(t.Context(), configMap("x"), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Update(&fading{Context: t.Context(), after: after}, snap); err == nil {
				expect(t, snap, "a/x")
				shown += replayed(t, snap.Deltas)
			}
			if err := a.Client.Delete(t.Context(), configMap("x"), nil); err != nil {
				t.Fatal(err)
			}
			snap = settled(t, s)
			expect(t, snap, "a/-")
			if shown += replayed(t, snap.Deltas); shown != 0 {
				t.Errorf("by the deltas there are %d objects, if the context ends after %d questions", shown, after)
			}
		}
	})
}

// replayed is by how many objects the deltas change what is there: one object at most.
func replayed(t *testing.T, deltas []*Delta) (n int) {
	t.Helper()
	if len(deltas) > 1 {
		t.Errorf("%d deltas of one object", len(deltas))
	}
	for _, d := range deltas {
		switch d.DeltaType {
		case kates.ObjectAdd:
			n++
		case kates.ObjectDelete:
			n--
		}
	}
	return n
}

// What is handed out has no room behind it, which would be the next snapshot's.
func TestG10SlicesOfASnapshotHaveNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Deadline: time.Second})
		for _, name := range []string{"a", "b", "c"} {
			_ = f.Add(name, hung())
		}
		_ = f.Set(Member{Name: "d", Client: newCluster(t, "1", configMap("x"), configMap("y"), configMap("z")).Client})
		s := watchThings(t, f)
		snap := settled(t, s)
		if cap(snap.Missing) != 3 || cap(snap.Deltas) != 3 || len(snap.Missing) != 3 || len(snap.Deltas) != 3 {
			t.Errorf("%d missing in %d, %d deltas in %d", len(snap.Missing), cap(snap.Missing), len(snap.Deltas), cap(snap.Deltas))
		}
	})
}

// The reason that Missing gives is the present one.
func TestMissingSaysWhyNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		s := watchThings(t, f)
		settled(t, s)
		_ = f.Add("a", &rest.Config{Host: "http://gone", Dial: hung().Dial})
		why := func() string { return settled(t, s).Missing[0].Err.Error() }
		if got := why(); !strings.Contains(got, "not begun") {
			t.Errorf("at first: %s", got)
		}
		time.Sleep(time.Minute)
		if got := why(); strings.Contains(got, "not begun") {
			t.Errorf("a minute later: %s", got)
		}
		script := make(scripted)
		g := newFleet(t, Options{Sources: []Source{script}})
		script <- []Member{{Name: "a", Err: errors.New("it does not parse")}}
		snap := settled(t, watchThings(t, g))
		if len(snap.Missing) != 1 || snap.Missing[0].Err == nil || !strings.Contains(snap.Missing[0].Err.Error(), "parse") {
			t.Errorf("%+v", snap.Missing)
		}
	})
}

// Each cluster's own watch signals at once: the interval of the whole counts alone.
func TestAChangeComesWithinOneInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Interval: 10 * time.Millisecond})
		a := newCluster(t, "1")
		_ = f.Set(Member{Name: "a", Client: a.Client})
		s := watchThings(t, f)
		settled(t, s)
		for _, name := range []string{"x", "y", "z"} {
			time.Sleep(100 * time.Millisecond)
			if err := a.Client.Create(t.Context(), configMap(name), nil); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			signalled(t, s.Changed())
			if d := time.Since(began); d > 10*time.Millisecond {
				t.Errorf("%s has come after %s", name, d)
			}
			_, _ = s.Update(t.Context(), new(things))
		}
	})
}

// A status says of a cluster both that it does not answer and that its newest configuration is not
// in use.
func TestTheStatusSaysAllThatIsWrong(t *testing.T) {
	s := Status{Clusters: []ClusterStatus{
		{Name: "a", Health: Health{Phase: Stale, Error: "refused", Rotation: "no key"}},
		{Name: "b", Health: Health{Rotation: "does not parse"}},
	}}
	for _, want := range []string{"refused; its newest configuration is not in use: no key", "no client"} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	if err := s.Err(); !strings.Contains(err.Error(), `cluster "b" has no configuration that can be used: does not parse`) {
		t.Error(err)
	}
}
