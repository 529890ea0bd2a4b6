package jsonform

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func untyped(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	require.NoError(t, EachObject(manifest, func(u *unstructured.Unstructured) error {
		objects = append(objects, u)
		return nil
	}))
	require.Len(t, objects, 1)
	return objects[0]
}

const webService = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: prod, labels: {app: web}}
spec: {ports: [{port: 80}]}
`

func TestFillZeroesTheTargetBeforeFillingIt(t *testing.T) {
	u := untyped(t, webService)
	target := service("old")
	target.Annotations = map[string]string{"stale": "yes"}
	target.Spec.ClusterIP = "10.0.0.1"
	require.NoError(t, Fill(target, u))
	assert.Equal(t, "web", target.Name)
	assert.Equal(t, "Service", target.Kind)
	assert.EqualValues(t, 80, target.Spec.Ports[0].Port)
	assert.Empty(t, target.Annotations)
	assert.Empty(t, target.Spec.ClusterIP)
}

func TestFillGivesAPointerToAPointerAFreshObject(t *testing.T) {
	old := service("old")
	target := old
	require.NoError(t, Fill(&target, untyped(t, webService)))
	assert.Equal(t, "web", target.Name)
	assert.Equal(t, service("old"), old, "the object that was there is left alone")

	var none *corev1.Service
	require.NoError(t, Fill(&none, untyped(t, webService)))
	assert.Equal(t, "web", none.Name)
}

func TestFillNeverSharesMemoryWithTheObject(t *testing.T) {
	u := untyped(t, webService)
	before := u.DeepCopy()
	var asMap map[string]any
	var copied unstructured.Unstructured
	var pointer *unstructured.Unstructured
	var anything any
	var object Object
	for _, target := range []any{&asMap, &copied, &pointer, &anything, &object} {
		require.NoError(t, Fill(target, u))
	}
	assert.Equal(t, u, object)
	for _, content := range []map[string]any{asMap, copied.Object, pointer.Object, anything.(map[string]any), object.(*unstructured.Unstructured).Object} {
		assert.Equal(t, before.Object, content)
		content["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["port"] = int64(1)
	}
	assert.Equal(t, before, u)
}

func TestFillDecodesIntoOwnStructsWithAndWithoutTags(t *testing.T) {
	var host struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct{ Ports []struct{ Port int } }
	}
	require.NoError(t, Fill(&host, untyped(t, webService)))
	assert.Equal(t, "Service", host.Kind)
	assert.Equal(t, "web", host.Metadata.Name)
	assert.Equal(t, 80, host.Spec.Ports[0].Port)
}

func TestFillDecodesAsKubernetesDoesIntoAPITypesAndMaps(t *testing.T) {
	u := untyped(t, "apiVersion: v1\nkind: Service\nmetadata: {name: web, generation: 9007199254740993}\nSpec: {clusterIP: wrong-case}\n")
	var svc corev1.Service
	require.NoError(t, Fill(&svc, u))
	assert.Empty(t, svc.Spec.ClusterIP, "names are case-sensitive")

	type content map[string]any
	var asMap content
	require.NoError(t, Fill(&asMap, u))
	assert.Equal(t, int64(9007199254740993), asMap["metadata"].(map[string]any)["generation"])
}

func TestFillWithoutAnObjectZeroesTheTarget(t *testing.T) {
	svc, pointer := service("old"), service("old")
	asMap := map[string]any{"a": "b"}
	for _, target := range []any{svc, &pointer, &asMap} {
		require.NoError(t, Fill(target, nil))
	}
	assert.Equal(t, &corev1.Service{}, svc)
	assert.Nil(t, pointer)
	assert.Nil(t, asMap)
}

func TestFillLeavesTheTargetUntouchedOnAnError(t *testing.T) {
	broken := untyped(t, webService)
	broken.Object["spec"] = map[string]any{"clusterIP": "10.0.0.1", "ports": "none"}
	target := service("old")
	pointer := target
	for _, into := range []any{target, &pointer} {
		err := Fill(into, broken)
		require.ErrorContains(t, err, `decode Service "prod/web"`)
	}
	assert.Equal(t, service("old"), target)
	assert.Same(t, target, pointer)
}

func TestTargetsThatCannotHoldAnObjectAreErrors(t *testing.T) {
	var svc *corev1.Service
	var number int
	var text string
	var stringer interface{ String() string }
	var object Object
	for name, tc := range map[string]struct {
		target  any
		message string
	}{
		"not a pointer":   {corev1.Service{}, "v1.Service is not a pointer"},
		"map":             {map[string]any{}, "is not a pointer"},
		"nil pointer":     {svc, "*v1.Service is a nil pointer"},
		"nil in an iface": {Object(svc), "is a nil pointer"},
		"number":          {&number, "*int cannot hold an object"},
		"text":            {&text, "*string cannot hold an object"},
		"slice":           {&[]corev1.Service{}, "cannot hold an object"},
		"other interface": {&stringer, "cannot hold an object"},
		"map by number":   {&map[int]any{}, "cannot hold an object"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, CheckTarget(tc.target), tc.message)
			if _, isPointer := tc.target.(*int); isPointer {
				assert.Error(t, Fill(tc.target, untyped(t, webService)))
			}
		})
	}
	for _, target := range []any{nil, object, service("a"), &svc, &object, &map[string]any{}, &unstructured.Unstructured{}, &runtime.RawExtension{}} {
		assert.NoError(t, CheckTarget(target), "%T", target)
	}
	assert.NoError(t, Fill(nil, untyped(t, webService)))
	assert.NoError(t, Fill(object, untyped(t, webService)))
}

func TestFillListReplacesEveryFormOfList(t *testing.T) {
	a, b := untyped(t, webService), untyped(t, webService)
	b.SetName("api")
	items := []*unstructured.Unstructured{a, b}
	old := *service("old")

	values, pointers, maps := []corev1.Service{old, old, old}, []*corev1.Service{&old}, []map[string]any{{"old": true}}
	objects, byName, pointer := []Object{&old}, map[string]*corev1.Service{"old": &old}, &[]*unstructured.Unstructured{}
	typed := &corev1.ServiceList{Items: []corev1.Service{old}}
	generic := &unstructured.UnstructuredList{}
	for _, target := range []any{&values, &pointers, &maps, &objects, &byName, &pointer, typed, &typed, generic} {
		require.NoError(t, CheckListTarget(target), "%T", target)
		require.NoError(t, FillList(target, items), "%T", target)
	}
	assert.Equal(t, []string{"web", "api"}, []string{values[0].Name, values[1].Name})
	assert.Equal(t, []*corev1.Service{&values[0], &values[1]}, pointers)
	assert.Equal(t, []map[string]any{a.Object, b.Object}, maps)
	assert.Equal(t, []Object{a, b}, objects)
	assert.Equal(t, map[string]*corev1.Service{"web": &values[0], "api": &values[1]}, byName)
	assert.Equal(t, items, *pointer)
	assert.Equal(t, values, typed.Items)
	assert.Equal(t, []unstructured.Unstructured{*a, *b}, generic.Items)
	assert.Equal(t, "ServiceList", generic.GetKind())
	assert.Len(t, values, 2)
}

func TestFillListOfNothingIsEmptyButNotNil(t *testing.T) {
	var values []corev1.Service
	var byName map[string]corev1.Service
	list := &corev1.ServiceList{}
	for _, target := range []any{&values, &byName, list} {
		require.NoError(t, FillList(target, nil))
	}
	assert.NotNil(t, values)
	assert.NotNil(t, byName)
	assert.NotNil(t, list.Items)
	assert.Empty(t, values)
}

func TestFillListErrorsLeaveTheTargetUntouched(t *testing.T) {
	good, bad := untyped(t, webService), untyped(t, webService)
	bad.Object["spec"] = "none"
	values := []corev1.Service{*service("old")}
	assert.ErrorContains(t, FillList(&values, []*unstructured.Unstructured{good, bad}), "decode Service")
	assert.Equal(t, []corev1.Service{*service("old")}, values)

	byName := map[string]corev1.Service{"old": {}}
	assert.ErrorContains(t, FillList(&byName, []*unstructured.Unstructured{good, good}), `two objects are named "web"`)
	assert.Equal(t, map[string]corev1.Service{"old": {}}, byName)

	for name, target := range map[string]any{
		"nil": nil, "slice": values, "nil pointer": (*[]corev1.Service)(nil), "object": service("a"), "numbers": &[]int{}, "map": &map[int]corev1.Service{},
	} {
		assert.Error(t, CheckListTarget(target), name)
		assert.Error(t, FillList(target, nil), name)
	}
}

func TestErrorsOfFillQuoteNoSecret(t *testing.T) {
	u := untyped(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {pin: 27182}\n")
	var own struct{ Data map[string]int8 }
	err := Fill(&own, u)
	assert.ErrorContains(t, err, "want int8")
	assert.NotContains(t, err.Error(), "27182")
}
