package kates

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// schemeSettings is a type that only the program's scheme knows.
type schemeSettings struct{ ConfigMap }

func (s *schemeSettings) DeepCopyObject() runtime.Object {
	return &schemeSettings{*s.DeepCopy()}
}

func TestHelpersTakeTheSchemeOfAClient(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Settings"}, &schemeSettings{})
	c, err := NewClientFromRESTConfig(&rest.Config{Host: "http://nowhere.invalid"}, WithScheme(scheme))
	require.NoError(t, err)
	defer c.Close()
	require.Same(t, scheme, c.Scheme())
	in := InScheme(c.Scheme())

	made, err := NewObject("Settings", "example.com/v1", in)
	require.NoError(t, err)
	assert.IsType(t, &schemeSettings{}, made)
	untyped := NewUnstructured("Settings", "example.com/v1")
	untyped.SetName("s")
	typed, err := NewObjectFromUnstructured(untyped, in)
	require.NoError(t, err)
	assert.IsType(t, &schemeSettings{}, typed)
	for _, none := range [][]SchemeOption{nil, {InScheme(nil)}} {
		other, err := NewObjectFromUnstructured(untyped, none...)
		require.NoError(t, err)
		assert.IsType(t, &Unstructured{}, other)
	}

	bare := &schemeSettings{ConfigMap{ObjectMeta: ObjectMeta{Name: "s", UID: "u"}}}
	u, err := NewUnstructuredFromObject(bare, in)
	require.NoError(t, err)
	assert.Equal(t, "example.com/v1/Settings", u.GetAPIVersion()+"/"+u.GetKind())
	d, err := NewDeltaFromObject(ObjectAdd, bare, in)
	require.NoError(t, err)
	assert.Equal(t, "Settings", d.Kind)

	for name, refer := range map[string]func(owner, object Object, in ...SchemeOption) error{
		"controller": SetControllerReference, "owner": AddOwnerReference,
	} {
		pod := &Pod{}
		require.ErrorContains(t, refer(bare, pod), "an owner without apiVersion or kind", name)
		require.NoError(t, refer(bare, pod, in), name)
		assert.Equal(t, "example.com/v1/Settings/s", pod.OwnerReferences[0].APIVersion+"/"+pod.OwnerReferences[0].Kind+"/"+pod.OwnerReferences[0].Name)
		pod.OwnerReferences[0].UID, bare.UID = "", "" // by kind and name
		assert.True(t, HasOwnerReference(bare, pod, in), name)
		assert.False(t, HasOwnerReference(bare, pod), name)
		assert.False(t, RemoveOwnerReference(bare, pod), name)
		assert.True(t, RemoveOwnerReference(bare, pod, in), name)
		bare.UID = "u"
	}
	assert.Empty(t, bare.Kind, "the owner is not written to")
	_, err = ParseManifests("", nil)
	assert.ErrorContains(t, err, "an option is nil")
}

// schemeDeployment is a Go type of the program's own for a built-in kind.
type schemeDeployment struct{ Deployment }

func (d *schemeDeployment) DeepCopyObject() runtime.Object { return &schemeDeployment{*d.DeepCopy()} }

func TestStatusOfTakesTheKindOfAGoTypeFromItsScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, &schemeDeployment{})
	d := &schemeDeployment{}
	d.Generation, d.Status.ObservedGeneration = 3, 3
	want := ObjectStatus{Phase: PhaseInProgress, Message: "0 of 1 pods are updated", Generation: 3, ObservedGeneration: 3}
	assert.Equal(t, want, StatusOf(d, InScheme(scheme)))
	assert.Equal(t, want, StatusOf(&d.Deployment), "client-go's scheme")
	assert.False(t, want.Ready())
	assert.True(t, StatusOf(d).Ready(), "a type without a kind has the general rule")
	assert.Equal(t, PhaseUnknown, StatusOf(nil).Phase)
}
