package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// Deletion is what a DELETE makes of an object: it terminates, or goes, or first terminates and
// then goes.
type Deletion struct {
	// Next is the terminating object; unchanged if it goes at once.
	Next Content
	// Gone says that the object goes.
	Gone bool
}

// Delete begins or ends the deletion of an object.
func Delete(k *kinds.Kind, old Content, o metav1.DeleteOptions, now time.Time) (Deletion, error) {
	if err := Preconditions(k, old, o.Preconditions); err != nil {
		return Deletion{}, err
	}
	next := object(runtime.DeepCopyJSON(old))
	next.SetFinalizers(finalizers(next, o))
	if k.IsNamespace() {
		return deleteNamespace(old, next, now)
	}
	if k.GroupKind().String() == definitionKind && undefine(next, now) {
		return Deletion{Next: next.Object}, nil
	}
	terminating := next.GetDeletionTimestamp() != nil
	switch left := next.GetDeletionGracePeriodSeconds(); {
	case k.Rules.Grace && !terminating:
		grace := graceOf(next, o)
		mark(next, now.Add(time.Duration(grace)*time.Second), grace)
	case k.Rules.Grace && left != nil && *left > 0 && graceOf(next, o) < *left:
		shorten(next, *left, graceOf(next, o), now)
	case k.Rules.Grace && left != nil && *left > 0: // a deletion that is pending keeps its finalizers
		return Deletion{Next: old, Gone: Ended(k, old)}, nil
	case k.Rules.Grace: // it terminates already
		if Ended(k, next.Object) {
			return Deletion{Next: old, Gone: true}, nil
		}
	case len(next.GetFinalizers()) > 0 && left == nil:
		if at := next.GetDeletionTimestamp(); terminating {
			now = at.Time
		}
		mark(next, now, 0)
	}
	gone := len(next.GetFinalizers()) == 0
	if next.GetDeletionTimestamp() != nil {
		gone = Ended(k, next.Object)
	}
	if gone && !k.Rules.Grace {
		return Deletion{Next: old, Gone: true}, nil
	}
	return Deletion{Next: next.Object, Gone: gone}, nil
}

func mark(o *unstructured.Unstructured, at time.Time, grace int64) {
	began := o.GetDeletionTimestamp() == nil
	t := metav1.NewTime(at.Truncate(time.Second))
	o.SetDeletionTimestamp(&t)
	o.SetDeletionGracePeriodSeconds(&grace)
	if g := o.GetGeneration(); g > 0 && began {
		o.SetGeneration(g + 1)
	}
}

func shorten(o *unstructured.Unstructured, left, grace int64, now time.Time) {
	began := o.GetDeletionTimestamp().Add(-time.Duration(left) * time.Second)
	at := began.Add(time.Duration(grace) * time.Second)
	if at.Before(now) {
		at = now
		if grace != 0 {
			grace = 1
		}
	}
	t := metav1.NewTime(at.Truncate(time.Second))
	o.SetDeletionTimestamp(&t)
	o.SetDeletionGracePeriodSeconds(&grace)
}

// lasting are the namespaces that are not deleted.
var lasting = []string{"default", "kube-public", "kube-system"}

// LastingNamespace is the error of a deletion of a namespace that every cluster needs; nil for
// another object.
func LastingNamespace(k *kinds.Kind, name string) error {
	if !k.IsNamespace() || !slices.Contains(lasting, name) {
		return nil
	}
	return apierrors.NewForbidden(k.GR(), name, errors.New("this namespace may not be deleted"))
}

// deleteNamespace begins the deletion of a namespace. Another DELETE ends it, if no finalizer
// keeps the namespace; so does the removal of the last one.
func deleteNamespace(old Content, next *unstructured.Unstructured, now time.Time) (Deletion, error) {
	own, _, _ := unstructured.NestedSlice(next.Object, "spec", "finalizers")
	if at := next.GetDeletionTimestamp(); at != nil {
		switch {
		case len(own) > 0:
			return Deletion{Next: old}, nil
		case len(next.GetFinalizers()) == 0:
			return Deletion{Next: old, Gone: true}, nil
		}
		mark(next, at.Time, 0)
		return Deletion{Next: next.Object}, nil
	}
	t := metav1.NewTime(now.Truncate(time.Second))
	next.SetDeletionTimestamp(&t)
	return Deletion{Next: next.Object}, unstructured.SetNestedField(next.Object, "Terminating", "status", "phase")
}

// graceOf is for how many seconds a pod stays after its deletion began.
func graceOf(o *unstructured.Unstructured, options metav1.DeleteOptions) int64 {
	node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if asked := options.GracePeriodSeconds; asked != nil {
		if *asked < 0 {
			return 1
		}
		return *asked
	}
	if left := o.GetDeletionGracePeriodSeconds(); left != nil && o.GetDeletionTimestamp() != nil {
		return *left
	}
	if own, ok, _ := unstructured.NestedInt64(o.Object, "spec", "terminationGracePeriodSeconds"); ok {
		return own
	}
	return 30
}

// finalizers are those of an object after a deletion with a propagation policy began.
func finalizers(o *unstructured.Unstructured, options metav1.DeleteOptions) []string {
	orphan := slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents)
	foreground := slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents)
	old := options.OrphanDependents //lint:ignore SA1019 old clients send it
	switch policy := options.PropagationPolicy; {
	case policy != nil:
		orphan, foreground = *policy == metav1.DeletePropagationOrphan, *policy == metav1.DeletePropagationForeground
	case old != nil:
		orphan, foreground = *old, false
	}
	kept := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if orphan {
		kept = append(kept, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		kept = append(kept, metav1.FinalizerDeleteDependents)
	}
	if len(kept) == 0 {
		return nil // none are left out, not empty
	}
	return kept
}

// Preconditions says why a request may not be done.
func Preconditions(k *kinds.Kind, old Content, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	o := object(old)
	resource := schema.GroupResource{Group: k.Group, Resource: k.Kind}
	if k.IsNamespace() {
		resource = k.GR()
	}
	var says string
	switch {
	case p.UID != nil && *p.UID != o.GetUID():
		says = fmt.Sprintf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, o.GetUID())
	case p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion():
		says = fmt.Sprintf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, o.GetResourceVersion())
	default:
		return nil
	}
	return apierrors.NewConflict(resource, o.GetName(), fmt.Errorf("%s", strings.TrimSpace(says)))
}
