package judge

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/bench/internal/operator/api"
)

// fulfils says how the server's object differs from the wanted one; "" if it does not.
func fulfils(app *api.App, want, have api.Object) string {
	if !metav1.IsControlledBy(have, app) {
		return "its controller is another"
	}
	if have.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	for key, value := range want.GetLabels() {
		if have.GetLabels()[key] != value {
			return "label " + key
		}
	}
	switch want := want.(type) {
	case *corev1.ConfigMap:
		return differs("data", want.Data, have.(*corev1.ConfigMap).Data)
	case *corev1.Service:
		return serviceFulfils(want.Spec, have.(*corev1.Service).Spec)
	case *appsv1.Deployment:
		return deploymentFulfils(want.Spec, have.(*appsv1.Deployment).Spec)
	}
	return ""
}

func differs(what string, want, have any) string {
	if equality.Semantic.DeepEqual(want, have) {
		return ""
	}
	return what
}

// first returns the first difference that is not empty.
func first(differences ...string) string {
	for _, d := range differences {
		if d != "" {
			return d
		}
	}
	return ""
}

func serviceFulfils(want, have corev1.ServiceSpec) string {
	return first(differs("clusterIP", want.ClusterIP, have.ClusterIP), differs("selector", want.Selector, have.Selector),
		differs("ports", want.Ports, have.Ports))
}

func deploymentFulfils(want, have appsv1.DeploymentSpec) string {
	if n := len(have.Template.Spec.Containers); n != 1 {
		return fmt.Sprintf("there are %d containers", n)
	}
	w, h := want.Template.Spec.Containers[0], have.Template.Spec.Containers[0]
	return first(differs("replicas", want.Replicas, have.Replicas), differs("selector", want.Selector, have.Selector),
		differs("labels of pods", want.Template.Labels, have.Template.Labels),
		differs("service account", want.Template.Spec.ServiceAccountName, have.Template.Spec.ServiceAccountName),
		differs("container", []string{w.Name, w.Image}, []string{h.Name, h.Image}), differs("args", w.Args, h.Args),
		differs("ports", w.Ports, h.Ports), differs("env", w.Env, h.Env), differs("resources", w.Resources, h.Resources))
}

// statusFulfils does the same for the App's status.
func statusFulfils(app *api.App, objects, settings int) string {
	s := app.Status
	if s.ObservedGeneration != app.Generation {
		return fmt.Sprintf("observedGeneration is %d at generation %d", s.ObservedGeneration, app.Generation)
	}
	if int(s.Objects) != objects || int(s.Settings) != settings {
		return fmt.Sprintf("it counts %d objects and %d settings of %d and %d", s.Objects, s.Settings, objects, settings)
	}
	ready := meta.FindStatusCondition(s.Conditions, api.Ready)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != api.ReasonApplied || ready.ObservedGeneration != app.Generation {
		return fmt.Sprintf("its condition is %+v", ready)
	}
	return ""
}
