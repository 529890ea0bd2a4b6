package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// rootParts are a root in the home cluster: a config map that says what it wants in each cluster.
type rootParts struct {
	Root *kates.ConfigMap `kates:",root"`
	Info controller.Info
}

// placed is what belongs to a root in one cluster.
type placed struct {
	Services []*kates.Service
	Settings []*kates.ConfigMap
	Own      string `kates:"-"`
}

type rootTurn = Parts[rootParts, placed]

var bySetting = kates.Query{Name: "Settings", Key: kates.KeyOf(func(o metav1.Object) []string { return []string{"default/" + o.GetLabels()["of"]} })}

// newRoot is a root that wants services of some names in each cluster.
func newRoot(uid types.UID, wants ...string) *kates.ConfigMap {
	root := configMap("root")
	root.UID, root.Data = uid, map[string]string{"wants": strings.Join(wants, " ")}
	return root
}

// set is what a root wants in one cluster.
func set(p *rootTurn) kates.OwnedSet {
	s := kates.OwnedSet{SetName: "unit"}
	for _, name := range strings.Fields(p.Home.Root.Data["wants"]) {
		s.Objects = append(s.Objects, service(name))
	}
	return s
}

// applyAll applies what a root wants in all clusters.
func applyAll(ctx context.Context, p *rootTurn) (err error) {
	for cluster := range p.Clusters {
		_, failed := p.ApplyOwned(ctx, cluster, set(p))
		err = errors.Join(err, failed)
	}
	return err
}

// servicesOf are the names of the services in a cluster.
func servicesOf(t *testing.T, k *katestest.Fake) string {
	t.Helper()
	var all []*kates.Service
	if err := k.Client.List(t.Context(), kates.Query{Kind: "services"}, &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		if len(s.OwnerReferences) > 0 {
			t.Errorf("service %s has an owner reference: the garbage collector would delete it", s.Name)
		}
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// reconciling runs a controller until the test ends.
func reconciling(t *testing.T, f *Fleet, home *katestest.Fake, reconcile func(context.Context, *rootTurn) error, options ...kates.RunOption) *HomeController[rootParts, placed] {
	t.Helper()
	c, err := NewHomeController(f, home.Client, "roots", func(ctx context.Context, p *rootTurn) (controller.Result, error) {
		return controller.Done, reconcile(ctx, p)
	}, append(options, bySetting)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestARootInTheHomeClusterOwnsObjectsInAllClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		home := katestest.New(t, katestest.WithObjects(newRoot("1", "x", "y")))
		a, b := newCluster(t, "1"), newCluster(t, "2", service("others"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		calls := 0
		reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
			calls++
			return applyAll(ctx, p)
		})
		expect := func(want ...string) {
			t.Helper()
			atRest()
			if got := []string{servicesOf(t, a), servicesOf(t, b)}; !slices.Equal(got, want) {
				t.Errorf("the services are %q, not %q", got, want)
			}
		}
		expect("x y", "others x y")
		root := newRoot("1", "y", "z")
		if err := home.Client.Update(t.Context(), root, nil); err != nil {
			t.Fatal(err)
		}
		expect("y z", "others y z")
		if err := b.Client.Delete(t.Context(), service("y"), nil); err != nil {
			t.Fatal(err)
		}
		expect("y z", "others y z") // what somebody deletes is made again
		c := newCluster(t, "3")
		_ = f.Set(Member{Name: "c", Client: c.Client})
		atRest()
		if got := servicesOf(t, c); got != "y z" {
			t.Errorf("in a cluster that came later: %q", got)
		}
		before := calls
		f.Remove("a")
		atRest()
		if calls == before {
			t.Error("the root was not reconciled when a cluster left")
		}
		expect("y z", "others y z")
	})
}

// A reconcile sees what it has written before, whatever the watches have brought: it never creates
// twice.
func TestG4AReconcileSeesItsWritesInAllClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		home := katestest.New(t, katestest.WithObjects(newRoot("1")))
		a, b := newCluster(t, "1"), newCluster(t, "2")
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		made := 0
		reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
			if made == 10 {
				return nil
			}
			for cluster, there := range p.Clusters {
				if len(there.Settings) != made {
					t.Errorf("cluster %q has %d settings, and %d were made", cluster, len(there.Settings), made)
				}
				m := configMap(fmt.Sprint(made))
				m.Labels = map[string]string{"of": "root"}
				if err := f.Cluster(cluster).Client().Create(ctx, m, nil); err != nil {
					return err
				}
			}
			made++
			return kates.Again(0)
		}, kates.WithQuietOwnWrites())
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if made < 10 {
			t.Errorf("%d were made", made)
		}
	})
}

func TestNothingIsPrunedWhileAClusterIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		home := katestest.New(t, katestest.WithObjects(newRoot("1", "x", "y")))
		a, b := newCluster(t, "1"), newCluster(t, "2")
		var silent atomic.Bool
		onGet(b, func() (bool, error) { return silent.Load(), errors.New("no answer") })
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		var missing []Missing
		var failed error
		reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
			missing, failed = p.Missing, applyAll(ctx, p)
			return failed
		})
		atRest()
		silent.Store(true) // writes go through
		atRest()
		if len(missing) != 1 || missing[0].Cluster != "b" || !missing[0].Shown {
			t.Errorf("missing: %v", missing)
		}
		if err := home.Client.Update(t.Context(), newRoot("1", "y", "z"), nil); err != nil {
			t.Fatal(err)
		}
		atRest()
		if got := []string{servicesOf(t, a), servicesOf(t, b)}; !slices.Equal(got, []string{"y z", "x y z"}) || !errors.Is(failed, ErrNotPruned) {
			t.Errorf("the services are %q, and the error is %v", got, failed)
		}
		silent.Store(false)
		atRest()
		if got := servicesOf(t, b); got != "y z" || failed != nil || len(missing) != 0 {
			t.Errorf("the services are %q, the error is %v, missing: %v", got, failed, missing)
		}
	})
}

func TestAFinalizerStaysUntilAllClustersHaveRemovedWhatIsOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		home := katestest.New(t, katestest.WithObjects(newRoot("1", "x", "y")))
		a, b := newCluster(t, "1", service("others")), newCluster(t, "2")
		var down atomic.Bool
		on(b, "*", "*", &down, errors.New("connection refused"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		var failed error
		reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
			failed = kates.UnderFinalizer(ctx, home.Client, p.Home.Root, "example.com/parts",
				func(ctx context.Context, _ *kates.ConfigMap) error { return applyAll(ctx, p) },
				func(ctx context.Context, _ *kates.ConfigMap) error {
					return p.RemoveOwned(ctx, kates.OwnedSet{SetName: "unit"})
				})
			return failed
		})
		atRest()
		down.Store(true)
		atRest()
		var root *kates.ConfigMap
		if err := home.Client.Get(t.Context(), configMap("root"), &root); err != nil {
			t.Fatal(err)
		}
		now := root.DeepCopy() // the fake deletes at once: this is what a server does
		now.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		if err := home.Client.Update(t.Context(), now, nil); err != nil {
			t.Fatal(err)
		}
		atRest()
		if err := home.Client.Get(t.Context(), configMap("root"), &root); err != nil || len(root.Finalizers) != 1 {
			t.Errorf("the root is gone, or its finalizer: %v %v", err, root.Finalizers)
		}
		if got := servicesOf(t, a); got != "others" || !errors.Is(failed, ErrUnreachable) || !strings.Contains(fmt.Sprint(failed), `cluster "b"`) {
			t.Errorf("the services are %q, and the error is %v", got, failed)
		}
		down.Store(false)
		atRest()
		if err := home.Client.Get(t.Context(), configMap("root"), &root); err == nil && len(root.Finalizers) > 0 || failed != nil {
			t.Errorf("the finalizer stays: %v", failed)
		}
		if got := servicesOf(t, b); got != "" {
			t.Errorf("the services are %q", got)
		}
	})
}

