package kates

// operation is what a request does to an object, or to one of its subresources.
type operation struct {
	verb        verb
	subresource string // empty: the object itself
}

// String is the wording of the operation in errors: "update", "update the status of".
func (op operation) String() string {
	text := verbs[op.verb].text
	if op.subresource != "" {
		text += " the " + op.subresource + " of"
	}
	return text
}

// subresources are the arguments of a dynamic client for the operation.
func (op operation) subresources() []string {
	if op.subresource == "" {
		return nil
	}
	return []string{op.subresource}
}

// verb is what an operation does. Several verbs may be the same to the server, and differ in their
// wording only.
type verb int

const (
	toGet verb = iota
	toList
	toObserve
	toCreate
	toUpdate
	toPatch
	toApply
	toUpsert
	toDelete
	toDeleteAll
	toPrune
	toWithdraw
	toModify
	toSet
)

// The operations on objects themselves, and those on the status that have methods of their own.
var (
	opGet          = operation{verb: toGet}
	opList         = operation{verb: toList}
	opObserve      = operation{verb: toObserve}
	opCreate       = operation{verb: toCreate}
	opUpdate       = operation{verb: toUpdate}
	opUpdateStatus = operation{verb: toUpdate, subresource: "status"}
	opPatch        = operation{verb: toPatch}
	opApply        = operation{verb: toApply}
	opUpsert       = operation{verb: toUpsert}
	opDelete       = operation{verb: toDelete}
	opDeleteAll    = operation{verb: toDeleteAll}
	opPrune        = operation{verb: toPrune}
	opWithdraw     = operation{verb: toWithdraw}
	opModify       = operation{verb: toModify}
	opModifyStatus = operation{verb: toModify, subresource: "status"}
	opSetStatus    = operation{verb: toSet, subresource: "status"}
)

// bound says when a write under a lease needs preconditions of the client's own, see server.bind.
type bound int

const (
	always       bound = iota
	never              // the server takes none, or the operation itself reads the object first
	ifNoneItself       // unless the object carries a version, which is a precondition
)

// verbs is the table of all verbs: their wording, and what depends on them.
var verbs = [...]struct {
	text  string
	bound bound
}{
	toGet:       {text: "get"},
	toList:      {text: "list"},
	toObserve:   {text: "observe"},
	toCreate:    {text: "create", bound: never},
	toUpdate:    {text: "update", bound: ifNoneItself},
	toPatch:     {text: "patch"},
	toApply:     {text: "apply", bound: ifNoneItself},
	toUpsert:    {text: "upsert", bound: never},
	toDelete:    {text: "delete"},
	toDeleteAll: {text: "delete all"},
	toPrune:     {text: "prune"},
	toWithdraw:  {text: "withdraw from"},
	toModify:    {text: "modify"},
	toSet:       {text: "set"},
}

// eviction is the one subresource that takes preconditions when it is created.
const eviction = "eviction"

// preconditioned reports whether the write of an object under a lease needs preconditions.
func (op operation) preconditioned(o *object) bool {
	if op.verb == toCreate && op.subresource == eviction {
		return true
	}
	switch verbs[op.verb].bound {
	case never:
		return false
	case ifNoneItself:
		return o.GetResourceVersion() == ""
	}
	return true
}

// takesOptions reports whether the preconditions in the caller's options have a meaning.
func (op operation) takesOptions() bool { return op != opCreate && op != opUpsert }
