package fleet

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// Nobody sees a moment at which the one has left and the other has not come.
func TestTheKeysOfAClusterThatLeavesWhileAnotherComesAreCalledEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := make(scripted)
		f, o := newFleet(t, Options{Sources: []Source{script}}), newOutputs(t)
		a, b := newCluster(t, "1", configMap("x")), newCluster(t, "2", configMap("x"), configMap("y"))
		c := newCluster(t, "3", configMap("z"))
		script <- []Member{{Name: "a", Client: a.Client}, {Name: "b", Client: b.Client}}
		runEach(t, f, o.call)
		atRest()
		o.expect("a/x:1 b/x:1 b/y:1")
		script <- []Member{{Name: "b", Client: b.Client}, {Name: "c", Client: c.Client}}
		atRest()
		o.expect("b/x:1 b/y:1 c/z:1")
		script <- []Member{{Name: "c", Client: a.Client}, {Name: "d", Client: b.Client}}
		atRest()
		o.expect("c/x:1 d/x:1 d/y:1")
		for key, n := range o.empty {
			if key.Cluster == "d" || n != 1 {
				t.Errorf("%s was called %d times with an empty snapshot", key, n)
			}
		}
	})
}

// A name that comes again without a configuration that can be used is not gone: which keys it has
// is not known.
func TestNothingIsCalledForANameWithoutAConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := make(scripted)
		f, o := newFleet(t, Options{Sources: []Source{script}}), newOutputs(t)
		a := newCluster(t, "1", configMap("x"))
		script <- []Member{{Name: "a", Client: a.Client}}
		runEach(t, f, o.call)
		atRest()
		o.fails[Key{"a", "x"}] = 1000
		script <- nil
		atRest()
		if o.empty[Key{"a", "x"}] < 2 {
			t.Errorf("calls with an empty snapshot: %v", o.empty)
		}
		script <- []Member{{Name: "a", Err: errors.New("it does not parse")}}
		synctest.Wait()
		before := o.calls
		atRest()
		if o.calls != before {
			t.Errorf("%d calls", o.calls-before)
		}
		o.fails[Key{"a", "x"}] = 0
		script <- []Member{{Name: "a", Client: newCluster(t, "2", configMap("y")).Client}}
		atRest()
		o.expect("a/y:1")
	})
}

func TestACallForAKeyOfAClusterThatLeftMayAskForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		_ = f.Set(Member{Name: "a", Client: newCluster(t, "1", configMap("x")).Client})
		var empty atomic.Int32
		runEach(t, f, func(_ context.Context, _ Key, snap *perName) error {
			if len(snap.Maps) == 0 && empty.Add(1) < 4 {
				return kates.Again(time.Minute)
			}
			return nil
		})
		atRest()
		f.Remove("a")
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if n := empty.Load(); n != 2 {
			t.Errorf("%d calls in a minute and a half", n)
		}
		atRest()
		atRest()
		if n := empty.Load(); n != 4 {
			t.Errorf("%d calls, and the fourth has asked for none", n)
		}
	})
}

// The pauses between attempts to start a cluster's watches grow to a minute, but for a cluster that
// answers again.
func TestTheWatchesOfAClusterStartAsSoonAsItAnswersAgain(t *testing.T) {
	type hosts struct {
		Hosts []*kates.Unstructured `kates:"hosts.example.com"`
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		k := katestest.New(t, katestest.WithKinds(katestest.Kind{APIVersion: "example.com/v1", Kind: "Host"}),
			katestest.WithObjects(host(), systemOf("1")))
		var served, down atomic.Bool
		client, err := kates.NewClientFromDynamic(k.Dynamic, lateMapper{k.Mapper, "example.com", &served})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		onGet(k, func() (bool, error) { return down.Load(), errors.New("connection refused") })
		_ = f.Set(Member{Name: "a", Client: client})
		var calls atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- RunEach(ctx, f, func(context.Context, Key, *hosts) error { calls.Add(1); return nil },
				kates.Query{Name: "Hosts", Key: kates.ByName}, kates.WithBackoff(time.Second, time.Hour))
		}()
		time.Sleep(5 * time.Hour)
		down.Store(true)
		eventually(t, f, "it does not answer", func() bool { return f.Cluster("a").Health().Phase == Stale })
		served.Store(true)
		down.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestWhoLosesTheLeaseOfARunHasItsCallsInAllClustersCancelledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := katestest.New(t)
		var lost atomic.Bool
		on(home, "*", "leases", &lost, errors.New("down"))
		f := newFleet(t, Options{Home: home.Client})
		for _, name := range []string{"a", "b"} {
			_ = f.Set(Member{Name: name, Client: newCluster(t, "1", configMap("x")).Client})
		}
		causes := make(chan error, 2)
		ended := make(chan error, 1)
		go func() {
			ended <- RunEach(t.Context(), f, func(ctx context.Context, _ Key, _ *perName) error {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return ctx.Err()
			}, byName, kates.LeaderElection{Namespace: "default", Name: "program"}, kates.WithShutdownTimeout(time.Hour))
		}()
		atRest()
		if len(causes) > 0 {
			t.Fatalf("a call has ended by itself: %v", <-causes)
		}
		lost.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(causes) != 2 {
			t.Fatalf("the contexts of %d calls have ended", len(causes))
		}
		for range 2 {
			if err := <-causes; !errors.Is(err, kates.ErrLeadershipLost) {
				t.Errorf("the cause is %v", err)
			}
		}
		if err := <-ended; !errors.Is(err, kates.ErrLeadershipLost) {
			t.Error(err)
		}
	})
}

func TestACallThatEndsWithItsClusterHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		_ = f.Set(Member{Name: "a", Client: newCluster(t, "1", configMap("x")).Client})
		var ended atomic.Int32
		runEach(t, f, func(ctx context.Context, _ Key, snap *perName) error {
			if len(snap.Maps) == 0 {
				return nil
			}
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		}, kates.WithOnError(func(err error, _ int) { t.Errorf("an error: %v", err) }))
		atRest()
		f.Remove("a")
		atRest()
		if n := ended.Load(); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}
