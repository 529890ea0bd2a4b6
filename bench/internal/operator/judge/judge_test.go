package judge

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/bench/internal/operator/api"
	"github.com/kates-go/kates/kates"
)

var name = types.NamespacedName{Namespace: "a", Name: "web"}

// world is an App as a perfect operator leaves it.
type world struct {
	*Judge
	app     *api.App
	version int
	uids    int
}

func newWorld() *world {
	w := &world{Judge: newJudge(), app: &api.App{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "1", Generation: 3}}}
	w.app.Spec = api.AppSpec{Replicas: 2, Image: "web:1", Settings: map[string]string{"x": "1", "y": "2"}}
	w.Expect(name, w.app.Spec)
	for _, o := range w.objects() {
		w.see(o, true)
	}
	w.report()
	return w
}

// objects returns new objects.
func (w *world) objects() []api.Object {
	all := api.Listed[api.Object](api.Wanted(w.app))
	for _, o := range all {
		w.uids++
		o.SetUID(types.UID(strconv.Itoa(1000 + w.uids)))
		w.next(o)
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: "App", Name: "web", UID: w.app.UID, Controller: new(true)}})
	}
	return all
}

// next gives an object its next version.
func (w *world) next(o api.Object) {
	w.version++
	o.SetResourceVersion(strconv.Itoa(w.version))
}

func (w *world) report() {
	w.app = w.app.DeepCopy()
	w.app.Status = api.AppStatus{ObservedGeneration: w.app.Generation, Objects: 5, Settings: 2, Conditions: []metav1.Condition{
		{Type: api.Ready, Status: metav1.ConditionTrue, Reason: api.ReasonApplied, ObservedGeneration: w.app.Generation},
	}}
	w.see(w.app, true)
}

func (w *world) wrongs() string { return w.wrong[name] }

// changed applies f to an object of the App, and shows the result to the judge.
func changed[T api.Object](w *world, key string, f func(T)) T {
	var zero T
	o := w.Judge.roots[name].objects[Key{kindOf(zero), key}].DeepCopyObject().(T)
	f(o)
	w.next(o)
	w.see(o, true)
	return o
}

func TestAnAppIsRightWhenAllThatIsWantedIsThere(t *testing.T) {
	w := newWorld()
	assert.Empty(t, w.wrongs())
	right, err := w.Await(t.Context(), time.Minute)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), right, time.Minute)
}

func TestAnyDifferenceIsWrong(t *testing.T) {
	for want, change := range map[string]func(*world){
		"there is no App":          func(w *world) { w.see(w.app, false) },
		"its spec is not the last": func(w *world) { w.Expect(name, api.AppSpec{Image: "web:2"}) },
		"is not there":             func(w *world) { w.see(w.Owned(name)[0], false) },
		"of 5":                     func(w *world) { changed(w, "web-x", func(c *corev1.ConfigMap) { c.Name = "web-z" }) },
		"data":                     func(w *world) { changed(w, "web-x", func(c *corev1.ConfigMap) { c.Data["more"] = "" }) },
		"label":                    func(w *world) { changed(w, "web", func(o *corev1.ServiceAccount) { o.Labels = nil }) },
		"ports":                    func(w *world) { changed(w, "web", func(o *corev1.Service) { o.Spec.Ports[0].Port = 1 }) },
		"selector":                 func(w *world) { changed(w, "web", func(o *corev1.Service) { o.Spec.Selector = nil }) },
		"replicas":                 func(w *world) { changed(w, "web", func(o *appsv1.Deployment) { o.Spec.Replicas = nil }) },
		"container":                func(w *world) { changed(w, "web", func(o *appsv1.Deployment) { containerOf(o).Image = "other" }) },
		"resources": func(w *world) {
			changed(w, "web", func(o *appsv1.Deployment) { containerOf(o).Resources.Limits = nil })
		},
		"there are 0 containers": func(w *world) {
			changed(w, "web", func(o *appsv1.Deployment) { o.Spec.Template.Spec.Containers = nil })
		},
		"its controller is another":  func(w *world) { changed(w, "web", func(o *corev1.Service) { o.OwnerReferences[0].UID = "2" }) },
		"it is being deleted":        func(w *world) { changed(w, "web", func(o *corev1.Service) { o.DeletionTimestamp = &metav1.Time{} }) },
		"observedGeneration is 3 at": func(w *world) { w.app = w.app.DeepCopy(); w.app.Generation++; w.see(w.app, true) },
		"it counts 4 objects":        func(w *world) { w.app = w.app.DeepCopy(); w.app.Status.Objects = 4; w.see(w.app, true) },
		"its condition is":           func(w *world) { w.app = w.app.DeepCopy(); w.app.Status.Conditions = nil; w.see(w.app, true) },
	} {
		w := newWorld()
		change(w)
		assert.Contains(t, w.wrongs(), want)
		for _, o := range w.Owned(name) {
			w.see(toolscache.DeletedFinalStateUnknown{Obj: o}, false)
		}
		w.Expect(name, w.app.Spec)
		for _, o := range w.objects() {
			w.see(o, true)
		}
		w.report()
		assert.Empty(t, w.wrongs(), want)
	}
}

