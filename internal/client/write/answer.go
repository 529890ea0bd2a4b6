package write

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/coherence"
	objects "github.com/kates-go/kates/internal/object"
)

// written reads the server's answer to a write: is the object present, terminating, or gone? The
// answers of all writes are read here, and only here.
//
//   - gone: a DELETE answered by a Status, or by the object without a
//     deletionTimestamp; or any write answered by an object with a deletionTimestamp
//     that nothing keeps any more (no finalizers but those that the write removed, no grace).
//   - terminating: it has a deletionTimestamp and something keeps it. It is there.
//   - present: everything else.
//
// A DELETE that ends a terminating object answers with the deletion's version. A
// write that removes the last finalizer answers with the object's old version, so
// that version says nothing, and the deletion's is unknown.
func written(op Operation, answer *unstructured.Unstructured, removed ...string) coherence.Write {
	w := coherence.Write{
		Key: objects.Key{Namespace: answer.GetNamespace(), Name: answer.GetName()},
		UID: answer.GetUID(),
	}
	deleted := answer.GetDeletionTimestamp() != nil
	switch {
	case op == OpDelete && !deleted:
	case deleted && !kept(answer, removed...):
		if op == OpDelete {
			w.Version = answer.GetResourceVersion()
		}
	default:
		w.Version, w.Object = answer.GetResourceVersion(), answer
	}
	return w
}

// kept reports whether something keeps a terminating object: a finalizer that was not removed, a
// namespace's own finalizer, or a grace period.
func kept(u *unstructured.Unstructured, removed ...string) bool {
	for _, f := range u.GetFinalizers() {
		if !slices.Contains(removed, f) {
			return true
		}
	}
	if grace := u.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		return true
	}
	if u.GetKind() == "Namespace" && u.GetAPIVersion() == "v1" {
		own, _, _ := unstructured.NestedSlice(u.Object, "spec", "finalizers")
		return len(own) > 0
	}
	return false
}

// removedBy are the finalizers that a deletion takes off the object. If none is left after that,
// the server deletes it, and answers with the object as it was before: with them.
func removedBy(o metav1.DeleteOptions) []string {
	if p := o.PropagationPolicy; p != nil && *p == metav1.DeletePropagationBackground {
		return []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	}
	return nil
}
