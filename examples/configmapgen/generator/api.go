package generator

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/kates"
)

// GroupVersion is the group and version of ConfigTemplate, as in crd.yaml.
var GroupVersion = schema.GroupVersion{Group: "configmapgen.kates.io", Version: "v1"}

// ConfigTemplate says which ConfigMaps should exist.
type ConfigTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ConfigTemplateSpec   `json:"spec"`
	Status ConfigTemplateStatus `json:"status,omitempty"`
}

// ConfigTemplateSpec is what the user wants.
type ConfigTemplateSpec struct {
	ConfigMaps []ConfigMapTemplate `json:"configMaps"`
}

// ConfigMapTemplate is one ConfigMap. Its name is the ConfigTemplate's name, a dash, and this
// one's.
type ConfigMapTemplate struct {
	Name string            `json:"name"`
	Data map[string]string `json:"data"` // templates of text/template
}

// ConfigTemplateStatus is the operator's report.
type ConfigTemplateStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ConfigMaps         []string           `json:"configMaps,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// ConfigTemplateList is the list type of the API.
type ConfigTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ConfigTemplate `json:"items"`
}

// Scheme returns a scheme with the built-in kinds and ConfigTemplate, for kates.WithScheme.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	s.AddKnownTypes(GroupVersion, &ConfigTemplate{}, &ConfigTemplateList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return s, clientscheme.AddToScheme(s)
}

// DeepCopy returns a copy to write to, since objects in snapshots are shared. In real projects
// controller-gen generates it.
func (t *ConfigTemplate) DeepCopy() *ConfigTemplate {
	out := *t
	t.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.ConfigMaps = make([]ConfigMapTemplate, len(t.Spec.ConfigMaps))
	for i, c := range t.Spec.ConfigMaps {
		out.Spec.ConfigMaps[i] = ConfigMapTemplate{Name: c.Name, Data: make(map[string]string, len(c.Data))}
		for key, text := range c.Data {
			out.Spec.ConfigMaps[i].Data[key] = text
		}
	}
	out.Status.ConfigMaps = append([]string(nil), t.Status.ConfigMaps...)
	out.Status.Conditions = nil
	for _, c := range t.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *c.DeepCopy())
	}
	return &out
}

// DeepCopyObject makes a ConfigTemplate a runtime.Object.
func (t *ConfigTemplate) DeepCopyObject() runtime.Object { return t.DeepCopy() }

// DeepCopyObject makes a ConfigTemplateList a runtime.Object.
func (l *ConfigTemplateList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]ConfigTemplate, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}

var _ kates.Object = (*ConfigTemplate)(nil)
