// Package api is what the compared operators share: the kind App that they reconcile, and the
// objects that an App needs.
//
// An App owns a ServiceAccount, a Service, a Deployment and a ConfigMap for each of its settings.
// An operator creates them with a controller reference to the App. It repairs what others delete,
// and what they change of the values in [Wanted]. It deletes the ConfigMaps of settings that the
// App no longer has, and writes the status.
package api

import (
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// GroupVersion is the group and version of App.
var GroupVersion = schema.GroupVersion{Group: "bench.kates.io", Version: "v1"}

// Definition is App's CustomResourceDefinition, as YAML.
//
//go:embed app.yaml
var Definition []byte

// App is an application that consists of other objects.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              AppSpec   `json:"spec,omitzero"`
	Status            AppStatus `json:"status,omitzero"`
}

// AppSpec is what the user wants.
type AppSpec struct {
	Replicas int32  `json:"replicas"`
	Image    string `json:"image"`
	// Settings are files by name. Each becomes a ConfigMap.
	Settings map[string]string `json:"settings,omitempty"`
}

// AppStatus is the operator's report.
type AppStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Objects is the number of objects, and Settings how many of them are ConfigMaps.
	Objects    int32              `json:"objects,omitempty"`
	Settings   int32              `json:"settings,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Ready is the condition of an App whose objects all exist, and ReasonApplied its reason then.
const (
	Ready         = "Ready"
	ReasonApplied = "Applied"
)

// AppList is a list of Apps.
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []App `json:"items"`
}

// NewScheme returns a scheme of the built-in kinds and App.
func NewScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(s))
	s.AddKnownTypes(GroupVersion, &App{}, &AppList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return s
}

// must panics on errors that only a mistake in this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
