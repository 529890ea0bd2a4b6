package kates_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/kates"
)

// hub is what controller-runtime's conversion.Hub is: the version that others convert to and from.
type hub interface {
	runtime.Object
	Hub()
}

type hostMeta struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// hostV2 is the hub.
type hostV2 struct {
	hostMeta `json:",inline"`
	Names    []string `json:"names,omitempty"`
}

// hostV1 has one name, hostV3 calls the names otherwise.
type hostV1 struct {
	hostMeta `json:",inline"`
	Name_    string `json:"name,omitempty"`
}

type hostV3 struct {
	hostMeta `json:",inline"`
	Domains  []string `json:"domains,omitempty"`
}

var errTooMany = errors.New("more than one name")

func (h *hostV2) Hub()                           {}
func (h *hostV2) DeepCopyObject() runtime.Object { c := *h; return &c }
func (h *hostV1) DeepCopyObject() runtime.Object { c := *h; return &c }
func (h *hostV3) DeepCopyObject() runtime.Object { c := *h; return &c }
func (h *hostV3) ConvertTo(to hub) error {
	t := to.(*hostV2)
	t.ObjectMeta, t.Names = h.ObjectMeta, h.Domains
	return nil
}
func (h *hostV3) ConvertFrom(from hub) error {
	f := from.(*hostV2)
	h.ObjectMeta, h.Domains = f.ObjectMeta, f.Names
	return nil
}
func (h *hostV1) ConvertTo(to hub) error {
	t := to.(*hostV2)
	t.ObjectMeta, t.Names = h.ObjectMeta, []string{h.Name_}
	return nil
}

func (h *hostV1) ConvertFrom(from hub) error {
	f := from.(*hostV2)
	if len(f.Names) != 1 {
		return errTooMany
	}
	h.ObjectMeta, h.Name_ = f.ObjectMeta, f.Names[0]
	return nil
}

func hostScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for version, o := range map[string]runtime.Object{"v1": &hostV1{}, "v2": &hostV2{}, "v3": &hostV3{}} {
		scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Host"}, o)
	}
	return scheme
}

func TestConvertObjectUsesTheMethodsOfVersions(t *testing.T) {
	scheme := hostScheme()
	meta := hostMeta{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
	typeMeta := func(version string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: "example.com/" + version, Kind: "Host"}
	}
	v1 := &hostV1{hostMeta: meta, Name_: "a"}
	untyped := &kates.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Host", "metadata": map[string]any{"name": "h"}, "name": "a",
	}}
	for name, src := range map[string]kates.Object{"typed": v1, "untyped": untyped} {
		var v2 hostV2
		require.NoError(t, kates.ConvertObject(scheme, src, &v2), name)
		assert.Equal(t, hostV2{hostMeta{typeMeta("v2"), meta.ObjectMeta}, []string{"a"}}, v2, "to the hub, %s", name)
		var v3 hostV3
		require.NoError(t, kates.ConvertObject(scheme, src, &v3), name)
		assert.Equal(t, hostV3{hostMeta{typeMeta("v3"), meta.ObjectMeta}, []string{"a"}}, v3, "by the hub, %s", name)
	}
	var back hostV1
	require.NoError(t, kates.ConvertObject(scheme, &hostV2{meta, []string{"b"}}, &back))
	assert.Equal(t, hostV1{hostMeta{typeMeta("v1"), meta.ObjectMeta}, "b"}, back, "from the hub")

	before := back
	assert.ErrorIs(t, kates.ConvertObject(scheme, &hostV3{meta, []string{"b", "c"}}, &back), errTooMany)
	assert.Equal(t, before, back, "untouched on an error")

	noHub := runtime.NewScheme()
	noHub.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Host"}, &hostV1{})
	noHub.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v3", Kind: "Host"}, &hostV3{})
	var v3 hostV3
	assert.ErrorContains(t, kates.ConvertObject(noHub, v1, &v3), "example.com/v3 has no field for .name")
}

func TestConvertObjectMayReduceAnObjectToItsMetadata(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientscheme.AddToScheme(scheme))
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
	var meta metav1.PartialObjectMetadata
	require.NoError(t, kates.ConvertObject(scheme, pod, &meta))
	assert.Equal(t, "p", meta.Name)
}
