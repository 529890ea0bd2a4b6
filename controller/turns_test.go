package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

func TestARootIsReconciledWithWhatItControlsAndWhatHasItsKeyAndWhatIsForAll(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		w.root("b", "u2", "1")
		w.owns("a", "u1", "a-1")
		w.owns("a", "u1", "a-2")
		w.secret("s", "ns/b")
		c := &calls{}
		r := run(w, c.reconcile, bySecret)
		assert.Equal(t, []string{"ns/a u1=1 +a-1 +a-2", "ns/b u2=1 *s"}, c.taken())
		w.root("b", "u2", "2")
		r.runs()
		assert.Equal(t, []string{"ns/b u2=2 *s"}, c.taken())
		w.secret("s", "ns/a")
		r.runs()
		assert.Equal(t, []string{"ns/a u1=1 +a-1 +a-2 *s", "ns/b u2=2"}, c.taken(), "it moved")
		w.remove(deploys, "ns", "a-1")
		r.runs()
		assert.Equal(t, []string{"ns/a u1=1 +a-2 *s"}, c.taken())
		w.put(corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		r.runs()
		assert.Equal(t, []string{"ns/a u1=1 +a-2 *s @n", "ns/b u2=2 @n"}, c.taken())
		r.stop()
	})
}

func TestWhatHasAKeyButNoRootIsNotReconciled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.owns("a", "u1", "a-1")
		w.secret("s", "ns/b")
		c := &calls{}
		r := run(w, c.reconcile, bySecret)
		w.secret("s2", "ns/b")
		r.runs()
		r.TriggerAll()
		r.runs()
		assert.Empty(t, c.taken())
		assert.Empty(t, r.Keys())
		w.root("b", "u2", "1")
		r.runs()
		assert.Equal(t, []string{"ns/b u2=1 *s *s2"}, c.taken())
		r.stop()
	})
}

func TestOwnedIsWhatTheRootControlsByUIDAndNotWhatAnEarlierRootOfItsNameDid(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u2", "1")
		w.owns("a", "u1", "earlier")
		w.owns("a", "u2", "own")
		plain := ownedObject("a", "u2", "plain")
		plain.OwnerReferences[0].Controller = nil
		w.put(deploys, plain)
		other := ownedObject("a", "u2", "of-another-kind")
		other.OwnerReferences[0].Kind = "Secret"
		w.put(deploys, other)
		c := &calls{}
		r := run(w, c.reconcile, bySecret)
		assert.Equal(t, []string{"ns/a u2=1 +own"}, c.taken())
		w.owns("a", "u2", "earlier")
		r.runs()
		assert.Equal(t, []string{"ns/a u2=1 +earlier +own"}, c.taken())
		r.stop()
	})
}

func TestARootWithoutANamespaceOwnsObjectsInNamespaces(t *testing.T) {
	type parts struct {
		Root  *corev1.Node                       `kates:",root"`
		Owned map[string]*appsv1.Deployment      `kates:",owned"`
		Bound map[string]*corev1.ConfigMap       `kates:",owned"`
		None  []*metav1.PartialObjectMetadata    `kates:"widgets.example.com,owned,optional"`
		Raw   []map[string]any                   `kates:"secrets,owned"`
		Other []struct{ Data map[string]string } `kates:"-"`
	}
	inWorld(t, func(w *world) {
		node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
		w.put(corev1.SchemeGroupVersion.WithResource("nodes"), node)
		for _, ns := range []string{"x", "y"} {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "d"}}
			assert.NoError(t, kates.SetControllerReference(node, d))
			w.put(deploys, d)
		}
		var got []string
		r := run(w, func(_ context.Context, p *parts) (controller.Result, error) {
			got = append(got, fmt.Sprint(p.Root.Name, " ", slices.Sorted(maps.Keys(p.Owned)), len(p.Bound), p.Bound != nil, p.None == nil))
			return controller.Done, nil
		})
		assert.Equal(t, []string{"n [x/d y/d] 0 true true"}, got)
		assert.Equal(t, []string{"n"}, r.Keys())
		r.stop()
	})
}

