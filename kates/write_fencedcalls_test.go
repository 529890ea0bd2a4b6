package kates_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var errLeaseOver = errors.New("the lease is over")

// someLease is held until the test ends it.
type someLease struct{ over atomic.Bool }

func (l *someLease) held() error {
	if l.over.Load() {
		return errLeaseOver
	}
	return nil
}

// onItsWay is a transport that does something before it passes a write on.
type onItsWay struct {
	next   http.RoundTripper
	writes atomic.Int32
	before func()
	sees   func(method, body string)
}

func (o *onItsWay) WrappedRoundTripper() http.RoundTripper { return o.next }

func (o *onItsWay) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		o.writes.Add(1)
		if o.before != nil {
			o.before()
		}
		if o.sees != nil && r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			text, _ := io.ReadAll(body) // it is in memory
			o.sees(r.Method, string(text))
		}
	}
	return o.next.RoundTrip(r)
}

// fencedWorld is a server with a few objects, and a client whose writes a test sees.
type fencedWorld struct {
	other, client *kates.Client
	wire          *onItsWay
	x             *kates.ConfigMap
	d             *appsv1.Deployment
	p             *corev1.Pod
	set           kates.OwnedSet // owns the objects old and shared, and wants neither
}

func newFencedWorld(t *testing.T) *fencedWorld {
	t.Helper()
	server := katestest.NewServer(t)
	w := &fencedWorld{other: server.Client(t), wire: &onItsWay{}}
	config := rest.CopyConfig(server.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { w.wire.next = next; return w.wire })
	var err error
	w.client, err = kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	t.Cleanup(w.client.Close)
	in := metav1.ObjectMeta{Namespace: "default", Name: "x"}
	container := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	labels := map[string]string{"app": "x"}
	w.x = &kates.ConfigMap{ObjectMeta: in}
	w.x.Finalizers = []string{"example.com/there"}
	w.p = &corev1.Pod{ObjectMeta: in, Spec: container}
	w.d = &appsv1.Deployment{ObjectMeta: in, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: container},
	}}
	require.NoError(t, w.other.Create(t.Context(), w.x, w.x))
	require.NoError(t, w.other.Create(t.Context(), w.p, w.p))
	require.NoError(t, w.other.Create(t.Context(), w.d, w.d))
	root := inNamespace("default", "root")
	require.NoError(t, w.other.Create(t.Context(), root, root))
	w.set = kates.OwnedSet{Owner: root, SetName: "set", Objects: []kates.Object{configMap("old"), configMap("shared")}}
	_, err = w.other.ApplyOwned(t.Context(), w.set)
	require.NoError(t, err)
	_, err = kates.Modify(t.Context(), w.other, inNamespace("default", "shared"), func(m *kates.ConfigMap) error {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "x", UID: w.p.UID})
		return nil
	})
	require.NoError(t, err)
	w.set.Objects, w.set.Kinds = nil, []string{"configmaps"}
	return w
}

// state is what the server has, in versions.
func (w *fencedWorld) state(t *testing.T) (all []string) {
	t.Helper()
	for _, kind := range []string{"configmaps", "deployments", "pods"} {
		var objects []*kates.Unstructured
		require.NoError(t, w.other.List(t.Context(), kates.Query{Kind: kind, Namespace: "default"}, &objects))
		for _, o := range objects {
			all = append(all, o.GetKind()+" "+o.GetName()+" "+o.GetResourceVersion())
		}
	}
	return all
}

// touch has another client write to the objects x.
func (w *fencedWorld) touch(t *testing.T) {
	t.Helper()
	for _, o := range []any{w.x, w.d, w.p} {
		assert.NoError(t, w.other.Patch(t.Context(), o, kates.MergePatchType, []byte(`{"metadata":{"labels":{"theirs":"yes"}}}`), nil))
	}
}

// fencedWrite is a call of a method that writes.
type fencedWrite struct {
	do func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error
	// bound: it is not based on a version, so the client binds it to the one that it knows.
	bound bool
}

const fencedMerge = `{"metadata":{"labels":{"mine":"yes"}}}`

func available(o *[]appsv1.DeploymentCondition) {
	*o = []appsv1.DeploymentCondition{{Type: "Available", Status: "True", Reason: "Good"}}
}

func label[T any, P interface {
	*T
	kates.Object
}](o *T) error {
	P(o).SetLabels(map[string]string{"mine": "yes"})
	return nil
}

