package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// unit is a root in a cluster, and the services that it owns there.
type unit struct {
	Root     *kates.ConfigMap `kates:",root"`
	Services []*kates.Service `kates:",owned"`
	Info     controller.Info
}

// unitRoot is a root of a name.
func unitRoot(name string) *kates.ConfigMap {
	root := configMap(name)
	root.UID = types.UID("uid-of-" + name)
	return root
}

// ensureService makes the service of a root, once.
func ensureService(ctx context.Context, cluster *Cluster, p *unit) error {
	if p.Info.Departure != "" || len(p.Services) > 0 {
		return nil
	}
	s := service(p.Root.Name)
	if err := kates.SetControllerReference(p.Root, s); err != nil {
		return err
	}
	return cluster.Client().Create(ctx, s, nil)
}

// reconciled notes the reconciles of a controller.
type reconciled struct {
	mu  sync.Mutex
	all []string
}

func (r *reconciled) note(cluster *Cluster, p *unit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, strings.TrimSpace(fmt.Sprintf("%s/%s %s", cluster.Name(), p.Root.Name, p.Info.Departure)))
}

// expect waits, and checks what was reconciled since the last time, in any order.
func (r *reconciled) expect(t *testing.T, want ...string) {
	t.Helper()
	atRest()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.all)
	if !slices.Equal(r.all, want) {
		t.Errorf("reconciled: %q, not %q", r.all, want)
	}
	r.all = nil
}

// controlling runs a controller until the test ends, or end.
func controlling(t *testing.T, f *Fleet, call func(context.Context, *Cluster, *unit) (controller.Result, error), options ...kates.RunOption) (c *Controller[unit], end func() error) {
	t.Helper()
	c, err := NewController(f, "units", call, options...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	end = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = end() })
	return c, end
}

func TestTheRootsOfEachClusterAreReconciledThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b := newCluster(t, "1", unitRoot("x"), unitRoot("y")), newCluster(t, "2", unitRoot("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		var seen reconciled
		c, end := controlling(t, f, func(ctx context.Context, cluster *Cluster, p *unit) (controller.Result, error) {
			if cluster != f.Cluster(cluster.Name()) {
				t.Errorf("%s is not the fleet's cluster", cluster.Name())
			}
			seen.note(cluster, p)
			return controller.Done, ensureService(ctx, cluster, p)
		}, kates.WithQuietOwnWrites())
		seen.expect(t, "a/x", "a/y")
		_ = f.Set(Member{Name: "b", Client: b.Client})
		seen.expect(t, "b/x")
		if got := servicesOfRoots(t, a) + ", " + servicesOfRoots(t, b); got != "x y, x" {
			t.Errorf("the services are %q", got)
		}
		if got := fmt.Sprint(c.Keys()); got != "[a: default/x a: default/y b: default/x]" {
			t.Errorf("the keys are %s", got)
		}
		c.Trigger(Key{"a", "default/x"}, Key{"b", "default/y"}, Key{"c", "default/x"})
		seen.expect(t, "a/x")
		c.TriggerAll()
		seen.expect(t, "a/x", "a/y", "b/x")
		if err := a.Client.Delete(t.Context(), unitRoot("y"), nil); err != nil {
			t.Fatal(err)
		}
		seen.expect(t) // quiet own writes
		c.Trigger(Key{"a", "default/y"})
		seen.expect(t, "a/y deleted")
		status := c.Status()
		if a, b := status["a"], status["b"]; len(status) != 2 || a.Reconciles != 6 || a.Roots != 1 || b.Reconciles != 2 || a.Error != "" {
			t.Errorf("the status is %+v", status)
		}
		if err := errors.Join(c.Ready(), end()); err != nil {
			t.Error(err)
		}
		if got := len(c.Status()); got != 2 {
			t.Errorf("at the end there is a status of %d clusters", got)
		}
	})
}

// servicesOfRoots are the names of the services in a cluster.
func servicesOfRoots(t *testing.T, k *katestest.Fake) string {
	t.Helper()
	var all []*kates.Service
	if err := k.Client.List(t.Context(), kates.Query{Kind: "services"}, &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestG4AReconcileInAClusterSeesItsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1", unitRoot("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		calls := 0
		controlling(t, f, func(ctx context.Context, cluster *Cluster, p *unit) (controller.Result, error) {
			if calls++; calls < 3 {
				return controller.RequeueAfter(0), ensureService(ctx, cluster, p)
			}
			if len(p.Services) != 1 {
				t.Errorf("%d services are seen", len(p.Services))
			}
			return controller.Done, ensureService(ctx, cluster, p)
		})
		atRest()
		if got := servicesOfRoots(t, a); got != "x" || calls < 3 {
			t.Errorf("the services are %q after %d calls", got, calls)
		}
	})
}

func TestNothingIsReconciledForAClusterThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b, other := newCluster(t, "1", unitRoot("x")), newCluster(t, "2", unitRoot("x")), newCluster(t, "3", unitRoot("z"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		var seen reconciled
		var hangs atomic.Bool
		ended := make(chan error, 1)
		c, _ := controlling(t, f, func(ctx context.Context, cluster *Cluster, p *unit) (controller.Result, error) {
			seen.note(cluster, p)
			if hangs.Load() && cluster.Name() == "a" {
				<-ctx.Done()
				ended <- ctx.Err()
				return controller.Done, ctx.Err()
			}
			return controller.Done, nil
		}, kates.WithShutdownTimeout(time.Minute))
		seen.expect(t, "a/x", "b/x")
		hangs.Store(true)
		c.Trigger(Key{"a", "default/x"})
		seen.expect(t, "a/x")
		f.Remove("a")
		synctest.Wait() // no shutdown timeout
		if len(ended) != 1 {
			t.Error("the context of a reconcile has not ended with its cluster")
		}
		hangs.Store(false)
		seen.expect(t)
		if got := fmt.Sprint(c.Keys(), slices.Sorted(maps.Keys(c.Status()))); got != "[b: default/x] [b]" {
			t.Errorf("it knows %s", got)
		}
		_ = f.Set(Member{Name: "a", Client: a.Client})
		seen.expect(t, "a/x")
		_ = f.Set(Member{Name: "a", Client: other.Client})
		seen.expect(t, "a/z")
		if got := fmt.Sprint(c.Keys()); got != "[a: default/z b: default/x]" {
			t.Errorf("the keys are %s", got)
		}
	})
}

// The reconciles of one cluster hang, another never answers, and the kind of a third is refused: a
// fourth one does not notice.
func TestAClusterWhoseReconcilesHangHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		hangs, well := newCluster(t, "1", unitRoot("x"), unitRoot("y")), newCluster(t, "4", unitRoot("x"))
		_ = f.Set(Member{Name: "a", Client: hangs.Client})
		_ = f.Add("b", hung())
		lacks := katestest.New(t)
		lacks.Client.Close() // no watch can start
		_ = f.Set(Member{Name: "c", Client: lacks.Client})
		_ = f.Set(Member{Name: "d", Client: well.Client})
		var seen reconciled
		var mu sync.Mutex
		var errs []error
		c, _ := controlling(t, f, func(ctx context.Context, cluster *Cluster, p *unit) (controller.Result, error) {
			seen.note(cluster, p)
			if cluster.Name() == "a" {
				<-ctx.Done()
			}
			return controller.Done, nil
		}, kates.WithOnError(func(err error, _ int) {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		}))
		seen.expect(t, "a/x", "d/x")
		mu.Lock()
		defer mu.Unlock()
		of := make(map[string]int)
		for _, err := range errs {
			var cluster *ClusterError
			if !errors.As(err, &cluster) {
				t.Fatal(err)
			}
			of[cluster.Cluster]++
		}
		if of["c"] < 2 || of["a"]+of["d"] > 0 {
			t.Errorf("errors by cluster: %v", of)
		}
		if status := c.Status(); status["c"].Error == "" || status["d"].Error != "" {
			t.Errorf("the status is %+v", status)
		}
		if err := c.Ready(); err != nil {
			t.Error(err)
		}
	})
}

func TestErrorsOfReconcilesAreTriedAgainAndEndNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b := newCluster(t, "1", unitRoot("x"), unitRoot("y")), newCluster(t, "2", unitRoot("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		var mu sync.Mutex
		errs := make(map[Key]int)
		calls := make(map[string]int)
		c, end := controlling(t, f, func(_ context.Context, cluster *Cluster, p *unit) (controller.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			name := cluster.Name() + "/" + p.Root.Name
			switch calls[name]++; {
			case name == "a/x":
				return controller.Done, kates.Permanent(errors.New("broken"))
			case name == "a/y" && calls[name] < 3:
				panic("oh")
			}
			return controller.Done, nil
		}, kates.WithOnError(func(err error, _ int) {
			mu.Lock()
			defer mu.Unlock()
			if of := (*KeyError)(nil); errors.As(err, &of) {
				errs[of.Key]++
			}
		}))
		atRest()
		if calls["a/x"] != 1 || calls["a/y"] != 3 || calls["b/x"] != 1 {
			t.Errorf("calls: %v", calls)
		}
		if len(errs) != 2 || errs[Key{"a", "default/x"}] != 1 || errs[Key{"a", "default/y"}] != 2 {
			t.Errorf("errors: %v", errs)
		}
		if all := c.Status()["a"].Failing; len(all) != 1 || all[0].Key != "default/x" {
			t.Errorf("failing: %+v", all)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestReconcilesUnderWayHaveTheShutdownTimeoutOfTheFleetsController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		for _, name := range []string{"a", "b"} {
			_ = f.Set(Member{Name: name, Client: newCluster(t, types.UID(name), unitRoot("x")).Client})
		}
		for _, c := range []struct {
			takes, timeout time.Duration
			aborted        bool
		}{{15 * time.Second, 0, false}, {time.Hour, 0, true}, {40 * time.Second, time.Minute, false}, {time.Minute, time.Second, true}} {
			var options []kates.RunOption
			if c.timeout > 0 {
				options = append(options, kates.WithShutdownTimeout(c.timeout))
			}
			units, end := controlling(t, f, func(ctx context.Context, _ *Cluster, _ *unit) (controller.Result, error) {
				select {
				case <-time.After(c.takes):
				case <-ctx.Done():
				}
				return controller.Done, ctx.Err()
			}, options...)
			time.Sleep(2 * time.Second)
			if err := units.Run(t.Context()); !errors.Is(err, controller.ErrRunning) {
				t.Error(err)
			}
			if err := end(); errors.Is(err, kates.ErrAborted) != c.aborted || !c.aborted && err != nil {
				t.Errorf("with %+v: %v", c, err)
			}
		}
	})
}

func TestOneReplicaLeadsTheControllerOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home, a := katestest.New(t), newCluster(t, "1", unitRoot("x"))
		election := kates.LeaderElection{Namespace: "default", Name: "program"}
		var ends []func() error
		seen := make([]reconciled, 2)
		for i, name := range []string{"one", "two"} {
			f := newFleet(t, Options{Home: home.Client})
			_ = f.Set(Member{Name: "a", Client: a.Client})
			election.Identity = name
			c, end := controlling(t, f, func(_ context.Context, cluster *Cluster, p *unit) (controller.Result, error) {
				seen[i].note(cluster, p)
				return controller.Done, nil
			}, election)
			atRest()
			if err := c.Ready(); err != nil || c.NeedLeaderElection() {
				t.Errorf("ready: %v; needs an election: %t", err, c.NeedLeaderElection())
			}
			ends = append(ends, end)
		}
		seen[0].expect(t, "a/x")
		seen[1].expect(t)
		if err := ends[0](); err != nil {
			t.Error(err)
		}
		seen[1].expect(t, "a/x")
	})
}

// A follower that led before, or a controller that has ended, begins again.
func TestTheControllerOfAFleetRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		_ = f.Set(Member{Name: "a", Client: newCluster(t, "1", unitRoot("x")).Client})
		_ = f.Set(Member{Name: "b", Client: newCluster(t, "2", unitRoot("x")).Client})
		var seen reconciled
		c, end := controlling(t, f, func(_ context.Context, cluster *Cluster, p *unit) (controller.Result, error) {
			seen.note(cluster, p)
			return controller.Done, nil
		})
		seen.expect(t, "a/x", "b/x")
		if err := end(); err != nil {
			t.Error(err)
		}
		f.Remove("b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		seen.expect(t, "a/x")
		if got := slices.Sorted(maps.Keys(c.Status())); !slices.Equal(got, []string{"a"}) {
			t.Errorf("there is a status of %v", got)
		}
		f.Close()
		if err := <-ended; !errors.Is(err, kates.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestControllersOfAFleetThatMakeNoSenseAreErrors(t *testing.T) {
	f := newFleet(t, Options{})
	call := func(context.Context, *Cluster, *unit) (controller.Result, error) { return controller.Done, nil }
	fails := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	fail := func(want string, f *Fleet, options ...kates.RunOption) {
		t.Helper()
		_, err := NewController(f, "units", call, options...)
		fails(want, err)
	}
	fail("the fleet is nil", nil)
	fail("no exported field of that name", f, kates.Query{Name: "Pods"})
	fail("has a Key", f, kates.Query{Name: "Root", Key: kates.ByName})
	fail("set Home", f, kates.LeaderElection{Namespace: "x", Name: "x"})
	fail("Sharding is an option", f, kates.Sharding{Namespace: "x", Name: "x"})
	fail("a Handle is", f, new(kates.Handle))
	fail("must be one at least", f, kates.WithWorkers(0))
	_, err := NewController[unit](f, "units", nil)
	fails("no function", err)
	_, err = NewController(f, "", call)
	fails("has no name", err)
	type rootless struct{ Maps []*kates.ConfigMap }
	_, err = NewController(f, "units", func(context.Context, *Cluster, *rootless) (controller.Result, error) { return controller.Done, nil })
	fails("no field is the root", err)
	c, err := NewController(f, "units", call)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(); err == nil {
		t.Error("it is ready before it runs")
	}
	c.Trigger(Key{"a", "x"})
	if len(c.Keys())+len(c.Status()) > 0 || !c.NeedLeaderElection() {
		t.Error("it has a state before it runs")
	}
	f.Close()
	if err := c.Run(t.Context()); !errors.Is(err, kates.ErrClosed) {
		t.Error(err)
	}
}