func containerOf(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }

func TestWhatOthersDidIsWrongUntilItIsRepaired(t *testing.T) {
	w := newWorld()
	before := w.roots[name].objects[Key{"v1.Service", "web"}].DeepCopyObject().(*corev1.Service)
	spoilt := before.DeepCopy()
	spoilt.Spec.Ports[0].Port++
	w.next(spoilt)
	w.Changed(name, spoilt) // before the watch has shown it
	assert.Contains(t, w.wrongs(), "was not repaired")
	w.see(spoilt, true)
	assert.NotEmpty(t, w.wrongs())
	changed(w, "web", func(s *corev1.Service) { s.Spec = before.Spec })
	assert.Empty(t, w.wrongs())

	gone := w.roots[name].objects[Key{"v1.ConfigMap", "web-x"}].DeepCopyObject().(*corev1.ConfigMap)
	w.Deleted(name, gone)
	assert.Contains(t, w.wrongs(), "was not repaired")
	w.see(gone, false)
	assert.Contains(t, w.wrongs(), "is not there")
	again := gone.DeepCopy()
	again.UID = "other"
	w.next(again)
	w.see(again, true)
	assert.Empty(t, w.wrongs())
}

func TestAwaitWaitsForTheLastOneOrSaysWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.see(w.app, false)
		_, err := w.Await(t.Context(), time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "1 Apps are not as they should be, for one a/web: there is no App")
		begun := time.Now()
		go func() {
			<-time.After(3 * time.Second)
			w.see(w.app, true)
		}()
		right, err := w.Await(t.Context(), time.Minute)
		require.NoError(t, err)
		assert.Equal(t, 3*time.Second, right.Sub(begun))
	})
}

func TestWhatNobodyExpectsIsNeitherRightNorWrong(t *testing.T) {
	j := newJudge()
	j.see(&api.App{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}}, true)
	j.see(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "of nobody"}}, true)
	j.see("nonsense", true)
	assert.Empty(t, j.wrong)
	assert.Empty(t, j.Owned(name))
}

func TestFingerprintsLeaveOutWhatTheServerMakesAnew(t *testing.T) {
	sums := func(w *world) Fingerprints {
		f, err := w.Fingerprints()
		require.NoError(t, err)
		return f
	}
	one := sums(newWorld())
	require.Len(t, one, 5)
	w := newWorld()
	for _, o := range w.Owned(name) {
		w.see(o, false)
	}
	w.app.UID = "7"
	w.version = 99
	for _, o := range w.objects() {
		o.SetGeneration(5)
		o.SetCreationTimestamp(metav1.Now())
		o.GetLabels()[kates.OwnedSetLabel] = "x"
		w.see(o, true)
	}
	assert.Empty(t, one.Difference(sums(w)))
	changed(w, "web-x", func(c *corev1.ConfigMap) { c.Labels["more"] = "1" })
	assert.Equal(t, "v1.ConfigMap of a/web: web-x", one.Difference(sums(w)))
	delete(one, "v1.ConfigMap of a/web: web-x")
	assert.Equal(t, "v1.ConfigMap of a/web: web-x", one.Difference(sums(w)))
}
