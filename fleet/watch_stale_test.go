package fleet

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/kates"
)

func TestAHungClusterHoldsTheFirstSnapshotForTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Deadline: 5 * time.Second})
		well := newCluster(t, "2", configMap("x"))
		_ = f.Add("a", hung())
		_ = f.Set(Member{Name: "b", Client: well.Client})
		began := time.Now()
		s := watchThings(t, f)
		select {
		case <-s.Changed():
		case <-time.After(time.Minute):
			t.Fatalf("%v %s", s.Ready(), f.Status())
		}
		if d := time.Since(began); d < 5*time.Second || d > 6*time.Second {
			t.Errorf("the first snapshot came after %s", d)
		}
		var snap things
		if _, err := s.Update(t.Context(), &snap); err != nil {
			t.Fatal(err)
		}
		expect(t, &snap, "b/x, missing a (false)")
	})
}

func TestAClusterThatDoesNotAnswerHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		dead, well := newCluster(t, "1"), newCluster(t, "2", configMap("x"))
		var down atomic.Bool
		down.Store(true)
		on(dead, "*", "*", &down, errors.New("connection refused"))
		_ = f.Set(Member{Name: "a", Client: dead.Client})
		_ = f.Set(Member{Name: "b", Client: well.Client})
		began := time.Now()
		s := watchThings(t, f)
		if err := s.Ready(); err == nil {
			t.Error("ready at once")
		}
		signalled(t, s.Changed())
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("the first snapshot came after %s", d)
		}
		expect(t, settled(t, s), "b/x, missing a (false)")
		down.Store(false)
		time.Sleep(2 * time.Minute)
		expect(t, settled(t, s), "a/-, b/x")
	})
}

func TestG5AStaleClusterKeepsItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1", configMap("x"))
		var down atomic.Bool
		on(a, "*", "*", &down, errors.New("connection refused"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		s := watchThings(t, f)
		expect(t, settled(t, s), "a/x")
		down.Store(true)
		time.Sleep(30 * time.Second)
		snap := settled(t, s)
		expect(t, snap, "a/x, missing a (true)")
		if m := snap.Missing[0]; m.Since.IsZero() || time.Since(m.Since) > time.Minute || m.Err == nil {
			t.Errorf("%+v", m)
		}
		time.Sleep(time.Hour)
		expect(t, settled(t, s), "a/x, missing a (true)")
		down.Store(false)
		time.Sleep(2 * time.Minute)
		expect(t, settled(t, s), "a/x")
	})
}

func TestG5TheObjectsOfAnotherClusterReplaceTheFormerOnesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b := newCluster(t, "1", configMap("x"), service("s")), newCluster(t, "2", configMap("x"), service("s"))
		var refused atomic.Bool
		refused.Store(true)
		on(b, "list", "services", &refused, errors.New("not now"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		s := watchThings(t, f)
		one := settled(t, s)
		_ = f.Set(Member{Name: "a", Client: b.Client})
		snap := settled(t, s)
		expect(t, snap, "a/svc/s, a/x, missing a (true)")
		if snap.Maps["a"][0] != one.Maps["a"][0] {
			t.Error("objects of the new one are shown before it is complete")
		}
		refused.Store(false)
		time.Sleep(time.Minute)
		snap = settled(t, s)
		expect(t, snap, "a/svc/s, a/x")
		if snap.Maps["a"][0] == one.Maps["a"][0] {
			t.Error("the former one's objects are still shown")
		}
		var types []kates.DeltaType
		for _, d := range snap.Deltas {
			types = append(types, d.DeltaType)
		}
		if !slices.Equal(types, []kates.DeltaType{kates.ObjectDelete, kates.ObjectAdd, kates.ObjectDelete, kates.ObjectAdd}) {
			t.Errorf("deltas: %v", types)
		}
	})
}

func TestG8WhatIsWrongInOneClusterIsReportedWithIt(t *testing.T) {
	type strict struct {
		Maps map[string][]struct {
			Data map[string]int `json:"data"`
		} `kates:"configmaps"`
		Missing []Missing
		Invalid []Invalid
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		bad := configMap("bad")
		bad.Data = map[string]string{"x": "no number"}
		a, b := newCluster(t, "1", bad, configMap("good")), newCluster(t, "2", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		s, err := Watch[strict](t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		signalled(t, s.Changed())
		var snap strict
		if _, err := s.Update(t.Context(), &snap); err != nil {
			t.Fatal(err)
		}
		if len(snap.Maps["a"]) != 1 || len(snap.Maps["b"]) != 1 || len(snap.Invalid) != 1 ||
			snap.Invalid[0].Cluster != "a" || snap.Invalid[0].Object.GetName() != "bad" {
			t.Errorf("%+v", snap)
		}
	})
}

// Nothing signals that a watch does not come back: the fleet looks for it.
func TestAWatchThatLagsThoughItsClusterAnswersIsSignalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Client: []kates.Option{kates.WithLogger(slog.New(slog.DiscardHandler))}})
		a := newWired(t, "a")
		a.put("configmaps", "x")
		_ = f.Add("a", a.config())
		s := watchThings(t, f)
		expect(t, settled(t, s), "a/x")
		signalled(t, s.Changed())
		a.tell(func(w http.ResponseWriter, r *http.Request) bool {
			if asksFor(r) != "configmaps" {
				return false
			}
			refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable")
			return true
		})
		signalled(t, s.Changed())
		expect(t, settled(t, s), "a/x, missing a (true)")
		a.tell(nil)
		signalled(t, s.Changed())
		expect(t, settled(t, s), "a/x")
	})
}