func TestHomeControllersThatMakeNoSenseAreErrors(t *testing.T) {
	f, home := newFleet(t, Options{}), katestest.NewClient(t)
	fails := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	call := func(context.Context, *rootTurn) (controller.Result, error) { return controller.Done, nil }
	_, err := NewHomeController(nil, home, "roots", call)
	fails("the fleet is nil", err)
	_, err = NewHomeController[rootParts, placed](f, home, "roots", nil)
	fails("no function", err)
	_, err = NewHomeController(f, home, "roots", func(context.Context, *Parts[placed, placed]) (controller.Result, error) { return controller.Done, nil })
	fails("no field of type controller.Info", err)
	_, err = NewHomeController(f, home, "roots", func(context.Context, *Parts[rootParts, int]) (controller.Result, error) { return controller.Done, nil })
	fails("is a struct, not int", err)
	_, err = NewHomeController(f, home, "roots", func(context.Context, *Parts[rootParts, struct{ X map[string]*kates.Pod }]) (controller.Result, error) {
		return controller.Done, nil
	})
	fails("a slice of pointers to objects", err)
	_, err = NewHomeController(f, home, "roots", call, bySetting, bySetting)
	fails("there are two of that name", err)
	_, err = NewHomeController(f, home, "roots", call, kates.Query{Name: "Pods"})
	fails("Pods", err)
	some := kates.WhereOf(func(metav1.Object) (bool, error) { return true, nil })
	_, err = NewHomeController(f, home, "roots", call, kates.Query{Name: "Services", Where: some})
	fails("field Services: its Where would hide objects that a root owns from their removal", err)
}

// rootWants changes what the root wants in each cluster.
func rootWants(t *testing.T, home *katestest.Fake, names ...string) {
	t.Helper()
	if err := home.Client.Update(t.Context(), newRoot("1", names...), nil); err != nil {
		t.Fatal(err)
	}
}

// silence answers nothing, and counts what is sent for services.
func silence(sent *atomic.Int64) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/services/") {
			sent.Add(1)
		}
		<-r.Context().Done()
		return true
	}
}

// The writes of a reconcile go to one cluster after the other, and the first one hangs: it holds
// the others up for a while, once.
func TestG8AClusterThatHangsHoldsUpNoOthersWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Client: []kates.Option{kates.WithLogger(slog.New(slog.DiscardHandler))}})
		home, b := katestest.New(t, katestest.WithObjects(newRoot("1", "x"))), newCluster(t, "2")
		a := newWired(t, "a")
		_ = f.Add("a", a.config())
		_ = f.Set(Member{Name: "b", Client: b.Client})
		var failed error
		reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
			failed = nil
			for _, cluster := range slices.Sorted(maps.Keys(p.Clusters)) {
				_, err := p.ApplyOwned(ctx, cluster, set(p))
				failed = errors.Join(failed, err)
			}
			return failed
		})
		atRest()
		has := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := servicesOf(t, b); got != want {
				t.Errorf("the other cluster has %q, not %q", got, want)
			}
		}
		has("x")
		var sent atomic.Int64 // for objects; the fleet asks whether the cluster answers
		silent := silence(&sent)
		a.tell(silent)
		rootWants(t, home, "x", "y") // before anybody knows that it hangs
		time.Sleep(time.Minute)
		has("x y")
		if !errors.Is(failed, ErrNotPruned) {
			t.Errorf("the error is %v", failed)
		}
		before, sentBefore := len(a.writes()), sent.Load()
		rootWants(t, home, "z")
		time.Sleep(2 * time.Minute) // the root has a backoff
		has("z")
		if n := sent.Load(); n != sentBefore || n == 0 {
			t.Errorf("%d more requests to a cluster that is known to hang, and %d before", n-sentBefore, sentBefore)
		}
		a.tell(nil)
		time.Sleep(2 * time.Minute)
		has("z")
		if writes := a.writes(); failed != nil || !slices.Contains(writes[before:], "DELETE /api/v1/namespaces/default/services/x") {
			t.Errorf("%v, writes after it answers: %v", failed, writes[before:])
		}
		a.tell(silent) // another outage
		time.Sleep(time.Minute)
		sentBefore = sent.Load()
		rootWants(t, home, "w")
		time.Sleep(2 * time.Minute)
		has("w")
		if n := sent.Load() - sentBefore; n != 1 {
			t.Errorf("%d requests of the first write in another outage", n)
		}
	})
}
