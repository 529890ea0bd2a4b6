package workload

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kates-go/kates/bench/internal/operator/api"
)

// fieldManager is the field manager of all writes of the load to the operators' objects.
const fieldManager = "bench"

// Apps are the roots of the compared operators, on an API server that has App's definition. The
// methods may be called concurrently.
type Apps struct {
	client client.Client
	n      int
}

// NewApps returns n Apps on the server of the configuration, which should have no rate limit. It
// only asks the server for its kinds.
func NewApps(config *rest.Config, n int) (*Apps, error) {
	c, err := client.New(config, client.Options{Scheme: api.NewScheme(), FieldOwner: fieldManager})
	if err != nil {
		return nil, fmt.Errorf("make a client of the load: %w", err)
	}
	return &Apps{c, n}, nil
}

// Len returns the number of Apps.
func (a *Apps) Len() int { return a.n }

// AppName returns the name of the i-th App.
func AppName(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: Namespace(i), Name: fmt.Sprintf("app-%05d", i)}
}

// AppSpec is the spec of the i-th App after a number of changes. Every change sets the image, and
// every second one more than that, so that objects are both updated and replaced. An App owns
// five objects at any time.
func AppSpec(i, changes int) api.AppSpec {
	replaced := changes / 2
	return api.AppSpec{
		Replicas: int32(1 + (i+changes)%5),
		Image:    image(fmt.Sprintf("app-%05d", i)) + fmt.Sprintf(".%d", changes),
		Settings: map[string]string{
			"server":                               settingsText("server", i, changes),
			fmt.Sprintf("features-%d", replaced%3): settingsText("features", i, replaced),
		},
	}
}

func settingsText(what string, i, changes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, version %d\n", what, changes)
	for k := range 12 {
		fmt.Fprintf(&b, "%s_%02d: {enabled: true, share: 0.%d, owner: team-%d}\n", what, k, (i+k)%10, i%namespaces)
	}
	return b.String()
}

// Fill creates the namespaces and all Apps.
func (a *Apps) Fill(ctx context.Context) error {
	err := parallel(ctx, namespaces, func(ctx context.Context, i int) error {
		return a.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace(i)}})
	})
	if err == nil {
		err = a.Each(ctx, a.n, func(ctx context.Context, i int) error {
			name := AppName(i)
			return a.client.Create(ctx, &api.App{
				ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Spec: AppSpec(i, 0),
			})
		})
	}
	if err != nil {
		return fmt.Errorf("fill the server: %w", err)
	}
	return nil
}

// Each calls f for 0 to n-1, several at a time, and returns the first error. After an error it
// begins no further call.
func (a *Apps) Each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	return parallel(ctx, n, f)
}

// Change gives an App another spec.
func (a *Apps) Change(ctx context.Context, i int, spec api.AppSpec) error {
	name := AppName(i)
	app := &api.App{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := a.client.Get(ctx, name, app); err != nil {
		return fmt.Errorf("change App %s: %w", name, err)
	}
	was := app.DeepCopy()
	app.Spec = spec
	if err := a.client.Patch(ctx, app, client.MergeFrom(was)); err != nil {
		return fmt.Errorf("change App %s: %w", name, err)
	}
	return nil
}

// Delete deletes an object that an App owns.
func (a *Apps) Delete(ctx context.Context, o api.Object) error {
	if err := a.client.Delete(ctx, o, client.Preconditions{UID: new(o.GetUID())}); err != nil {
		return fmt.Errorf("delete %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// Spoil changes a value of an owned object to an unwanted one, and returns the object after that.
// It adds nothing: server-side apply leaves alone what others have added.
func (a *Apps) Spoil(ctx context.Context, o api.Object) (api.Object, error) {
	spoilt := o.DeepCopyObject().(client.Object)
	switch o := spoilt.(type) {
	case *corev1.ServiceAccount:
		o.Labels[api.Label] = "spoilt"
	case *corev1.Service:
		o.Spec.Ports[0].TargetPort = intstr.FromString("spoilt")
	case *corev1.ConfigMap:
		o.Data["config.yaml"] += "spoilt: true\n"
	case *appsv1.Deployment:
		o.Spec.Template.Spec.Containers[0].Image += "-spoilt"
	default:
		return nil, fmt.Errorf("an App does not own a %T", o)
	}
	if err := a.client.Patch(ctx, spoilt, client.StrategicMergeFrom(o.(client.Object))); err != nil {
		return nil, fmt.Errorf("change %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return spoilt, nil
}