func bareMap() *kates.ConfigMap { return inNamespace("default", "x") }

// fencedWrites are all functions of the package that take options of writes. What follows a
// slash is one way of several.
var fencedWrites = map[string]fencedWrite{
	"Create": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.Create(ctx, configMap("new"), nil, opts...)
	}},
	"Update": {bound: true, do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		m := bareMap()
		m.Data = map[string]string{"k": "v"}
		return w.client.Update(ctx, m, nil, opts...)
	}},
	"UpdateStatus": {bound: true, do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		d := w.d.DeepCopy()
		d.ResourceVersion = ""
		available(&d.Status.Conditions)
		return w.client.UpdateStatus(ctx, d, nil, opts...)
	}},
	"Patch": {bound: true, do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.Patch(ctx, bareMap(), kates.MergePatchType, []byte(fencedMerge), nil, opts...)
	}},
	"Apply": {bound: true, do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		m := kates.NewUnstructured("ConfigMap", "v1")
		m.SetName("x")
		m.SetLabels(map[string]string{"mine": "yes"})
		return w.client.Apply(ctx, m, nil, opts...)
	}},
	"Delete": {bound: true, do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.Delete(ctx, w.p, nil, append(opts, kates.GracePeriod(0))...)
	}},
	"DeleteAll": {bound: true, do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.DeleteAll(ctx, kates.Query{Kind: "pods"}, append(opts, kates.GracePeriod(0))...)
	}},
	"Upsert/creates": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.Upsert(ctx, nil, configMap("new"), nil, opts...)
	}},
	"Upsert/updates": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.Upsert(ctx, nil, configMap("x", "k", "v"), nil, opts...)
	}},
	"Modify": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		_, err := kates.Modify(ctx, w.client, w.x, label[kates.ConfigMap], opts...)
		return err
	}},
	"ModifyStatus": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		_, err := kates.ModifyStatus(ctx, w.client, w.d, func(d *appsv1.Deployment) error {
			available(&d.Status.Conditions)
			return nil
		}, opts...)
		return err
	}},
	"ModifyStatus/as it is": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		_, err := kates.ModifyStatus(ctx, w.client, w.d, func(*appsv1.Deployment) error { return nil }, opts...)
		return err
	}},
	"SetConditions": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.SetConditions(ctx, w.p, []kates.Condition{{Type: "Ready", Status: "True", Reason: "Good"}}, opts...)
	}},
	"AddFinalizer": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.AddFinalizer(ctx, w.x, "example.com/mine", opts...)
	}},
	"RemoveFinalizer": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.RemoveFinalizer(ctx, w.x, "example.com/there", opts...)
	}},
	"UnderFinalizer": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		nothing := func(context.Context, *kates.ConfigMap) error { return nil }
		return kates.UnderFinalizer(ctx, w.client, w.x, "example.com/mine", nothing, nothing, opts...)
	}},
	"CreateSubresource": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.CreateSubresource(ctx, w.p, "eviction", &policyv1.Eviction{}, nil, append(opts, kates.GracePeriod(0))...)
	}},
	"UpdateSubresource": {bound: true, do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		// The deployment has a version, and the scale that is sent has none.
		return w.client.UpdateSubresource(ctx, w.d, "scale", &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}, nil, opts...)
	}},
	"PatchSubresource": {bound: true, do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.client.PatchSubresource(ctx, w.d, "status", kates.MergePatchType, []byte(`{"status":{"replicas":3}}`), nil, opts...)
	}},
	"ApplyOwned/applies": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		set := w.set
		set.Objects, set.Existing = []kates.Object{configMap("new")}, []kates.Object{}
		_, err := w.client.ApplyOwned(ctx, set, opts...)
		return err
	}},
	"ApplyOwned/deletes": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.prune(ctx, "old", opts)
	}},
	"ApplyOwned/releases": {do: func(ctx context.Context, w *fencedWorld, opts ...kates.WriteOption) error {
		return w.prune(ctx, "shared", opts)
	}},
}

// prune has the set without the object of a name.
func (w *fencedWorld) prune(ctx context.Context, name string, opts []kates.WriteOption) error {
	var o *kates.ConfigMap
	if err := w.other.Get(context.WithoutCancel(ctx), inNamespace("default", name), &o); err != nil {
		return err
	}
	set := w.set
	set.Existing = []kates.Object{o}
	_, err := w.client.ApplyOwned(ctx, set, opts...)
	return err
}
