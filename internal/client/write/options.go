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

// Operation is what a request does to an object, or to one of its subresources.
type Operation struct {
	verb        verb
	subresource string // empty: the object itself
}

// String is the wording of the operation in errors: "update", "update the status of".
func (op Operation) String() string {
	text := op.verb.text
	if op.subresource != "" {
		text += " the " + op.subresource + " of"
	}
	return text
}

// subresources are the arguments of a dynamic client for the operation.
func (op Operation) subresources() []string {
	if op.subresource == "" {
		return nil
	}
	return []string{op.subresource}
}

// verb is what an operation does: its wording, and what depends on it. Several verbs may be the
// same to the server, and differ in their wording only.
type verb struct {
	text  string
	bound bound
}

// bound says when a write under a lease needs preconditions of the client's own, see Writer.bind.
type bound int

const (
	always       bound = iota
	never              // the server takes none, or the operation itself reads the object first
	ifNoneItself       // unless the object carries a version, which is a precondition
)

var (
	toGet    = verb{"get", always}
	toCreate = verb{"create", never}
	toUpdate = verb{"update", ifNoneItself}
	toPatch  = verb{"patch", always}
	toModify = verb{"modify", always}
)

// The operations on objects themselves, and those on the status that have methods of their own.
var (
	OpGet          = Operation{verb: toGet}
	OpList         = Operation{verb: verb{"list", always}}
	OpObserve      = Operation{verb: verb{"observe", always}}
	OpCreate       = Operation{verb: toCreate}
	OpUpdate       = Operation{verb: toUpdate}
	OpUpdateStatus = Operation{verb: toUpdate, subresource: statusSubresource}
	OpPatch        = Operation{verb: toPatch}
	OpApply        = Operation{verb: verb{"apply", ifNoneItself}}
	OpUpsert       = Operation{verb: verb{"upsert", never}}
	OpDelete       = Operation{verb: verb{"delete", always}}
	OpDeleteAll    = Operation{verb: verb{"delete all", always}}
	OpPrune        = Operation{verb: verb{"prune", always}}
	OpWithdraw     = Operation{verb: verb{"withdraw from", always}}
	OpModify       = Operation{verb: toModify}
	OpModifyStatus = Operation{verb: toModify, subresource: statusSubresource}
)

// statusSubresource is the subresource of most kinds.
const statusSubresource = "status"

// preconditioned reports whether the write of an object under a lease needs preconditions.
func (op Operation) preconditioned(o *core.Subject) bool {
	if op.verb == toCreate && op.subresource == "eviction" {
		return true // no other creation takes preconditions
	}
	switch op.verb.bound {
	case never:
		return false
	case ifNoneItself:
		return o.GetResourceVersion() == ""
	}
	return true
}

// takesOptions reports whether the preconditions in the caller's options have a meaning.
func (op Operation) takesOptions() bool { return op != OpCreate && op != OpUpsert }
