package testserver

import (
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/rules"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// addNamespace adds a namespace that every cluster has. Its UID is new, since the UID of
// kube-system tells clusters apart.
func (s *Server) addNamespace(name string) error {
	k := s.kinds().Find(schema.GroupVersionResource{Version: "v1", Resource: namespacesStored})
	if k == nil {
		return errors.New("there is no kind Namespace")
	}
	c := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
	if err := rules.Create(k, c, uuid.NewUUID(), time.Now()); err != nil {
		return err
	}
	_, err := s.store.Write(store.Key{Resource: namespacesStored, Name: name}, func(store.Object, int64) (map[string]any, bool, error) {
		return c, true, nil
	})
	return err
}

// empty deletes what is in a namespace that is deleted. When nothing is left, it lets the
// namespace go.
func (c *collector) empty(ns item) {
	left := false
	for _, key := range c.in[ns.key.Name].sorted() {
		o, there := c.s.item(key)
		if !there {
			continue
		}
		left = true
		if o.object.GetDeletionTimestamp() == nil {
			c.s.drop(o, metav1.DeletePropagationBackground)
		}
	}
	if left {
		return // the end of the last one makes the namespace due
	}
	c.s.amend(ns, func(o *unstructured.Unstructured) {
		own, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "finalizers")
		own = slices.DeleteFunc(own, func(f string) bool { return f == "kubernetes" })
		if len(own) == 0 {
			unstructured.RemoveNestedField(o.Object, "spec", "finalizers")
			return
		}
		_ = unstructured.SetNestedStringSlice(o.Object, own, "spec", "finalizers") // the spec is a map
	})
}
