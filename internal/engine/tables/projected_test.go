package tables

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/object"
)

type some struct {
	Data map[string]string `json:"data"`
}

func TestAProjectedObjectIsNotConverted(t *testing.T) {
	value := &some{Data: map[string]string{"k": "v"}}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	o := object.NewProjected(&kind, object.Head{Namespace: "ns", Name: "a"}, value)
	type fields struct {
		Pointers []*some
		Values   []some
		Other    []*struct{ Data any }
		Content  []map[string]any
		ByUID    map[string]*some
	}
	convert := func(field int) (Value, error) {
		f, err := FormOf(reflect.TypeFor[fields]().Field(field).Type, "", false)
		require.NoError(t, err)
		return f.Convert(o)
	}
	got, err := convert(0)
	require.NoError(t, err)
	assert.Same(t, value, got)
	got, err = convert(1)
	require.NoError(t, err)
	assert.Equal(t, *value, got)
	got, err = convert(4)
	require.NoError(t, err)
	assert.Same(t, value, got)
	for _, query := range []int{2, 3} { // what is not held is not made up
		_, err = convert(query)
		require.ErrorContains(t, err, `convert ConfigMap "ns/a"`)
		require.ErrorContains(t, err, "the watch holds only the fields of tables.some")
	}
}

func TestOnlyStructsWithoutRulesOfTheirOwnAreProjected(t *testing.T) {
	for _, yes := range []any{some{}, struct{}{}, struct{ Raw json.RawMessage }{}} {
		assert.True(t, Projects(reflect.TypeOf(yes)), "%T", yes)
	}
	for _, no := range []any{
		nil, 1, "", map[string]any{}, json.RawMessage{}, &some{}, corev1.Pod{}, corev1.PodList{}, unstructured.Unstructured{}, schema.GroupVersionKind{}.Kind,
	} {
		assert.False(t, Projects(reflect.TypeOf(no)), "%T", no)
	}
}
