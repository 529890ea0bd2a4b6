package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// perName is a struct of one cluster. Its keys are names.
type perName struct {
	Maps []*kates.ConfigMap
	Own  string `kates:"-"`
}

var byName = kates.Query{Name: "Maps", Key: kates.ByName}

// outputs are what a function has made of keys: a program with an output per key. It fails the
// test if two calls are about a key at a time.
type outputs struct {
	mu    sync.Mutex
	busy  map[Key]bool
	is    map[Key]int // objects
	empty map[Key]int // how often the function was called with an empty snapshot
	fails map[Key]int // calls that are to fail
	calls int
	t     *testing.T
}

func newOutputs(t *testing.T) *outputs {
	return &outputs{t: t, busy: make(map[Key]bool), is: make(map[Key]int), empty: make(map[Key]int), fails: make(map[Key]int)}
}

func (o *outputs) call(ctx context.Context, key Key, snap *perName) error {
	o.mu.Lock()
	if o.busy[key] {
		o.t.Errorf("%s: two calls at a time", key)
	}
	o.busy[key] = true
	o.calls++
	o.mu.Unlock()
	time.Sleep(time.Millisecond)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy[key] = false
	if len(snap.Maps) == 0 {
		o.empty[key]++
	}
	if o.fails[key] > 0 {
		o.fails[key]--
		return errors.New("not now")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.is[key] = len(snap.Maps); len(snap.Maps) == 0 {
		delete(o.is, key)
	}
	return nil
}

func (o *outputs) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []string
	for key, n := range o.is {
		all = append(all, fmt.Sprintf("%s/%s:%d", key.Cluster, key.Key, n))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (o *outputs) expect(want string) {
	o.t.Helper()
	if got := o.text(); got != want {
		o.t.Errorf("the outputs are %q, not %q", got, want)
	}
}

// runEach runs until the end of the test, or end.
func runEach(t *testing.T, f *Fleet, call func(context.Context, Key, *perName) error, options ...kates.RunOption) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- RunEach(ctx, f, call, append(options, byName)...) }()
	end = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = end() })
	return end
}

// atRest waits until all that is under way is over, pauses after errors included.
func atRest() {
	time.Sleep(5 * time.Minute)
	synctest.Wait()
}

func TestTheKeysOfAllClustersAreCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newFleet(t, Options{}), newOutputs(t)
		a, b := newCluster(t, "1", configMap("x"), configMap("y")), newCluster(t, "2", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		tick := make(chan struct{})
		end := runEach(t, f, o.call, kates.WithTriggers(tick))
		atRest()
		o.expect("a/x:1 a/y:1")
		_ = f.Set(Member{Name: "b", Client: b.Client})
		atRest()
		o.expect("a/x:1 a/y:1 b/x:1")
		if err := errors.Join(a.Client.Delete(t.Context(), configMap("x"), nil), b.Client.Create(t.Context(), configMap("z"), nil)); err != nil {
			t.Fatal(err)
		}
		atRest()
		o.expect("a/y:1 b/x:1 b/z:1")
		before := o.calls
		tick <- struct{}{}
		atRest()
		if o.calls != before+3 {
			t.Errorf("a trigger has called %d times", o.calls-before)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		o.expect("a/y:1 b/x:1 b/z:1") // an end is no departure
	})
}

func TestTheKeysOfAClusterThatLeavesAreCalledEmptyUntilNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newFleet(t, Options{}), newOutputs(t)
		a, b := newCluster(t, "1", configMap("x"), configMap("y")), newCluster(t, "2", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		runEach(t, f, o.call)
		atRest()
		o.fails[Key{"a", "x"}] = 3
		f.Remove("a")
		atRest()
		o.expect("b/x:1")
		if o.empty[Key{"a", "x"}] != 4 || o.empty[Key{"a", "y"}] != 1 || o.empty[Key{"b", "x"}] != 0 {
			t.Errorf("calls with an empty snapshot: %v", o.empty)
		}
		_ = f.Set(Member{Name: "a", Client: a.Client})
		atRest()
		o.expect("a/x:1 a/y:1 b/x:1")
	})
}