func TestTheKindOfAnUntypedRootIsInItsTag(t *testing.T) {
	type parts struct {
		App  *kates.Unstructured            `kates:"configmaps,root"`
		Meta []*kates.PartialObjectMetadata `kates:"deployments.apps,owned"`
	}
	type bare struct {
		App *kates.PartialObjectMetadata `kates:"ConfigMap,root"`
	}
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		w.owns("a", "u", "d")
		var got []string
		r := run(w, func(_ context.Context, p *parts) (controller.Result, error) {
			got = append(got, p.App.GetName()+" "+p.Meta[0].Name)
			return controller.Done, nil
		})
		s := run(w, func(_ context.Context, p *bare) (controller.Result, error) {
			got = append(got, p.App.Name)
			return controller.Done, nil
		})
		assert.Equal(t, []string{"a d", "a"}, got)
		r.stop()
		s.stop()
	})
}

func TestAReconcileIsHeldUntilEveryKindIsCompleteAndNotTheRootsAlone(t *testing.T) {
	for _, kind := range []string{"configmaps", "deployments", "secrets", "nodes"} {
		inWorld(t, func(w *world) {
			w.root("a", "u", "1")
			down := w.outage("list", kind, errors.New("down"))
			down.Store(true)
			c := &calls{}
			r := run(w, c.reconcile, bySecret)
			<-after(hour)
			r.TriggerAll()
			r.runs()
			assert.Empty(t, c.taken(), kind)
			assert.ErrorContains(t, r.Ready(), kind[:4])
			down.Store(false)
			<-after(hour)
			assert.Equal(t, []string{"ns/a u=1"}, c.taken())
			assert.NoError(t, r.Ready())
			r.stop()
		})
	}
}

func TestSeveralControllersShareTheStreamsOfTheirClient(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		one, two := &calls{}, &calls{}
		a, b := run(w, one.reconcile, bySecret), run(w, two.reconcile, bySecret)
		assert.Equal(t, []string{"ns/a u=1"}, one.taken())
		assert.Equal(t, []string{"ns/a u=1"}, two.taken())
		assert.Equal(t, 4, w.count("list"))
		assert.Equal(t, 4, w.count("watch"))
		a.stop()
		w.root("a", "u", "2")
		b.runs()
		assert.Equal(t, []string{"ns/a u=2"}, two.taken())
		b.stop()
	})
}

func TestG7DeltasAreThoseSinceTheLastReconcileWithoutAnErrorAndInvalidObjectsAreTold(t *testing.T) {
	type parts struct {
		Root    *corev1.ConfigMap `kates:",root"`
		Secrets []*corev1.Secret
		Deltas  []*kates.Delta
		Invalid []kates.Invalid
	}
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		var got []string
		var answer error
		r := run(w, func(_ context.Context, p *parts) (controller.Result, error) {
			s := ""
			for _, d := range p.Deltas {
				s += d.DeltaType.String() + " " + d.Query + " " + d.Name + ";"
			}
			for _, i := range p.Invalid {
				s += " without " + i.Object.GetName()
			}
			got = append(got, s)
			return controller.RequeueAfter(hour), answer
		}, kates.Query{Name: "Secrets", Key: kates.KeyOf(func(o metav1.Object) []string {
			if o.GetLabels()["app"] == "broken" {
				panic("a bug")
			}
			return []string{"ns/a"}
		})})
		answer = errors.New("oops")
		w.secret("s", "x")
		r.runs()
		answer = nil
		w.root("a", "u", "2")
		<-after(hour)
		r.runs()
		w.secret("s", "broken")
		r.runs()
		assert.Equal(t, []string{"add Root a;", "add Secrets s;", "update Root a;add Secrets s;", "delete Secrets s; without s"}, got)
		r.stop()
	})
}
