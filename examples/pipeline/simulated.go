package main

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// simulated is a cluster in memory.
type simulated struct {
	name  string
	fake  *katestest.Fake
	admin *kates.Client // of those who are not the program
}

func newSimulated(name, manifests string, options []kates.Option) (*simulated, error) {
	fake, err := katestest.NewFake(katestest.WithManifests(manifests), katestest.WithClientOptions(options...))
	if err != nil {
		return nil, err
	}
	countGenerations(fake)
	admin, err := kates.NewClientFromDynamic(fake.Dynamic, fake.Mapper)
	if err != nil {
		fake.Close()
		return nil, err
	}
	return &simulated{name, fake, admin}, nil
}

func (c *simulated) member() fleet.Member { return fleet.Member{Name: c.name, Client: c.fake.Client} }

// countGenerations has a fake raise the generation when a spec is patched, as a server does.
func countGenerations(f *katestest.Fake) {
	f.Dynamic.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a, ok := action.(clienttesting.PatchAction)
		if !ok || a.GetSubresource() != "" || a.GetPatchType() != types.MergePatchType {
			return false, nil, nil
		}
		tracker := f.Dynamic.Tracker()
		stored, err := tracker.Get(a.GetResource(), a.GetNamespace(), a.GetName())
		if err != nil {
			return true, nil, err
		}
		var patch map[string]any
		if err := json.Unmarshal(a.GetPatch(), &patch); err != nil {
			return true, nil, err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
		if err != nil {
			return true, nil, err
		}
		o := &unstructured.Unstructured{Object: merge(content, patch)}
		o.SetResourceVersion("")
		if _, changed := patch["spec"]; changed {
			object, _ := meta.Accessor(o)
			object.SetGeneration(object.GetGeneration() + 1)
		}
		return true, o, tracker.Update(a.GetResource(), o, a.GetNamespace())
	})
}

// merge merges a patch into an object: RFC 7396.
func merge(into, patch map[string]any) map[string]any {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap:
			of, _ := into[key].(map[string]any)
			if of == nil {
				of = map[string]any{}
			}
			into[key] = merge(of, inner)
		default:
			into[key] = value
		}
	}
	return into
}
