package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// What a reconcile has of a cluster may be old when it begins, or by the time at which it writes:
// either is a reason not to prune.
func TestNothingIsPrunedInAClusterThatIsStaleBeforeOrDuringAReconcile(t *testing.T) {
	for name, before := range map[string]bool{"before": true, "during": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, Options{})
				home, a := katestest.New(t, katestest.WithObjects(newRoot("1", "x", "y"))), newCluster(t, "1")
				var silent atomic.Bool
				onGet(a, func() (bool, error) { return silent.Load(), errors.New("no answer") })
				_ = f.Set(Member{Name: "a", Client: a.Client})
				var failed error
				var tried atomic.Bool
				reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
					if p.Home.Root.Data["wants"] == "x y" {
						return applyAll(ctx, p)
					}
					if tried.Load() {
						return nil // the one before is judged
					}
					silent.Store(!before)
					time.Sleep(time.Minute)
					if stale := f.Cluster("a").Health().Phase == Stale; stale == before || (len(p.Missing) > 0) != before {
						t.Errorf("now stale: %t, missing: %v", stale, p.Missing)
					}
					failed = applyAll(ctx, p)
					tried.Store(true)
					return nil
				})
				atRest()
				silent.Store(before)
				atRest()
				if err := home.Client.Update(t.Context(), newRoot("1", "y"), nil); err != nil {
					t.Fatal(err)
				}
				atRest()
				if got := servicesOf(t, a); got != "x y" || !errors.Is(failed, ErrNotPruned) {
					t.Errorf("the services are %q, and the error is %v", got, failed)
				}
			})
		})
	}
}

// removing runs a controller whose finalizer removes the set "unit" of a root, but not the set
// "other". It returns what the last reconcile has returned.
func removing(t *testing.T, f *Fleet, home *katestest.Fake, before func()) (failed func() error) {
	var last error
	reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
		last = kates.UnderFinalizer(ctx, home.Client, p.Home.Root, "example.com/parts",
			func(ctx context.Context, _ *kates.ConfigMap) error {
				other := kates.OwnedSet{SetName: "other", Objects: []kates.Object{service("stays")}}
				_, err := p.ApplyOwned(ctx, "a", other)
				return errors.Join(err, applyAll(ctx, p))
			},
			func(ctx context.Context, _ *kates.ConfigMap) error {
				before()
				return p.RemoveOwned(ctx, kates.OwnedSet{SetName: "unit"})
			})
		return last
	})
	return func() error { return last }
}

// deleteRoot has the root deleted as a server does: client-go's fake deletes at once.
func deleteRoot(t *testing.T, home *katestest.Fake) {
	t.Helper()
	root := finalizers(t, home)
	root.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if err := home.Client.Update(t.Context(), root, nil); err != nil {
		t.Fatal(err)
	}
}

// finalizers returns the root, nil if it is gone.
func finalizers(t *testing.T, home *katestest.Fake) *kates.ConfigMap {
	t.Helper()
	root := &kates.ConfigMap{}
	if err := home.Client.Get(t.Context(), configMap("root"), root); err != nil {
		if !kates.IsNotFound(err) {
			t.Fatal(err)
		}
		return nil
	}
	return root
}

// Objects of another set, and what others have made, hold nothing up.
func TestRemoveOwnedIsNotDoneWhileAnObjectOfTheSetHasAFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, server := newFleet(t, Options{}), katestest.NewServer(t)
		home, others := katestest.New(t, katestest.WithObjects(newRoot("1", "x", "y"))), server.Client(t)
		_ = f.Set(Member{Name: "a", Client: server.Client(t)})
		failed := removing(t, f, home, func() {})
		atRest()
		x := service("x")
		if err := others.Get(t.Context(), x, x); err != nil {
			t.Fatal(err)
		}
		x.Finalizers = []string{"example.com/kept"}
		if err := others.Update(t.Context(), x, x); err != nil {
			t.Fatal(err)
		}
		deleteRoot(t, home)
		atRest()
		if root := finalizers(t, home); root == nil || len(root.Finalizers) != 1 {
			t.Fatalf("the root is gone, or its finalizer, and x is there still: %v", failed())
		}
		if err := others.Get(t.Context(), service("y"), nil); !kates.IsNotFound(err) {
			t.Errorf("y is not removed: %v", err)
		}
		if err := others.Get(t.Context(), x, x); err != nil || x.DeletionTimestamp == nil {
			t.Fatalf("x is not being removed: %v", err)
		}
		x.Finalizers = nil
		if err := others.Update(t.Context(), x, nil); err != nil {
			t.Fatal(err)
		}
		atRest()
		if root := finalizers(t, home); root != nil && len(root.Finalizers) > 0 {
			t.Errorf("the finalizer stays: %v", failed())
		}
		if err := others.Get(t.Context(), service("stays"), nil); err != nil {
			t.Errorf("the other set: %v", err)
		}
	})
}

