package kates

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestMergeUpdateMergesMetadataAndReplacesSections(t *testing.T) {
	target := untyped(t, `
apiVersion: v1
kind: Secret
metadata:
  name: a
  uid: "1"
  resourceVersion: "7"
  labels: {both: target, target: "1"}
  annotations: {both: target}
  finalizers: [example.com/keep]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "2"}]
data: {gone: eA==}
rules: [{a: b}]
status: {phase: target}
`)
	source := untyped(t, `
apiVersion: v9
kind: Other
metadata:
  name: b
  uid: "9"
  labels: {both: source, source: "1"}
  annotations: {source: "1"}
data: {new: eQ==}
stringData: {k: v}
spec: {x: [1]}
status: {phase: source}
`)
	before := source.DeepCopy()
	MergeUpdate(target, source)
	assert.Equal(t, untyped(t, `
apiVersion: v1
kind: Secret
metadata:
  name: a
  uid: "1"
  resourceVersion: "7"
  labels: {both: source, target: "1", source: "1"}
  annotations: {both: target, source: "1"}
  finalizers: [example.com/keep]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "2"}]
data: {new: eQ==, k: dg==}
spec: {x: [1]}
rules: [{a: b}]
status: {phase: target}
`).Object, target.Object)

	target.Object["spec"].(map[string]any)["x"].([]any)[0] = int64(2)
	target.Object["data"].(map[string]any)["new"] = "changed"
	assert.Equal(t, before, source)
}

func TestMergeUpdateTakesOwnersAndFinalizersThatTheSourceHas(t *testing.T) {
	target, source := named("Pod", "v1", "a"), named("Pod", "v1", "a")
	SetOwnerReferences(service("old"), target)
	target.SetFinalizers([]string{"old"})
	SetOwnerReferences(service("new"), source)
	source.SetFinalizers([]string{"new"})
	MergeUpdate(target, source)
	assert.Equal(t, "new", target.GetOwnerReferences()[0].Name)
	assert.Equal(t, []string{"new"}, target.GetFinalizers())
	target.SetOwnerReferences(nil)
	assert.True(t, HasOwnerReference(service("new"), source))
}

func TestMergeUpdateCopesWithHandWrittenContent(t *testing.T) {
	target := &Unstructured{}
	MergeUpdate(target, &Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": 3}}})
	assert.Equal(t, map[string]any{"spec": map[string]any{"replicas": int64(3)}}, target.Object)
	MergeUpdate(target, &Unstructured{})
	assert.Contains(t, target.Object, "spec")
}

func TestByNameIndexesEveryFormOfSlice(t *testing.T) {
	values := []Service{*service("a"), *service("b")}
	pointers := []*Service{&values[0], nil, &values[1]}
	objects := []Object{&values[0], nil, &values[1]}
	untypedObjects := []*Unstructured{named("Host", "v1", "a"), named("Host", "v1", "b")}

	byPointer := map[string]*Service{"stays": nil}
	IndexByName(values, byPointer)
	assert.Equal(t, map[string]*Service{"stays": nil, "a": &values[0], "b": &values[1]}, byPointer)
	assert.Same(t, &values[0], byPointer["a"], "it indexes the slice's objects, not copies")

	for _, objs := range []any{pointers, objects} {
		index := map[string]*Service{}
		IndexByName(objs, index)
		assert.Equal(t, map[string]*Service{"a": &values[0], "b": &values[1]}, index)
	}
	byValue := map[string]Service{}
	IndexByName(pointers, byValue)
	assert.Equal(t, map[string]Service{"a": values[0], "b": values[1]}, byValue)
	byObject, byAny := map[string]Object{}, map[string]runtime.Object{}
	IndexByName(values, byObject)
	IndexByName(untypedObjects, byAny)
	assert.Equal(t, map[string]Object{"a": &values[0], "b": &values[1]}, byObject)
	assert.Len(t, byAny, 2)
}

func TestByNamePanicsOnWhatItCannotIndex(t *testing.T) {
	var none map[string]*Service
	for name, try := range map[string]func(){
		"not a slice":      func() { IndexByName(service("a"), map[string]*Service{}) },
		"not objects":      func() { IndexByName([]int{1}, map[string]int{}) },
		"nil map":          func() { IndexByName([]*Service{}, none) },
		"not a map":        func() { IndexByName([]*Service{}, &none) },
		"not by name":      func() { IndexByName([]*Service{}, map[int]*Service{}) },
		"of another type":  func() { IndexByName([]*Service{service("a")}, map[string]*Pod{}) },
		"another in iface": func() { IndexByName([]Object{service("a")}, map[string]*Pod{}) },
	} {
		t.Run(name, func(t *testing.T) {
			assert.PanicsWithValue(t, true, func() {
				defer func() {
					message, ok := recover().(string)
					assert.True(t, ok)
					assert.Contains(t, message, "kates.IndexByName: ")
					panic(ok)
				}()
				try()
			})
		})
	}
}