// A key that could not be told of the departure is told by the cluster that takes the name, or is
// that cluster's.
func TestAClusterThatComesBackTakesOverTheKeysThatWereNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newFleet(t, Options{}), newOutputs(t)
		a, b := newCluster(t, "1", configMap("x"), configMap("y")), newCluster(t, "2", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		runEach(t, f, o.call)
		atRest()
		o.fails[Key{"a", "x"}], o.fails[Key{"a", "y"}] = 5, 5
		f.Remove("a")
		time.Sleep(time.Second)
		_ = f.Set(Member{Name: "a", Client: b.Client})
		atRest()
		o.expect("a/x:1")
	})
}

func TestAClusterThatTakesANameTakesOverTheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newFleet(t, Options{}), newOutputs(t)
		a, b := newCluster(t, "1", configMap("x"), configMap("y")), newCluster(t, "2", configMap("x"), configMap("z"))
		var refused atomic.Bool
		refused.Store(true)
		on(b, "list", "configmaps", &refused, errors.New("not now"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		runEach(t, f, o.call)
		atRest()
		_ = f.Set(Member{Name: "a", Client: b.Client})
		atRest()
		o.expect("a/x:1 a/y:1") // until the new one is complete
		refused.Store(false)
		atRest()
		o.expect("a/x:1 a/z:1")
		if o.empty[Key{"a", "x"}] != 0 || o.empty[Key{"a", "y"}] != 1 {
			t.Errorf("calls with an empty snapshot: %v", o.empty)
		}
	})
}

func TestAStaleClusterIsNoReasonForACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newFleet(t, Options{}), newOutputs(t)
		a := newCluster(t, "1", configMap("x"))
		var down atomic.Bool
		on(a, "*", "*", &down, errors.New("connection refused"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		runEach(t, f, o.call)
		atRest()
		before := o.calls
		down.Store(true)
		atRest()
		if f.Cluster("a").Health().Phase != Stale || o.calls != before {
			t.Errorf("%+v, %d calls", f.Cluster("a").Health(), o.calls-before)
		}
		o.expect("a/x:1")
	})
}

// The calls of one cluster hang, the client of another never gets an answer, and the kind of a
// third is refused: a fourth one does not notice.
func TestAClusterWhoseCallsHangHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newFleet(t, Options{}), newOutputs(t)
		hangs, well := newCluster(t, "1", configMap("x"), configMap("y")), newCluster(t, "4", configMap("x"))
		refuses := newCluster(t, "3", configMap("x"))
		var refused atomic.Bool
		refused.Store(true)
		on(refuses, "list", "configmaps", &refused, errors.New("forbidden"))
		_ = f.Set(Member{Name: "a", Client: hangs.Client})
		_ = f.Add("b", hung())
		_ = f.Set(Member{Name: "c", Client: refuses.Client})
		_ = f.Set(Member{Name: "d", Client: well.Client})
		ended := make(chan error, 2)
		runEach(t, f, func(ctx context.Context, key Key, snap *perName) error {
			if key.Cluster == "a" && len(snap.Maps) > 0 {
				<-ctx.Done()
				ended <- ctx.Err()
				return ctx.Err()
			}
			return o.call(ctx, key, snap)
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		o.expect("d/x:1")
		f.Remove("a")
		synctest.Wait()
		if len(ended) != 1 {
			t.Error("the context of a call has not ended with its cluster")
		}
		refused.Store(false)
		atRest()
		o.expect("c/x:1 d/x:1")
		if o.empty[Key{"a", "x"}] != 1 || o.empty[Key{"a", "y"}] != 0 {
			t.Errorf("calls with an empty snapshot: %v", o.empty)
		}
	})
}

