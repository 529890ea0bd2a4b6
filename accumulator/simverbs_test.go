package accumulator

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// answer is the simulated server's answer to a write: an object, or a Status that has only a UID.
type answer struct {
	verb   string // delete, or something else
	object *unstructured.Unstructured
	uid    types.UID
	rev    int // the server's version after the write; no client sees it
}

// A server answers a DELETE that ends an object in one of these ways, by resource.
const (
	byStatus     = iota // ConfigMap, Deployment, custom resources
	byOldObject         // Service: as it was, at its old version
	byGoneObject        // Pod of no grace: the deletion's version
	deletions
)

// write returns what package kates reads from an answer (kates/write_own.go).
func (a answer) write(key Key) coherence.Write {
	w := coherence.Write{Key: key, UID: a.uid}
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

// verbs of the random writers. Each has a parameter.
var verbs = []string{"update", "move", "node", "nothing", "delete", "delete", "finalize", "release"}

// do performs a verb on an object, or creates it, like a server. It returns false if there is
// nothing to do.
func (s *sim) do(resource string, key Key, verb string, param int) (answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.now[resource][key]
	if old == nil {
		return s.stored(resource, key, fresh(key, param)), true
	}
	next := old.DeepCopy()
	switch verb {
	case "update":
		_ = unstructured.SetNestedField(next.Object, int64(s.rev), "spec", "n")
	case "move":
		next.SetLabels(map[string]string{"in": other(old.GetLabels()["in"], "yes", "no")})
	case "node":
		node, _, _ := unstructured.NestedString(old.Object, "spec", "node")
		_ = unstructured.SetNestedField(next.Object, other(node, "n1", "n2"), "spec", "node")
	case "nothing":
		rev, _ := strconv.Atoi(old.GetResourceVersion())
		return answer{object: old, uid: old.GetUID(), rev: rev}, true
	case "delete":
		return s.delete(resource, key, old, param%deletions), true
	case "finalize":
		if len(old.GetFinalizers()) > 0 || old.GetDeletionTimestamp() != nil {
			return answer{}, false
		}
		next.SetFinalizers([]string{"test/kept"})
	case "release":
		if len(old.GetFinalizers()) == 0 {
			return answer{}, false
		}
		next.SetFinalizers(nil)
		if old.GetDeletionTimestamp() != nil { // the end of it, answered at the old version
			s.putLocked(resource, key, nil)
			return answer{object: next, uid: old.GetUID(), rev: s.rev}, true
		}
	}
	return s.stored(resource, key, next), true
}

func (s *sim) stored(resource string, key Key, u *unstructured.Unstructured) answer {
	u = s.putLocked(resource, key, u)
	return answer{object: u, uid: u.GetUID(), rev: s.rev}
}

// delete removes an object, or marks it if it has finalizers.
func (s *sim) delete(resource string, key Key, old *unstructured.Unstructured, way int) answer {
	marked := old.DeepCopy()
	now := metav1.Now()
	marked.SetDeletionTimestamp(&now)
	a := answer{verb: "delete", uid: old.GetUID()}
	switch {
	case len(old.GetFinalizers()) > 0 && old.GetDeletionTimestamp() != nil: // again
		a.object = old
		a.rev, _ = strconv.Atoi(old.GetResourceVersion())
		return a
	case len(old.GetFinalizers()) > 0:
		a.object = s.putLocked(resource, key, marked)
		a.rev = s.rev
		return a
	}
	s.putLocked(resource, key, nil)
	a.rev = s.rev
	switch way {
	case byOldObject:
		a.object = old
	case byGoneObject:
		marked.SetResourceVersion(strconv.Itoa(s.rev))
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

// fresh returns a new object with random labels, node and finalizer.
func fresh(key Key, param int) *unstructured.Unstructured {
	u := thing(key.Name, "in", []string{"yes", "no"}[param%2])
	u.SetNamespace(key.Namespace)
	_ = unstructured.SetNestedField(u.Object, []string{"n1", "n2"}[param/2%2], "spec", "node")
	if param%5 == 0 {
		u.SetFinalizers([]string{"test/kept"})
	}
	return u
}
