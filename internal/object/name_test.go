package object_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/object"
)

type list[T any] []T

func TestObjectHasTheNameThatProgramsKnow(t *testing.T) {
	type Object struct{}
	for want, of := range map[string]reflect.Type{
		"<nil>":                               nil,
		"kates.Object":                        reflect.TypeFor[object.Object](),
		"map[string]kates.Object":             reflect.TypeFor[map[string]object.Object](),
		"struct { X []kates.Object }":         reflect.TypeFor[struct{ X []object.Object }](),
		"func(kates.Object) []string":         reflect.TypeFor[func(object.Object) []string](),
		"object_test.list[kates.Object]":      reflect.TypeFor[list[object.Object]](),
		"object_test.list[*kates.Object]":     reflect.TypeFor[list[*object.Object]](),
		"[]*v1.ConfigMap":                     reflect.TypeFor[[]*corev1.ConfigMap](),
		"object_test.Object":                  reflect.TypeFor[Object](),
		"*types.NamespacedName":               reflect.TypeFor[*object.Key](),
		"object_test.list[map[string]string]": reflect.TypeFor[list[map[string]string]](),
	} {
		assert.Equal(t, want, object.TypeName(of))
	}
}

func TestTheInnermostTypeIsWhatAFormIsMadeOf(t *testing.T) {
	for want, all := range map[string][]reflect.Type{
		"v1.ConfigMap": {
			reflect.TypeFor[corev1.ConfigMap](), reflect.TypeFor[**corev1.ConfigMap](), reflect.TypeFor[map[int][3]*corev1.ConfigMap](),
			reflect.TypeFor[chan []corev1.ConfigMap](),
		},
		"func() *v1.ConfigMap": {reflect.TypeFor[[]func() *corev1.ConfigMap]()},
	} {
		for _, of := range all {
			assert.Equal(t, want, object.Innermost(of).String(), of)
		}
	}
}
