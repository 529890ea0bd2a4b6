package fleet

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestAPermanentErrorEndsTheRunOfAllClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		for _, departed := range []bool{false, true} {
			f := newFleet(t, Options{})
			a, b := newCluster(t, "1", configMap("x")), newCluster(t, "2", configMap("x"))
			_ = f.Set(Member{Name: "a", Client: a.Client})
			_ = f.Set(Member{Name: "b", Client: b.Client})
			ended := make(chan error, 1)
			go func() {
				ended <- RunEach(t.Context(), f, func(_ context.Context, key Key, snap *perName) error {
					if key.Cluster == "a" && (len(snap.Maps) == 0) == departed {
						return kates.Permanent(broken)
					}
					return nil
				}, byName)
			}()
			if departed {
				atRest()
				f.Remove("a")
			}
			err := <-ended
			var of *KeyError
			if !errors.Is(err, broken) || !errors.As(err, &of) || of.Key != (Key{"a", "x"}) {
				t.Errorf("departed: %t: %v", departed, err)
			}
		}
	})
}

func TestOneReplicaLeadsARunOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home, a := katestest.New(t), newCluster(t, "1", configMap("x"))
		election := kates.LeaderElection{Namespace: "default", Name: "program"}
		var ends []func() error
		var all []*outputs
		for _, name := range []string{"one", "two"} {
			f, o := newFleet(t, Options{Home: home.Client}), newOutputs(t)
			_ = f.Set(Member{Name: "a", Client: a.Client})
			election.Identity = name
			ends, all = append(ends, runEach(t, f, o.call, election)), append(all, o)
			atRest()
		}
		all[0].expect("a/x:1")
		all[1].expect("")
		if err := ends[0](); err != nil {
			t.Error(err)
		}
		atRest()
		all[1].expect("a/x:1")
	})
}

func TestSignalsInABubbleAreAnErrorThatNamesTheOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		each := runEach(t, f, newOutputs(t).call, kates.WithSignals())
		atRest()
		whole := Run(t.Context(), f, func(context.Context, *allMaps) error { return nil }, kates.WithSignals())
		for _, err := range []error{each(), whole} {
			if err == nil || !strings.Contains(err.Error(), "WithSignals: ") {
				t.Error(err)
			}
		}
	})
}

func TestCallsUnderWayHaveTheShutdownTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1", configMap("x"), configMap("y"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		for _, d := range []time.Duration{time.Second, time.Minute} {
			end := runEach(t, f, func(ctx context.Context, _ Key, _ *perName) error {
				select {
				case <-time.After(20 * time.Second):
				case <-ctx.Done():
				}
				return ctx.Err()
			}, kates.WithShutdownTimeout(d), kates.WithWorkers(2))
			time.Sleep(5 * time.Second)
			if err := end(); errors.Is(err, kates.ErrAborted) != (d == time.Second) {
				t.Errorf("with %s: %v", d, err)
			}
		}
	})
}

func TestTheShutdownTimeoutIsNotForClustersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		ended := make(chan error, 1)
		runEach(t, f, func(ctx context.Context, _ Key, snap *perName) error {
			if len(snap.Maps) > 0 {
				<-ctx.Done()
				ended <- ctx.Err()
			}
			return nil
		}, kates.WithShutdownTimeout(time.Minute))
		atRest()
		f.Remove("a")
		synctest.Wait()
		if len(ended) != 1 {
			t.Error("the context of a call has not ended with its cluster")
		}
	})
}

// A call with an empty snapshot, for a cluster that has left, is a call as others are.
func TestCallsForAClusterThatLeftHaveTheShutdownTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		takes, ends time.Duration // of the call; of RunEach, after its context
		err         error
	}{
		"the call ends in time":   {takes: 5 * time.Second, ends: 5 * time.Second},
		"the call takes too long": {takes: time.Hour, ends: 20 * time.Second, err: kates.ErrAborted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, Options{})
				_ = f.Set(Member{Name: "a", Client: newCluster(t, "1", configMap("x")).Client})
				var told atomic.Int32
				end := runEach(t, f, func(ctx context.Context, _ Key, snap *perName) error {
					if len(snap.Maps) > 0 {
						return nil
					}
					select {
					case <-time.After(c.takes):
						told.Add(1)
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}, kates.WithShutdownTimeout(20*time.Second))
				atRest()
				f.Remove("a")
				synctest.Wait()
				began := time.Now()
				if err := end(); !errors.Is(err, c.err) {
					t.Errorf("RunEach has returned %v, want %v", err, c.err)
				}
				if d := time.Since(began); d != c.ends {
					t.Errorf("RunEach has ended after %s, want %s", d, c.ends)
				}
				if n := told.Load(); (n == 1) != (c.err == nil) {
					t.Errorf("%d calls have ended well", n)
				}
			})
		})
	}
}

func TestCallsForAClusterThatLeftEndAtOnceWhenAnotherTakesItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		_ = f.Set(Member{Name: "a", Client: newCluster(t, "1", configMap("x")).Client})
		cut, called := make(chan time.Time, 1), make(chan int, 10)
		runEach(t, f, func(ctx context.Context, _ Key, snap *perName) error {
			if len(snap.Maps) > 0 {
				called <- len(snap.Maps)
				return nil
			}
			<-ctx.Done()
			cut <- time.Now()
			return ctx.Err()
		}, kates.WithShutdownTimeout(20*time.Second))
		<-called
		f.Remove("a")
		synctest.Wait()
		began := time.Now()
		_ = f.Set(Member{Name: "a", Client: newCluster(t, "2", configMap("x"), configMap("x2")).Client})
		if at := <-cut; at != began {
			t.Errorf("the call was cut after %s", at.Sub(began))
		}
		select {
		case <-called:
		case <-time.After(time.Hour):
			t.Error("the function is not called with the other cluster")
		}
	})
}

// A cluster that comes back shuts nothing down: no shutdown timeout begins.
func TestASlowCallForAClusterThatLeftDoesNotEndTheRunWhenTheClusterComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		client := newCluster(t, "1", configMap("x")).Client
		_ = f.Set(Member{Name: "a", Client: client})
		var last atomic.Bool
		end := runEach(t, f, func(_ context.Context, _ Key, snap *perName) error {
			if len(snap.Maps) == 0 {
				time.Sleep(time.Hour) // it does not look at its context
			}
			last.Store(len(snap.Maps) > 0)
			return nil
		}, kates.WithShutdownTimeout(time.Second))
		atRest()
		f.Remove("a")
		synctest.Wait()
		_ = f.Set(Member{Name: "a", Client: client})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if !last.Load() {
			t.Error("the last call had an empty snapshot, or there was none")
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestACallForAClusterThatLeftIsAmongTheCallsOfTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		_ = f.Set(Member{Name: "a", Client: newCluster(t, "1", configMap("x")).Client})
		runEach(t, f, func(ctx context.Context, _ Key, snap *perName) error {
			if len(snap.Maps) == 0 {
				<-ctx.Done()
			}
			return nil
		}, kates.WithUnhealthyAfter(time.Minute))
		atRest()
		if err := f.HealthCheck(nil); err != nil {
			t.Fatal(err)
		}
		f.Remove("a")
		time.Sleep(2 * time.Minute)
		if err := f.HealthCheck(nil); err == nil {
			t.Error("a call that hangs for two minutes is healthy")
		}
	})
}
