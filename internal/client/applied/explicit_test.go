package applied

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestAZeroThatTheServerHasADefaultForSaysNothing(t *testing.T) {
	first := 0
	for what, c := range map[string]struct {
		typ  any
		path []any
		part any
		want bool
	}{
		"a pointer to a number":          {appsv1.Deployment{}, []any{"spec", "replicas"}, int64(0), true},
		"a pointer to a boolean":         {corev1.Pod{}, []any{"spec", "automountServiceAccountToken"}, false, true},
		"a number that may be left out":  {corev1.Pod{}, []any{"spec", "containers", first, "livenessProbe", "periodSeconds"}, int64(0), false},
		"a number or a text":             {corev1.Service{}, []any{"spec", "ports", first, "targetPort"}, int64(0), false},
		"a pointer to a number or text":  {appsv1.Deployment{}, []any{"spec", "strategy", "rollingUpdate", "maxSurge"}, int64(0), true},
		"a number that is always there":  {corev1.Service{}, []any{"spec", "ports", first, "port"}, int64(0), true},
		"an empty struct":                {appsv1.Deployment{}, []any{"spec", "strategy"}, map[string]any{}, false},
		"an empty list":                  {corev1.Pod{}, []any{"spec", "tolerations"}, []any{}, false},
		"an empty selector":              {networkingv1.NetworkPolicy{}, []any{"spec", "podSelector"}, map[string]any{}, true},
		"an empty selector by a pointer": {appsv1.Deployment{}, []any{"spec", "selector"}, map[string]any{}, true},
		"an entry of a map":              {corev1.ConfigMap{}, []any{"data", "k"}, "", true},
		"a field that the type lacks":    {corev1.ConfigMap{}, []any{"nothing"}, "", false},
		"a text that is always there":    {rbacv1.RoleBinding{}, []any{"roleRef", "apiGroup"}, "", false},
		"null":                           {appsv1.Deployment{}, []any{"spec", "replicas"}, nil, false},
		"a number of a custom kind":      {nil, []any{"spec", "size"}, int64(0), true},
		"an empty part of a custom kind": {nil, []any{"spec"}, map[string]any{}, false},
	} {
		assert.Equal(t, c.want, explicit(reflect.TypeOf(c.typ), fieldpath.MakePathOrDie(c.path...), c.part), what)
	}
	service := func(target intstr.IntOrString) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: target}}}}
	}
	assert.True(t, HasValues(service(intstr.IntOrString{}), service(intstr.FromInt32(80))))
	assert.False(t, HasValues(service(intstr.FromInt32(8080)), service(intstr.FromInt32(80))))
}

func TestTolerationsThatAdmissionAddsAreNoForeignValue(t *testing.T) {
	path := fieldpath.MakePathOrDie("spec", "tolerations")
	one, two, three := []any{"a"}, []any{"a", "b"}, []any{"x", "b", "c"}
	assert.Equal(t, any(one), withoutAdmitted(path, two, one))
	assert.Equal(t, any(three[:2]), withoutAdmitted(path, three, two))
	assert.Equal(t, any(one), withoutAdmitted(path, one, two), "one is gone")
	assert.Equal(t, any(two), withoutAdmitted(fieldpath.MakePathOrDie("spec", "args"), two, one))
}

func TestMembersThatMayGetADefaultSayNothingInAPartThatIsOwnedAsAWhole(t *testing.T) {
	given := map[string]any{"apiGroup": "", "kind": "Role", "name": "r"}
	assert.Equal(t, map[string]any{"kind": "Role", "name": "r"},
		said(reflect.TypeFor[rbacv1.RoleBinding](), fieldpath.MakePathOrDie("roleRef"), given))
	assert.Len(t, given, 3, "what is applied is not written to")
	list := []any{map[string]any{"name": "p", "protocol": "", "targetPort": int64(0), "port": int64(1)}}
	assert.Equal(t, []any{map[string]any{"name": "p", "port": int64(1)}},
		said(reflect.TypeFor[corev1.Service](), fieldpath.MakePathOrDie("spec", "ports"), list))
	custom := map[string]any{"size": int64(0)}
	assert.Equal(t, custom, said(nil, fieldpath.MakePathOrDie("spec"), custom))
}
