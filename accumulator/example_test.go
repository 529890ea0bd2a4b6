package accumulator_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
)

// still is a source that has one list and never changes.
type still struct{ list unstructured.UnstructuredList }

func (s *still) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &s.list, nil
}

func (s *still) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// A Source lists and watches, and an accumulator makes snapshots of it. In package kates the
// source is an API server.
func Example() {
	bare := &still{}
	bare.list.SetResourceVersion("10")
	for _, name := range []string{"b", "a"} {
		bare.list.Items = append(bare.list.Items, unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "ns", "uid": name, "resourceVersion": "9"},
		}})
	}
	streams := streamset.New(stream.Config{
		Source: func(object.Resource, string, object.Form) source.Source {
			return source.Plain{ListerWatcherWithContext: bare}
		},
	})
	defer streams.Close()

	ctx := context.Background()
	acc, err := accumulator.New(ctx, streams, []query.Query{{
		Name: "Things", Kind: "things",
		Resolve: func(context.Context) (object.Resource, error) {
			gvr := schema.GroupVersionResource{Version: "v1", Resource: "things"}
			return object.Resource{GroupVersionResource: gvr, Namespaced: true, Storage: "things"}, nil
		},
	}}, collect.Options{})
	if err != nil {
		panic(err)
	}
	var snap struct{ Things []*unstructured.Unstructured }
	<-acc.Changed()
	result, err := acc.Update(ctx, &snap, nil)
	fmt.Println(result.Changed, err, snap.Things[0].GetName(), snap.Things[1].GetName())
	// Output: true <nil> a b
}
