package kates

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestConvertObjectGoesThroughJSONWhereTheSchemeHasNoConversion(t *testing.T) {
	replicas := int32(3)
	src := &appsv1beta1.Deployment{ObjectMeta: ObjectMeta{Name: "web"}, Spec: appsv1beta1.DeploymentSpec{Replicas: &replicas}}
	dst := &Deployment{ObjectMeta: ObjectMeta{Annotations: map[string]string{"stale": "yes"}}}
	require.NoError(t, ConvertObject(nil, src, dst))
	assert.Equal(t, &Deployment{
		TypeMeta:   TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: dst.Spec.Replicas},
	}, dst)
	assert.EqualValues(t, 3, *dst.Spec.Replicas)
	assert.NotSame(t, src.Spec.Replicas, dst.Spec.Replicas)
	assert.Empty(t, src.Kind, "the source is left alone")

	src.Spec.RollbackTo = &appsv1beta1.RollbackConfig{Revision: 1}
	untyped, err := NewUnstructuredFromObject(src)
	require.NoError(t, err)
	for _, from := range []Object{src, untyped} {
		dst := &Deployment{}
		assert.ErrorContains(t, ConvertObject(nil, from, dst), "apps/v1 has no field for .spec.rollbackTo.revision")
		assert.Equal(t, &Deployment{}, dst)
	}
}

func TestConvertObjectUsesTheSchemesConversion(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, appsv1.AddToScheme(scheme))
	require.NoError(t, appsv1beta1.AddToScheme(scheme))
	failure := error(nil)
	require.NoError(t, scheme.AddConversionFunc((*appsv1beta1.Deployment)(nil), (*appsv1.Deployment)(nil), func(a, b any, _ conversion.Scope) error {
		from, to := a.(*appsv1beta1.Deployment), b.(*appsv1.Deployment)
		to.Name, to.Labels = "converted-"+from.Name, from.Labels
		return failure
	}))
	src := &appsv1beta1.Deployment{ObjectMeta: ObjectMeta{Name: "web", Labels: map[string]string{"a": "b"}}}
	dst := &Deployment{}
	require.NoError(t, ConvertObject(scheme, src, dst))
	assert.Equal(t, "converted-web", dst.Name)
	assert.Equal(t, "apps/v1", dst.APIVersion)
	dst.Labels["a"] = "changed"
	assert.Equal(t, map[string]string{"a": "b"}, src.Labels, "a conversion that shares memory is not passed on")

	failure = errors.New("no such strategy")
	before := dst.DeepCopy()
	assert.ErrorIs(t, ConvertObject(scheme, src, dst), failure)
	assert.Equal(t, before, dst)
}

func TestConvertObjectTakesUntypedObjectsEitherWay(t *testing.T) {
	svc := service("web")
	u := &Unstructured{}
	require.NoError(t, ConvertObject(nil, svc, u))
	assert.Equal(t, "Service", u.GetKind())
	back := &Service{}
	require.NoError(t, ConvertObject(nil, u, back))
	svc.TypeMeta = back.TypeMeta
	assert.Equal(t, svc, back)

	host, copied := NewUnstructured("Host", "getambassador.io/v2"), &Unstructured{}
	require.NoError(t, ConvertObject(nil, host, copied))
	assert.Equal(t, host, copied)
	copied.SetKind("Changed")
	assert.Equal(t, "Host", host.GetKind())
}

func TestConvertObjectTakesTypesThatTheSchemeDoesNotKnow(t *testing.T) {
	svc := service("web")
	svc.TypeMeta = TypeMeta{APIVersion: "v1", Kind: "Service"}
	u, back := &Unstructured{}, &Service{}
	require.NoError(t, ConvertObject(runtime.NewScheme(), svc, u))
	require.NoError(t, ConvertObject(runtime.NewScheme(), u, back))
	assert.Equal(t, svc, back)
}

func TestConvertObjectRejectsNilAndLeavesTheTargetOnErrors(t *testing.T) {
	var none *Service
	assert.Error(t, ConvertObject(nil, service("a"), nil))
	assert.Error(t, ConvertObject(nil, service("a"), none))
	assert.Error(t, ConvertObject(nil, none, &Service{}))
	assert.Error(t, ConvertObject(nil, nil, &Service{}))

	odd := NewUnstructured("Host", "getambassador.io/v2")
	odd.Object["spec"] = "none"
	dst := service("old")
	assert.Error(t, ConvertObject(nil, odd, dst))
	assert.Equal(t, service("old"), dst)
}
