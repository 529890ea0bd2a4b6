package fleet

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestAClusterThatWasReplacedDuringAReconcileIsNotWrittenTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		home, a, b := katestest.New(t, katestest.WithObjects(newRoot("1", "x"))), newCluster(t, "1"), newCluster(t, "2")
		_ = f.Set(Member{Name: "a", Client: a.Client})
		var failed error
		first := true
		reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
			if !first {
				return applyAll(ctx, p)
			}
			first = false
			_ = f.Set(Member{Name: "a", Client: b.Client})
			time.Sleep(time.Minute) // b is complete
			failed = applyAll(ctx, p)
			if got := servicesOf(t, b); got != "" {
				t.Errorf("the services are %q", got)
			}
			return failed
		})
		atRest()
		if !errors.Is(failed, ErrNoCluster) {
			t.Errorf("the error is %v", failed)
		}
		if got := servicesOf(t, b); got != "x" {
			t.Errorf("the services are %q", got)
		}
	})
}

func TestAllRootsAreReconciledWhenAReconcileIsTheFirstToSeeAClusterComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, k := newFleet(t, Options{}), newCluster(t, "1")
		_ = f.Set(Member{Name: "a", Client: k.Client})
		synctest.Wait()
		all := 0
		h := &home{
			fleet: f, typ: reflect.TypeFor[placed](), moved: make(chan struct{}, 1),
			trigger: func(...string) {}, triggerAll: func() { all++ },
		}
		if err := h.read([]kates.Query{bySetting}); err != nil {
			t.Fatal(err)
		}
		c := newHomeCluster(h, f.Cluster("a"))
		go c.part.run(t.Context(), h.typ, h.queries)
		h.view.Store(&view{clusters: map[string]*homeCluster{"a": c}, known: true})
		time.Sleep(time.Second)
		for range 2 {
			shown, _, err := h.pull(t.Context(), "default/root", "1", true)
			if len(shown) != 1 || err != nil {
				t.Errorf("shown: %v %v", shown, err)
			}
		}
		if all != 1 {
			t.Errorf("all roots were reconciled %d times", all)
		}
	})
}

// A reconcile that takes changes once more has seen the state before them.
func TestARootIsReconciledForAChangeThatItsReconcileIsTheFirstToTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, k := newFleet(t, Options{}), newCluster(t, "1")
		_ = f.Set(Member{Name: "a", Client: k.Client})
		synctest.Wait()
		var keys []string
		h := &home{
			fleet: f, typ: reflect.TypeFor[placed](), moved: make(chan struct{}, 1),
			trigger: func(all ...string) { keys = append(keys, all...) }, triggerAll: func() {},
		}
		if err := h.read([]kates.Query{bySetting}); err != nil {
			t.Fatal(err)
		}
		c := newHomeCluster(h, f.Cluster("a"))
		go c.part.run(t.Context(), h.typ, h.queries)
		h.view.Store(&view{clusters: map[string]*homeCluster{"a": c}, known: true})
		time.Sleep(time.Second)
		for i, begins := range []bool{true, true, false} {
			setting := configMap(fmt.Sprint("setting-", i))
			setting.Labels = map[string]string{"of": "root"}
			if err := k.Client.Create(t.Context(), setting, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			shown, _, err := h.pull(t.Context(), "default/root", "1", begins)
			if err != nil || len(shown["a"].value.Interface().(placed).Settings) != i+1 {
				t.Errorf("shown: %v %v", shown, err)
			}
			if (len(keys) == 0) != begins {
				t.Errorf("pull %d has had reconciled: %v", i, keys)
			}
		}
	})
}

func TestAMissingClusterHasAReason(t *testing.T) {
	h := &home{fleet: newFleet(t, Options{})}
	h.view.Store(&view{known: true, lost: []seated{{name: "a"}}})
	if _, missing, err := h.pull(t.Context(), "root", "1", true); err != nil || len(missing) != 1 || missing[0].Err == nil {
		t.Errorf("missing: %v %v", missing, err)
	}
}

func TestAHomeControllerEndsWithItsFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		home, a := katestest.New(t, katestest.WithObjects(newRoot("1", "x"))), newCluster(t, "1")
		_ = f.Set(Member{Name: "a", Client: a.Client})
		c, err := NewHomeController(f, home.Client, "roots", func(ctx context.Context, p *rootTurn) (controller.Result, error) {
			if len(p.Missing) > 0 {
				t.Errorf("missing: %v", p.Missing)
			}
			return controller.Done, applyAll(ctx, p)
		}, bySetting)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- c.Run(ctx) }()
		atRest()
		f.Close()
		atRest()
		select {
		case err := <-ended:
			if !errors.Is(err, kates.ErrClosed) {
				t.Error(err)
			}
		default:
			t.Error("it runs on")
			cancel()
			<-ended
		}
	})
}

// hanging is a cluster that answers reads, and no writes.
type hanging struct{ dynamic.Interface }

// IsWatchListSemanticsUnSupported says what the fake says that it is made of.
func (hanging) IsWatchListSemanticsUnSupported() bool { return true }

func (h hanging) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return hangingKind{h.Interface.Resource(r)}
}

type hangingKind struct {
	dynamic.NamespaceableResourceInterface
}

func (h hangingKind) Namespace(ns string) dynamic.ResourceInterface {
	return hangingPlace{h.NamespaceableResourceInterface.Namespace(ns)}
}

type hangingPlace struct{ dynamic.ResourceInterface }

func (hangingPlace) Create(ctx context.Context, _ *kates.Unstructured, _ metav1.CreateOptions, _ ...string) (*kates.Unstructured, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hangingPlace) Patch(ctx context.Context, _ string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*kates.Unstructured, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAWriteToAClusterThatLeavesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		home, a := katestest.New(t, katestest.WithObjects(newRoot("1", "x"))), newCluster(t, "1")
		mapper, err := katestest.NewMapper()
		if err != nil {
			t.Fatal(err)
		}
		client, err := kates.NewClientFromDynamic(hanging{a.Dynamic}, mapper)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		_ = f.Set(Member{Name: "a", Client: client})
		begun, ended := 0, 0
		var failed error
		reconciling(t, f, home, func(ctx context.Context, p *rootTurn) error {
			begun++
			err := applyAll(ctx, p)
			if len(p.Clusters) > 0 {
				ended, failed = ended+1, err
			}
			return err
		})
		atRest()
		if begun != 1 || ended != 0 {
			t.Fatalf("it does not hang: %d %d %v", begun, ended, failed)
		}
		f.Remove("a")
		atRest()
		if ended != 1 || !errors.Is(failed, ErrNoCluster) {
			t.Errorf("reconciles: %d, the error is %v", ended, failed)
		}
	})
}
