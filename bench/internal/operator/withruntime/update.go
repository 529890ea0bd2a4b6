package withruntime

import (
	"context"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kates-go/kates/bench/internal/operator/api"
)

// CreateOrUpdate reads each object from the cache and sets the fields that the operator decides
// about. It leaves the fields that the server has defaulted. It writes the object if that has
// changed it.
func CreateOrUpdate(ctx context.Context, c client.Client, app *api.App, wanted api.Objects) error {
	account := &corev1.ServiceAccount{ObjectMeta: nameOf(wanted.ServiceAccount)}
	err := createOrUpdate(ctx, c, app, account, wanted.ServiceAccount, func() {})
	if err != nil {
		return err
	}
	service := &corev1.Service{ObjectMeta: nameOf(wanted.Service)}
	err = createOrUpdate(ctx, c, app, service, wanted.Service, func() { setService(service, wanted.Service) })
	if err != nil {
		return err
	}
	for _, s := range wanted.Settings {
		setting := &corev1.ConfigMap{ObjectMeta: nameOf(s)}
		err := createOrUpdate(ctx, c, app, setting, s, func() { setting.Data = s.Data })
		if err != nil {
			return err
		}
	}
	deployment := &appsv1.Deployment{ObjectMeta: nameOf(wanted.Deployment)}
	return createOrUpdate(ctx, c, app, deployment, wanted.Deployment, func() { setDeployment(deployment, wanted.Deployment) })
}

func nameOf(o client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// createOrUpdate does that for one object. set sets the fields that are specific to its kind.
func createOrUpdate(ctx context.Context, c client.Client, app *api.App, o, wanted client.Object, set func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, c, o, func() error {
		labels := o.GetLabels()
		if labels == nil {
			labels = make(map[string]string)
		}
		maps.Copy(labels, wanted.GetLabels())
		o.SetLabels(labels)
		set()
		return controllerutil.SetControllerReference(app, o, c.Scheme())
	})
	return err
}

func setService(have, want *corev1.Service) {
	have.Spec.ClusterIP = want.Spec.ClusterIP
	have.Spec.Selector = want.Spec.Selector
	have.Spec.Ports = want.Spec.Ports
}

func setDeployment(have, want *appsv1.Deployment) {
	have.Spec.Replicas = want.Spec.Replicas
	if have.Spec.Selector == nil { // immutable
		have.Spec.Selector = want.Spec.Selector
	}
	if have.Spec.Template.Labels == nil {
		have.Spec.Template.Labels = make(map[string]string)
	}
	maps.Copy(have.Spec.Template.Labels, want.Spec.Template.Labels)
	pod := &have.Spec.Template.Spec
	pod.ServiceAccountName = want.Spec.Template.Spec.ServiceAccountName
	if len(pod.Containers) != 1 {
		pod.Containers = make([]corev1.Container, 1)
	}
	container, wanted := &pod.Containers[0], want.Spec.Template.Spec.Containers[0]
	container.Name, container.Image = wanted.Name, wanted.Image
	container.Args, container.Ports, container.Env = wanted.Args, wanted.Ports, wanted.Env
	container.Resources = wanted.Resources
}
