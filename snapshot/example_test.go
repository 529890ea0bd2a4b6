package snapshot_test

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/snapshot"
)

// A snapshot with one field is filled. Then one of its objects is replaced by one that does not
// decode.
func Example() {
	type Snapshot struct {
		Services map[types.NamespacedName]*corev1.Service
	}
	binding, err := snapshot.Compile(reflect.TypeFor[Snapshot](), []snapshot.Query{{Name: "Services"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	table := binding.NewTable(0)

	put := func(name string, spec any) {
		service := &unstructured.Unstructured{Object: map[string]any{
			"kind": "Service", "metadata": map[string]any{"namespace": "prod", "name": name}, "spec": spec,
		}}
		value, err := binding.Convert(0, service)
		diffs, _ := table.Apply([]tables.Change{{
			Key: tables.Key{Name: name, Namespace: "prod"},
			Row: &tables.Row{Source: service, Value: value, Err: err},
		}})
		for _, d := range diffs {
			fmt.Println(d.Key, "shown before:", d.Old != nil, "now:", d.New != nil)
		}
	}
	put("web", map[string]any{"clusterIP": "10.0.0.1"})
	put("db", map[string]any{"clusterIP": "10.0.0.2"})
	put("db", "not a spec")

	var snap Snapshot
	binding.Set(reflect.ValueOf(&snap).Elem(), 0, table, nil)
	for key, service := range snap.Services {
		fmt.Println(key, service.Spec.ClusterIP)
	}
	for _, row := range table.Invalid() {
		fmt.Println(row.Source.GetName(), "is left out")
	}

	// Output:
	// prod/web shown before: false now: true
	// prod/db shown before: false now: true
	// prod/db shown before: true now: false
	// prod/web 10.0.0.1
	// db is left out
}
