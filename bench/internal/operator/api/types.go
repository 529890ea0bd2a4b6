// Package api is what the compared operators have in common: the kind App that they reconcile, and what there
// is to be for one of them.
//
// An App owns a ServiceAccount, a Service, a Deployment and a ConfigMap for each of its settings. An operator
// creates them with a controller reference to the App, puts right what others change of what [Wanted] says
// or delete, deletes ConfigMaps of settings that the App has no longer, and reports in the status.
package api

import (
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// GroupVersion is that of App.
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

// AppSpec is what an application is to be.
type AppSpec struct {
	Replicas int32  `json:"replicas"`
	Image    string `json:"image"`
	// Settings are files by name, each of which becomes a ConfigMap.
	Settings map[string]string `json:"settings,omitempty"`
}

// AppStatus is what the operator has made of it.
type AppStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Objects is how many there are, and Settings how many of them are ConfigMaps.
	Objects    int32              `json:"objects,omitempty"`
	Settings   int32              `json:"settings,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Ready is the condition of an App whose objects are all there, and ReasonApplied its reason then.
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

// NewScheme is a scheme of the built-in kinds and App.
func NewScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(s))
	s.AddKnownTypes(GroupVersion, &App{}, &AppList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return s
}

// must panics on what can only be a mistake in this program.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
