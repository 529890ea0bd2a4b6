package write

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/client/core"
)

// Options are the options of one write.
type Options struct {
	DryRun       []string
	FieldManager string
	Force        bool
	UID          *types.UID
	Version      *string
	Propagation  *metav1.DeletionPropagation
	Grace        *int64
	Unfenced     bool
	Asks         bool                       // the caller asks the server, though nothing may change
	body         *unstructured.Unstructured // what is sent in place of the object; nil: the object itself
	Wrong        error                      // the first option that makes no sense
}

// ForCreate returns the options of a create.
func (w Options) ForCreate() metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: w.DryRun, FieldManager: w.FieldManager}
}

// ForUpdate returns the options of an update.
func (w Options) ForUpdate() metav1.UpdateOptions {
	return metav1.UpdateOptions{DryRun: w.DryRun, FieldManager: w.FieldManager}
}

func (w Options) patch(pt types.PatchType) metav1.PatchOptions {
	o := metav1.PatchOptions{DryRun: w.DryRun, FieldManager: w.FieldManager}
	if pt == types.ApplyPatchType {
		o.FieldManager, o.Force = ManagerOr(w.FieldManager), &w.Force
	}
	return o
}

func (w Options) delete() metav1.DeleteOptions {
	o := metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		DryRun:   w.DryRun, PropagationPolicy: w.Propagation, GracePeriodSeconds: w.Grace,
	}
	if w.UID != nil || w.Version != nil {
		o.Preconditions = &metav1.Preconditions{UID: w.UID, ResourceVersion: w.Version}
	}
	return o
}

// sent is what carries the version of a write that has one.
func (w Options) sent(o *core.Subject) *core.Subject {
	if w.body == nil {
		return o
	}
	return &core.Subject{Unstructured: w.body}
}

// About binds a write to the given object by its UID, if it has one and the options name none.
// Objects of a fake have none.
func (w Options) About(o metav1.Object) Options {
	if uid := o.GetUID(); uid != "" && w.UID == nil {
		w.UID = &uid
	}
	return w
}
