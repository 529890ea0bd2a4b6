// Package inmemory shows that clients of others work on katestest's server in memory as they do on
// a real one. It starts no cluster.
package inmemory

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kates-go/kates/kates/katestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// events are what an informer tells its handlers, one after the other.
type events chan any

func (e events) OnAdd(o any, _ bool)   { e <- o }
func (e events) OnUpdate(_, o any)     { e <- o }
func (e events) OnDelete(o any)        { e <- o }
func (e events) next(t *testing.T) any { t.Helper(); return receive(t, e) }

func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-t.Context().Done():
		t.Fatal("nothing came")
	}
	return v
}

func TestTypedInformersOfClientGoWorkOnTheServerInMemory(t *testing.T) {
	for name, contentType := range map[string]string{"JSON": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf} {
		t.Run(name, func(t *testing.T) {
			config := rest.CopyConfig(katestest.NewServer(t).Config)
			config.ContentType = contentType
			clients, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			services := clients.CoreV1().Services("default")
			ctx, cancel := context.WithCancel(t.Context())
			factory := informers.NewSharedInformerFactory(clients, 0)
			informer := factory.Core().V1().Services()
			told := make(events)
			_, err = informer.Informer().AddEventHandler(told)
			require.NoError(t, err)
			factory.Start(ctx.Done())
			defer factory.Shutdown()
			defer cancel()

			made, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "a"}, Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
			require.NoError(t, err)
			assert.Equal(t, made, told.next(t))
			listed, err := informer.Lister().Services("default").List(labels.Everything())
			require.NoError(t, err)
			assert.Equal(t, []*corev1.Service{made}, listed)

			first := made.DeepCopy()
			made.Spec.Selector["app"] = "b"
			changed, err := services.Update(ctx, made, metav1.UpdateOptions{})
			require.NoError(t, err)
			assert.Equal(t, changed, told.next(t))
			_, err = services.Update(ctx, first, metav1.UpdateOptions{})
			assert.True(t, apierrors.IsConflict(err), "%v", err)

			_, err = services.Apply(ctx, applycorev1.Service("a", "default").WithSpec(applycorev1.ServiceSpec().
				WithSelector(map[string]string{"app": "c"})), metav1.ApplyOptions{FieldManager: "other"})
			assert.True(t, apierrors.IsConflict(err), "%v", err)
			applied, err := services.Apply(ctx, applycorev1.Service("a", "default").WithSpec(applycorev1.ServiceSpec().
				WithSelector(map[string]string{"app": "c"})), metav1.ApplyOptions{FieldManager: "other", Force: true})
			require.NoError(t, err)
			assert.Equal(t, applied, told.next(t))

			require.NoError(t, services.Delete(ctx, "a", metav1.DeleteOptions{}))
			gone := told.next(t)
			if unknown, is := gone.(toolscache.DeletedFinalStateUnknown); is {
				gone = unknown.Obj
			}
			assert.Equal(t, applied.UID, gone.(*corev1.Service).UID)
		})
	}
}

func TestClientAndCacheOfControllerRuntimeWorkOnTheServerInMemory(t *testing.T) {
	server := katestest.NewServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cached, err := cache.New(server.Config, cache.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	informer, err := cached.GetInformer(ctx, &appsv1.Deployment{}, cache.BlockUntilSynced(false))
	require.NoError(t, err)
	told := make(events)
	_, err = informer.AddEventHandler(told)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- cached.Start(ctx) }()
	defer func() { cancel(); assert.NoError(t, <-ended) }()
	live, err := client.New(server.Config, client.Options{Scheme: clientgoscheme.Scheme, Cache: &client.CacheOptions{Reader: cached}})
	require.NoError(t, err)

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"l": "x"}}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
	require.NoError(t, live.Create(ctx, d))
	assert.EqualValues(t, 1, *d.Spec.Replicas, "a default")
	receive(t, told)
	var read appsv1.Deployment
	require.NoError(t, live.Get(ctx, client.ObjectKeyFromObject(d), &read))
	assert.Equal(t, d.ResourceVersion, read.ResourceVersion)
	var list appsv1.DeploymentList
	require.NoError(t, live.List(ctx, &list, client.MatchingLabels{"l": "x"}))
	assert.Len(t, list.Items, 1)

	old := d.DeepCopy()
	d.Status.Replicas, d.Spec.Paused = 3, true
	require.NoError(t, live.Status().Update(ctx, d))
	assert.False(t, d.Spec.Paused, "the status alone is written")
	assert.True(t, apierrors.IsConflict(live.Update(ctx, old)))
	receive(t, told)
	before := d.DeepCopy()
	d.Labels["l"] = "y"
	require.NoError(t, live.Patch(ctx, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	receive(t, told)

	configuration := applycorev1.ConfigMap("settings", "default").WithData(map[string]string{"k": "v"})
	require.NoError(t, live.Apply(ctx, configuration, client.FieldOwner("one")))
	conflicting := applycorev1.ConfigMap("settings", "default").WithData(map[string]string{"k": "w"})
	assert.True(t, apierrors.IsConflict(live.Apply(ctx, conflicting, client.FieldOwner("two"))))

	require.NoError(t, live.Delete(ctx, d, client.Preconditions{UID: &d.UID}))
	receive(t, told)
	assert.True(t, apierrors.IsNotFound(live.Get(ctx, client.ObjectKeyFromObject(d), &read)))
}
