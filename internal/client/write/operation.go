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

// bound says when a write under a lease needs preconditions of the client's own, see server.bind.
type bound int

const (
	always       bound = iota
	never              // the server takes none, or the operation itself reads the object first
	ifNoneItself       // unless the object carries a version, which is a precondition
)

var (
	toGet       = verb{"get", always}
	toList      = verb{"list", always}
	toObserve   = verb{"observe", always}
	toCreate    = verb{"create", never}
	toUpdate    = verb{"update", ifNoneItself}
	toPatch     = verb{"patch", always}
	toApply     = verb{"apply", ifNoneItself}
	toUpsert    = verb{"upsert", never}
	toDelete    = verb{"delete", always}
	toDeleteAll = verb{"delete all", always}
	toPrune     = verb{"prune", always}
	toWithdraw  = verb{"withdraw from", always}
	toModify    = verb{"modify", always}
	toSet       = verb{"set", always}
)

// The operations on objects themselves, and those on the status that have methods of their own.
var (
	OpGet          = Operation{verb: toGet}
	OpList         = Operation{verb: toList}
	OpObserve      = Operation{verb: toObserve}
	OpCreate       = Operation{verb: toCreate}
	OpUpdate       = Operation{verb: toUpdate}
	OpUpdateStatus = Operation{verb: toUpdate, subresource: statusSubresource}
	OpPatch        = Operation{verb: toPatch}
	OpApply        = Operation{verb: toApply}
	OpUpsert       = Operation{verb: toUpsert}
	OpDelete       = Operation{verb: toDelete}
	OpDeleteAll    = Operation{verb: toDeleteAll}
	OpPrune        = Operation{verb: toPrune}
	OpWithdraw     = Operation{verb: toWithdraw}
	OpModify       = Operation{verb: toModify}
	OpModifyStatus = Operation{verb: toModify, subresource: statusSubresource}
	OpSetStatus    = Operation{verb: toSet, subresource: statusSubresource}
)

// statusSubresource is the subresource of most kinds.
const statusSubresource = "status"

// eviction is the one subresource that takes preconditions when it is created.
const eviction = "eviction"

// preconditioned reports whether the write of an object under a lease needs preconditions.
func (op Operation) preconditioned(o *core.Subject) bool {
	if op.verb == toCreate && op.subresource == eviction {
		return true
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
