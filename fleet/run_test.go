package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// allMaps is a snapshot of a fleet.
type allMaps struct {
	Maps    map[string][]*kates.ConfigMap
	Missing []Missing
}

func TestARunOfAFleetCallsForEachChangeAndTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b := newCluster(t, "1", configMap("x")), newCluster(t, "2")
		_ = f.Set(Member{Name: "a", Client: a.Client})
		tick, ended := make(chan struct{}), make(chan error, 1)
		var seen, errs []string
		fails, broken := 2, errors.New("broken")
		go func() {
			ended <- Run(t.Context(), f, func(_ context.Context, snap *allMaps) error {
				var all []string
				for _, cluster := range []string{"a", "b"} {
					for _, m := range snap.Maps[cluster] {
						all = append(all, cluster+m.Name)
					}
				}
				seen = append(seen, strings.Join(all, " "))
				switch {
				case len(all) > 2:
					return kates.Permanent(broken)
				case fails > 0:
					if fails--; fails == 0 {
						panic("oh")
					}
					return errors.New("not now")
				}
				return nil
			}, kates.WithTriggers(tick), kates.WithOnError(func(err error, _ int) { errs = append(errs, err.Error()) }))
		}()
		expect := func(want ...string) {
			t.Helper()
			atRest()
			if strings.Join(seen, ", ") != strings.Join(want, ", ") {
				t.Errorf("called with %q, not %q", seen, want)
			}
			seen = nil
		}
		expect("ax", "ax", "ax")
		if len(errs) != 2 || errs[0] != "not now" || !strings.Contains(errs[1], "oh") {
			t.Errorf("errors: %q", errs)
		}
		tick <- struct{}{}
		expect("ax")
		_ = f.Set(Member{Name: "b", Client: b.Client})
		atRest()
		if called := slices.Compact(seen); !slices.Equal(called, []string{"ax"}) {
			t.Errorf("called with %q", seen) // twice, if b is missing at first
		}
		seen = nil
		if err := b.Client.Create(t.Context(), configMap("y"), nil); err != nil {
			t.Fatal(err)
		}
		expect("ax by")
		if err := b.Client.Create(t.Context(), configMap("z"), nil); err != nil {
			t.Fatal(err)
		}
		expect("ax by bz")
		if err := <-ended; err != broken {
			t.Error(err)
		}
	})
}

// Changes that come during a call wait for the next signal, too.
func TestARunOfAFleetCallsItsFunctionOncePerIntervalUnderChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Interval: time.Second})
		a := newCluster(t, "1", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		ctx, cancel := context.WithCancel(t.Context())
		ended, calls, last := make(chan error, 1), 0, 0
		go func() {
			ended <- Run(ctx, f, func(_ context.Context, snap *allMaps) error {
				<-time.After(50 * time.Millisecond)
				calls, last = calls+1, len(snap.Maps["a"])
				return nil
			})
		}()
		atRest()
		for i := range 505 {
			<-time.After(10 * time.Millisecond)
			if err := a.Client.Create(t.Context(), configMap(fmt.Sprint("m", i)), nil); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Minute)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if calls < 6 || calls > 8 || last != 506 {
			t.Errorf("%d calls, %d objects in the end", calls, last)
		}
	})
}

func TestOneReplicaLeadsAWholeRunOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home, a := katestest.New(t), newCluster(t, "1", configMap("x"))
		calls := make([]int, 2)
		var ends []func() error
		for i, name := range []string{"one", "two"} {
			f := newFleet(t, Options{Home: home.Client})
			_ = f.Set(Member{Name: "a", Client: a.Client})
			_ = f.Add("b", hung())
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() {
				ended <- Run(ctx, f, func(context.Context, *allMaps) error {
					calls[i]++
					return nil
				}, kates.LeaderElection{Namespace: "default", Name: "program", Identity: name})
			}()
			ends = append(ends, func() error {
				cancel()
				return <-ended
			})
			atRest()
		}
		if calls[0] == 0 || calls[1] != 0 {
			t.Errorf("calls: %v", calls)
		}
		if err := ends[0](); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		atRest()
		if calls[1] == 0 {
			t.Error("the follower does not lead")
		}
		if err := ends[1](); err != nil {
			t.Error(err)
		}
	})
}

func TestAWholeRunWhoseWatchCannotStartHasNeverLed(t *testing.T) {
	home := newCluster(t, "1")
	f := newFleet(t, Options{Home: home.Client})
	err := Run(t.Context(), f, func(context.Context, *allMaps) error { return nil },
		kates.Query{Name: "Nonsense"}, kates.LeaderElection{Namespace: "default", Name: "program"})
	if !errors.Is(err, kates.ErrNeverLed) || !strings.Contains(err.Error(), "Nonsense") {
		t.Error(err)
	}
}

func TestWholeRunsOfAFleetThatMakeNoSenseAreErrors(t *testing.T) {
	f := newFleet(t, Options{})
	call := func(context.Context, *allMaps) error { return nil }
	fails := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	fails("the fleet is nil", Run(t.Context(), nil, call))
	fails("no function", Run[allMaps](t.Context(), f, nil))
	fails("WithWorkers", Run(t.Context(), f, call, kates.WithWorkers(1)))
	fails("a watch option", Run(t.Context(), f, call, kates.WithInterval(time.Second)))
	fails("set Home", Run(t.Context(), f, call, kates.LeaderElection{Namespace: "x", Name: "x"}))
	fails("a field for deltas", Run(t.Context(), f, func(context.Context, *things) error { return nil }))
	f.Close()
	if err := Run(t.Context(), f, call); !errors.Is(err, kates.ErrClosed) {
		t.Error(err)
	}
}