func TestAClusterWhoseWatchCannotStartIsReportedAndTriedAgain(t *testing.T) {
	type hosts struct {
		Hosts []*kates.Unstructured `kates:"hosts.example.com"`
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		lacks := newCluster(t, "1")
		has := newCluster(t, "2")
		kind := katestest.Kind{APIVersion: "example.com/v1", Kind: "Host"}
		serves := katestest.New(t, katestest.WithKinds(kind), katestest.WithObjects(host()))
		_ = f.Set(Member{Name: "a", Client: lacks.Client})
		_ = f.Set(Member{Name: "b", Client: serves.Client})
		var errs []error
		var mu sync.Mutex
		var called []Key
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- RunEach(ctx, f, func(_ context.Context, key Key, _ *hosts) error {
				mu.Lock()
				defer mu.Unlock()
				called = append(called, key)
				return nil
			}, kates.Query{Name: "Hosts", Key: kates.ByName}, kates.WithOnError(func(err error, _ int) {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}))
		}()
		atRest()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		var of *ClusterError
		if len(errs) < 2 || !errors.As(errs[0], &of) || of.Cluster != "a" || !slices.Equal(called, []Key{{"b", "h"}}) {
			t.Errorf("called %v; errors %v", called, errs)
		}
		_ = has
	})
}

func host() *kates.Unstructured {
	return &kates.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Host", "metadata": map[string]any{"namespace": "default", "name": "h"},
	}}
}

func TestRunsOfAFleetThatMakeNoSenseAreErrors(t *testing.T) {
	f := newFleet(t, Options{})
	call := func(context.Context, Key, *perName) error { return nil }
	fails := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	fails("the fleet is nil", RunEach(t.Context(), nil, call, byName))
	fails("no function", RunEach[perName](t.Context(), f, nil, byName))
	fails("no query has a Key", RunEach(t.Context(), f, call))
	fails("has no field of that name", RunEach(t.Context(), f, call, byName, kates.Query{Name: "Pods"}))
	fails("set Home", RunEach(t.Context(), f, call, byName, kates.LeaderElection{Namespace: "x", Name: "x"}))
	fails("Sharding is an option", RunEach(t.Context(), f, call, byName, kates.Sharding{Namespace: "x", Name: "x"}))
	fails("a Handle is", RunEach(t.Context(), f, call, byName, new(kates.Handle)))
	f.Close()
	if err := RunEach(t.Context(), f, call, byName); !errors.Is(err, kates.ErrClosed) {
		t.Error(err)
	}
}

// Clusters come, go, are replaced and do not answer, and objects change, at random: at rest, the
// outputs are those of the clusters that there are.
func TestTheOutputsOfARunFollowTheFleet(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			f, o := newFleet(t, Options{}), newOutputs(t)
			now := make(map[string]*katestest.Fake)
			down := make(map[string]*atomic.Bool)
			runEach(t, f, o.call, kates.WithWorkers(3), kates.WithBackoff(100*time.Millisecond, 10*time.Second))
			for step := range 60 {
				name := string(rune('a' + r.IntN(3)))
				object := configMap(string(rune('u' + r.IntN(4))))
				switch k := now[name]; r.IntN(8) {
				case 0, 1:
					k = newCluster(t, types.UID(fmt.Sprint(step)), configMap(string(rune('u'+r.IntN(4)))))
					down[name] = new(atomic.Bool)
					on(k, "list", "configmaps", down[name], errors.New("not now"))
					down[name].Store(r.IntN(2) == 0)
					now[name] = k
					_ = f.Set(Member{Name: name, Client: k.Client})
				case 2:
					f.Remove(name)
					delete(now, name)
				case 3, 4:
					if k != nil {
						_ = k.Client.Create(t.Context(), object, nil)
					}
				case 5:
					if k != nil {
						_ = k.Client.Delete(t.Context(), object, nil)
					}
				case 6:
					o.mu.Lock()
					o.fails[Key{name, object.Name}] = r.IntN(3)
					o.mu.Unlock()
				case 7:
					if d := down[name]; d != nil {
						d.Store(!d.Load())
					}
				}
				time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			}
			for _, d := range down {
				d.Store(false)
			}
			atRest()
			var want []string
			for _, name := range slices.Sorted(maps.Keys(now)) {
				var list []*kates.ConfigMap
				if err := now[name].Client.List(t.Context(), kates.Query{Kind: "configmaps"}, &list); err != nil {
					t.Fatal(err)
				}
				for _, m := range list {
					want = append(want, fmt.Sprintf("%s/%s:1", name, m.Name))
				}
			}
			slices.Sort(want)
			o.expect(strings.Join(want, " "))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}
