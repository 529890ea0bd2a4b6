package snapshot_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// untyped is a Service as a dynamic client delivers it.
func untyped(namespace, name string, port int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Service",
		"metadata":   map[string]any{"namespace": namespace, "name": name, "uid": "uid-" + namespace + "/" + name},
		"spec":       map[string]any{"ports": []any{map[string]any{"port": port}}},
	}}
}

// typed is a Service as a typed client delivers it: without a kind.
func typed(namespace, name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "/" + name)},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}},
	}
}

// compile binds one query to each named field of S.
func compile[S any](t testing.TB, fields ...string) *snapshot.Binding {
	t.Helper()
	var queries []snapshot.Query
	for _, name := range fields {
		queries = append(queries, snapshot.Query{Name: name})
	}
	b, err := snapshot.Compile(reflect.TypeFor[S](), queries)
	require.NoError(t, err)
	return b
}

// rowOf makes a row of an object, as an accumulator does.
func rowOf(b *snapshot.Binding, query int, o tables.Object) *tables.Row {
	value, err := b.Convert(query, o)
	return &tables.Row{Source: o, Value: value, Err: err}
}

// changeOf shows an object, or leaves it out if it does not decode.
func changeOf(b *snapshot.Binding, query int, o tables.Object) tables.Change {
	return tables.Change{Key: object.KeyOf(o), Row: rowOf(b, query, o)}
}

// tableOf returns a table of the first query with n services s-00000000, s-00000001, …
func tableOf(b *snapshot.Binding, n int) *tables.Table {
	changes := make([]tables.Change, n)
	for i := range changes {
		changes[i] = changeOf(b, 0, typed("ns", numbered(i), 80))
	}
	table := b.NewTable(0)
	table.Apply(changes)
	return table
}

func numbered(i int) string { return fmt.Sprintf("s-%08d", i) }

// names lists the objects of a delivered slice of services.
func names(services []*corev1.Service) []string {
	list := []string{}
	for _, s := range services {
		list = append(list, s.Namespace+"/"+s.Name)
	}
	return list
}

func servicesOf(table *tables.Table) []*corev1.Service {
	return table.Value().Interface().([]*corev1.Service)
}

type services struct {
	Services []*corev1.Service
}
