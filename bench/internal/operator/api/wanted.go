package api

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Label is on all objects of an App. Its value is the App's name.
const Label = "app.kubernetes.io/instance"

// Object is any Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects are the objects that an App needs, with only the fields that an operator decides about.
// They have no owner references yet.
type Objects struct {
	ServiceAccount *corev1.ServiceAccount
	Service        *corev1.Service
	Deployment     *appsv1.Deployment
	Settings       []*corev1.ConfigMap // in order of their names
}

// Wanted returns the objects of an App. They belong to the caller.
func Wanted(app *App) Objects {
	return Objects{
		ServiceAccount: &corev1.ServiceAccount{ObjectMeta: metadata(app, "")},
		Service:        service(app),
		Deployment:     deployment(app),
		Settings:       settings(app),
	}
}

// Listed returns the objects in one list, of an interface type that all objects have.
func Listed[O any](o Objects) []O {
	all := []Object{o.ServiceAccount, o.Service, o.Deployment}
	for _, s := range o.Settings {
		all = append(all, s)
	}
	listed := make([]O, len(all))
	for i := range all {
		listed[i] = any(all[i]).(O)
	}
	return listed
}

func metadata(app *App, suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: app.Namespace, Name: app.Name + suffix,
		Labels: map[string]string{Label: app.Name, "app.kubernetes.io/managed-by": "bench"},
	}
}

func service(app *App) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metadata(app, ""),
		Spec: corev1.ServiceSpec{
			// The Service has no address of its own: the default range has only 254.
			ClusterIP: corev1.ClusterIPNone,
			Selector:  map[string]string{Label: app.Name},
			Ports:     []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("http")}},
		},
	}
}

func deployment(app *App) *appsv1.Deployment {
	container := corev1.Container{
		Name: "app", Image: app.Spec.Image,
		Args:  []string{"--config=/etc/app", "--log-format=json"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Env:   []corev1.EnvVar{{Name: "APP", Value: app.Name}, {Name: "NAMESPACE", Value: app.Namespace}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("512Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("1Gi")},
		},
	}
	return &appsv1.Deployment{
		ObjectMeta: metadata(app, ""),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(app.Spec.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{Label: app.Name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{Label: app.Name}},
				Spec:       corev1.PodSpec{ServiceAccountName: app.Name, Containers: []corev1.Container{container}},
			},
		},
	}
}

func settings(app *App) []*corev1.ConfigMap {
	var all []*corev1.ConfigMap
	for _, name := range slices.Sorted(maps.Keys(app.Spec.Settings)) {
		all = append(all, &corev1.ConfigMap{
			ObjectMeta: metadata(app, "-"+name),
			Data:       map[string]string{"config.yaml": app.Spec.Settings[name]},
		})
	}
	return all
}
