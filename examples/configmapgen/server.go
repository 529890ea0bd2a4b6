package main

import (
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/examples/configmapgen/generator"
)

// server does for ConfigTemplates what an API server and its garbage collector do, and
// client-go's fake does not. It sets UIDs and generations, keeps objects with finalizers, and
// deletes what they own after them.
type server struct {
	tracker clienttesting.ObjectTracker
	plain   clienttesting.ReactionFunc // the fake's own reaction
	made    atomic.Int64
}

var (
	roots      = generator.GroupVersion.WithResource("configtemplates")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
)

func behaveLikeAServer(fake *dynamicfake.FakeDynamicClient) {
	s := &server{tracker: fake.Tracker(), plain: clienttesting.ObjectReaction(fake.Tracker())}
	fake.PrependReactor("create", roots.Resource, s.create)
	fake.PrependReactor("patch", roots.Resource, s.patch)
	fake.PrependReactor("delete", roots.Resource, s.delete)
}

// No lock is needed: the fake calls reactors one at a time.

func (s *server) create(action clienttesting.Action) (bool, runtime.Object, error) {
	create := action.(clienttesting.CreateActionImpl)
	u := create.Object.(*unstructured.Unstructured)
	u.SetUID(types.UID(fmt.Sprint("uid-", s.made.Add(1))))
	u.SetGeneration(1)
	u.SetCreationTimestamp(metav1.Now())
	return s.plain(create)
}

func (s *server) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	before, err := s.get(action.GetNamespace(), action.(clienttesting.PatchActionImpl).Name)
	if err != nil {
		return true, nil, err
	}
	_, o, err := s.plain(action)
	if err != nil {
		return true, nil, err
	}
	u := o.(*unstructured.Unstructured)
	switch {
	case u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0:
		err = s.collect(u)
	case !reflect.DeepEqual(before.Object["spec"], u.Object["spec"]):
		u.SetGeneration(before.GetGeneration() + 1)
		err = s.tracker.Update(roots, u, u.GetNamespace())
	}
	return true, u, err
}

func (s *server) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	u, err := s.get(action.GetNamespace(), action.(clienttesting.DeleteActionImpl).Name)
	switch {
	case err != nil:
		return true, nil, err
	case len(u.GetFinalizers()) == 0:
		return true, nil, s.collect(u)
	case u.GetDeletionTimestamp() == nil:
		now := metav1.Now()
		u.SetDeletionTimestamp(&now)
		return true, nil, s.tracker.Update(roots, u, u.GetNamespace())
	}
	return true, nil, nil
}

func (s *server) get(namespace, name string) (*unstructured.Unstructured, error) {
	o, err := s.tracker.Get(roots, namespace, name)
	if err != nil {
		return nil, err
	}
	return o.DeepCopyObject().(*unstructured.Unstructured), nil
}

// collect deletes a root and what it owns.
func (s *server) collect(root *unstructured.Unstructured) error {
	if err := s.tracker.Delete(roots, root.GetNamespace(), root.GetName()); err != nil {
		return err
	}
	list, err := s.tracker.List(configMaps, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, root.GetNamespace())
	if err != nil {
		return err
	}
	return meta.EachListItem(list, func(o runtime.Object) error {
		owned := o.(metav1.Object)
		if !slices.ContainsFunc(owned.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == root.GetUID() }) {
			return nil
		}
		return s.tracker.Delete(configMaps, owned.GetNamespace(), owned.GetName())
	})
}