// The cluster comes when the root's parts have been taken.
func TestRemoveOwnedIsNotDoneWhileAClusterThatCameMeanwhileIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, a := newFleet(t, Options{}), newCluster(t, "1")
		home, late := katestest.New(t, katestest.WithObjects(newRoot("1", "x"))), newCluster(t, "2")
		var refused atomic.Bool
		refused.Store(true)
		on(late, "list", "*", &refused, errors.New("not now"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		failed := removing(t, f, home, func() {
			_ = f.Set(Member{Name: "b", Client: late.Client})
			time.Sleep(time.Second)
		})
		atRest()
		deleteRoot(t, home)
		atRest()
		if root := finalizers(t, home); root == nil || len(root.Finalizers) != 1 {
			t.Error("the root is gone, or its finalizer")
		}
		if err := failed(); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), `cluster "b"`) {
			t.Errorf("the error is %v", err)
		}
		refused.Store(false)
		atRest()
		if root := finalizers(t, home); root != nil && len(root.Finalizers) > 0 {
			t.Errorf("the finalizer stays: %v", failed())
		}
	})
}

// Nobody sees a moment at which the one has left and the other has not come.
func TestRootsAreReconciledWhenOneClusterLeavesWhileAnotherComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := make(scripted)
		f, home := newFleet(t, Options{Sources: []Source{script}}), katestest.New(t, katestest.WithObjects(newRoot("1", "x")))
		a, b, c := newCluster(t, "1"), newCluster(t, "2"), newCluster(t, "3")
		script <- []Member{{Name: "a", Client: a.Client}, {Name: "b", Client: b.Client}}
		var last []string
		reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
			last = slices.Sorted(maps.Keys(p.Clusters))
			return applyAll(ctx, p)
		})
		atRest()
		script <- []Member{{Name: "b", Client: b.Client}, {Name: "c", Client: c.Client}}
		atRest()
		if !slices.Equal(last, []string{"b", "c"}) || servicesOf(t, c) != "x" {
			t.Errorf("the last reconcile had %v, and the new cluster has %q", last, servicesOf(t, c))
		}
		script <- []Member{{Name: "b", Client: a.Client}, {Name: "d", Client: b.Client}}
		atRest()
		if !slices.Equal(last, []string{"b", "d"}) {
			t.Errorf("the last reconcile had %v", last)
		}
		if n := len(c.Client.Status().Queries); n > 0 {
			t.Errorf("%d watches are left in a cluster that has left", n)
		}
	})
}

// A root that takes the name of another does not take its objects.
func TestWhatARootOwnsIsByItsUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, home := newFleet(t, Options{}), katestest.New(t, katestest.WithObjects(newRoot("1", "x")))
		_ = f.Set(Member{Name: "a", Client: newCluster(t, "1").Client})
		owns := make(map[string]int)
		reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
			uid := string(p.Home.Root.GetUID())
			owns[uid] = len(p.Clusters["a"].Services)
			if uid == "1" {
				return applyAll(ctx, p)
			}
			return nil
		})
		atRest()
		if err := home.Client.Delete(t.Context(), newRoot("1"), nil); err != nil {
			t.Fatal(err)
		}
		if err := home.Client.Create(t.Context(), newRoot("2"), nil); err != nil {
			t.Fatal(err)
		}
		atRest()
		if n, is := owns["2"]; owns["1"] != 1 || !is || n != 0 {
			t.Errorf("objects by the root's UID: %v", owns)
		}
	})
}
