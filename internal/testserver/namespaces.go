package testserver

import (
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/testserver/rules"
	"github.com/kates-go/kates/internal/testserver/store"
)

// addNamespace adds a namespace that every cluster has.
func (s *Server) addNamespace(name string) error {
	k := s.kinds().Find(schema.GroupVersionResource{Version: "v1", Resource: namespacesStored})
	if k == nil {
		return errors.New("there is no kind Namespace")
	}
	c := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
	if err := rules.Create(k, c, types.UID("00000000-0000-0000-0000-"+padded(name)), time.Now()); err != nil {
		return err
	}
	_, err := s.store.Write(store.Key{Resource: namespacesStored, Name: name}, func(store.Object, int64) (map[string]any, bool, error) {
		return c, true, nil
	})
	return err
}

// padded is a part of a UID that tells the first namespaces apart.
func padded(name string) string {
	n := 0
	for _, c := range name {
		n = n*31 + int(c)
	}
	digits := strings.Repeat("0", 12)
	text := []byte(digits)
	for i := len(text) - 1; i >= 0 && n > 0; i-- {
		text[i] = "0123456789abcdef"[n%16]
		n /= 16
	}
	return string(text)
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
