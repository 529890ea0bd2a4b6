package sim

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// Answer is the simulated server's answer to a write: an object, or a Status that has only a UID.
type Answer struct {
	verb   string // delete, or something else
	object *unstructured.Unstructured
	Uid    types.UID
	Rev    int // the server's version after the write; no client sees it
}

// The ways in which a server answers a DELETE that ends an object. They depend on the resource.
const (
	ByStatus     = iota // ConfigMap, Deployment, custom resources
	ByOldObject         // Service: as it was, at its old version
	byGoneObject        // Pod of no grace: the deletion's version
	Deletions
)

// Write returns what package kates reads from an answer.
func (a Answer) Write(key object.Key) coherence.Write {
	w := coherence.Write{Key: key, UID: a.Uid}
	if a.object == nil {
		return w
	}
	deleted := a.object.GetDeletionTimestamp() != nil
	switch {
	case a.verb == "delete" && !deleted:
	case deleted && len(a.object.GetFinalizers()) == 0:
		if a.verb == "delete" {
			w.Version = a.object.GetResourceVersion()
		}
	default:
		w.Version, w.Object = a.object.GetResourceVersion(), a.object.DeepCopy()
	}
	return w
}

// Verbs are what random writers do. Each has a parameter.
var Verbs = []string{"update", "move", "node", "nothing", "delete", "delete", "finalize", "release"}

// Do performs a verb on an object, or creates it, like a server. It returns false if there is
// nothing to do.
func (s *Server) Do(resource string, key object.Key, verb string, param int) (Answer, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	old := s.Now[resource][key]
	if old == nil {
		return s.stored(resource, key, Fresh(key, param)), true
	}
	next := old.DeepCopy()
	switch verb {
	case "update":
		_ = unstructured.SetNestedField(next.Object, int64(s.Rev), "spec", "n")
	case "move":
		next.SetLabels(map[string]string{"in": other(old.GetLabels()["in"], "yes", "no")})
	case "node":
		node, _, _ := unstructured.NestedString(old.Object, "spec", "node")
		_ = unstructured.SetNestedField(next.Object, other(node, "n1", "n2"), "spec", "node")
	case "nothing":
		rev, _ := strconv.Atoi(old.GetResourceVersion())
		return Answer{object: s.render(old), Uid: old.GetUID(), Rev: rev}, true
	case "delete":
		return s.delete(resource, key, old, param%Deletions), true
	case "finalize":
		if len(old.GetFinalizers()) > 0 || old.GetDeletionTimestamp() != nil {
			return Answer{}, false
		}
		next.SetFinalizers([]string{"test/kept"})
	case "release":
		if len(old.GetFinalizers()) == 0 {
			return Answer{}, false
		}
		next.SetFinalizers(nil)
		if old.GetDeletionTimestamp() != nil { // the end of it, answered at the old version
			s.putLocked(resource, key, nil)
			return Answer{object: s.render(next), Uid: old.GetUID(), Rev: s.Rev}, true
		}
	}
	return s.stored(resource, key, next), true
}

// stored stores an object, and returns the answer. Called with Mu held.
func (s *Server) stored(resource string, key object.Key, u *unstructured.Unstructured) Answer {
	u = s.putLocked(resource, key, u)
	return Answer{object: s.render(u), Uid: u.GetUID(), Rev: s.Rev}
}

// delete removes an object, or marks it if it has finalizers. Called with Mu held.
func (s *Server) delete(resource string, key object.Key, old *unstructured.Unstructured, way int) Answer {
	marked := old.DeepCopy()
	now := metav1.Now()
	marked.SetDeletionTimestamp(&now)
	a := Answer{verb: "delete", Uid: old.GetUID()}
	switch {
	case len(old.GetFinalizers()) > 0 && old.GetDeletionTimestamp() != nil: // again
		a.object = s.render(old)
		a.Rev, _ = strconv.Atoi(old.GetResourceVersion())
		return a
	case len(old.GetFinalizers()) > 0:
		a.object = s.render(s.putLocked(resource, key, marked))
		a.Rev = s.Rev
		return a
	}
	s.putLocked(resource, key, nil)
	a.Rev = s.Rev
	switch way {
	case ByOldObject:
		a.object = old
	case byGoneObject:
		marked.SetResourceVersion(strconv.Itoa(s.Rev))
		a.object = marked
	}
	return a
}

// other returns the one of two values that differs from the old one.
func other(old, a, b string) string {
	if old == a {
		return b
	}
	return a
}

// Fresh returns a new object with random labels, node and finalizer.
func Fresh(key object.Key, param int) *unstructured.Unstructured {
	u := Thing(key.Name, "in", []string{"yes", "no"}[param%2])
	u.SetNamespace(key.Namespace)
	_ = unstructured.SetNestedField(u.Object, []string{"n1", "n2"}[param/2%2], "spec", "node")
	if param%5 == 0 {
		u.SetFinalizers([]string{"test/kept"})
	}
	return u
}
