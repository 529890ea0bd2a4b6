package write

import (
	"github.com/kates-go/kates/internal/client/core"
)

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
	toSet    = verb{"set", always}
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
	OpSetStatus    = Operation{verb: toSet, subresource: statusSubresource}
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
