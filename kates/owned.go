package kates

import (
	"context"

	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/owned"
)

// ErrNotOwned: an object of that name exists and does not belong to this set.
var ErrNotOwned = applied.ErrNotOwned

// AppliedAnnotation is the annotation by which [Client.ApplyOwned] knows what it has applied: its
// value is a digest of that. For an [OwnedSet] of another Label a dash and a digest of that label
// follow, since sets of different labels may share an object.
const AppliedAnnotation = owned.Annotation

// OwnedSetLabel is the label of the objects of an [OwnedSet], unless that names another one. Its
// value is the name of the set and the UID of the owner.
const OwnedSetLabel = owned.Label

// OwnerLabel is the label of objects whose owner lives in another cluster ([OwnedSet].Remote). Its
// value is the UID of the owner. Whoever removes it releases the object.
const OwnerLabel = applied.OwnerLabel

// OwnerAnnotation is the annotation that says which owner that is: "Kind.group namespace/name".
// [ByRemoteOwner] reads it.
const OwnerAnnotation = applied.OwnerAnnotation

// OwnedSet is the set of objects that one owner wants: the objects of a partition, or of a root
// of a controller. See [Client.ApplyOwned].
type OwnedSet struct {
	// Owner of the objects, of any form, as the server has it: with its UID.
	Owner any
	// SetName tells the sets of one owner apart, and from what others make for the same owner: the
	// name of the program, or of a part of it. At most 26 characters, of those that the value of
	// a label may have.
	SetName string
	// Objects that are wanted, with no fields but those that this program decides about. An
	// object without a namespace gets that of the owner, or the client's default if the owner is
	// cluster-scoped. They are not modified.
	Objects []Object
	// Kinds to prune, beside those of Objects, as kubectl takes them: each kind that has ever
	// been in the set. Objects of other kinds are not found. A kind that is not known is an
	// error; the rest is done.
	Kinds []string
	// Existing, if not nil, are the objects among which to prune, as a snapshot shows them: an
	// empty slice, not nil, if there are none. There may be others among them, and Kinds does not
	// matter then. A controller has them by controller.Owned. A program that watches what it owns
	// saves requests with it. Without it, each kind is searched in a running watch without
	// selectors, or listed by label.
	Existing []Object
	// Plain sets plain owner references, in place of controller references. What controllers get
	// as owned does not include such objects: with controller.Owned as Existing they are never
	// pruned.
	Plain bool
	// Remote says that the owner lives in another cluster than the objects. They get no owner
	// reference: the garbage collector would take the owner for deleted. [OwnerLabel] has its UID
	// in place of that, and [OwnerAnnotation] its kind and name. Nothing deletes the objects when
	// the owner is deleted: use a finalizer. A set without Objects prunes all of them, also while
	// the owner is being deleted. All namespaces are searched for objects to prune. The owner's
	// kind need not be served where the objects are.
	Remote bool
	// Adopt takes in objects that exist without belonging to the set, unless another owner
	// controls them. From then on they are pruned, and deleted with the owner, like others.
	Adopt bool
	// InOrder applies one object after the other, in the order of Objects.
	InOrder bool
	// HoldPruning prunes nothing while some object could not be applied. Without it, what has the
	// name of that object is not pruned: the object is to replace it.
	HoldPruning bool
	// Label is the key of the label, OwnedSetLabel if empty.
	Label string
}

// OwnedResult tells what ApplyOwned has done with each object of an [OwnedSet].
type OwnedResult struct {
	Applied   []ObjectReference // created or changed
	Unchanged []ObjectReference // as they were, whether the server was asked or not
	Pruned    []ObjectReference // deleted (finalizers may keep them for a while)
	Released  []ObjectReference // no longer wanted, and left to their other owners
}

// ApplyOwned applies the objects of a set, and removes those that are no longer wanted.
//
// Each object is sent by server-side apply ([Client.Apply]), with an owner reference and the label
// of the set. What other field managers own in it stays. If they own a field with another value,
// that is a conflict ([IsConflict]) and the object is untouched, unless [ForceOwnership] is given.
//
// Objects are applied side by side, up to ten at a time. Only where the API server refuses an
// object for want of another one does the order count: what stands in Objects after a namespace,
// a CustomResourceDefinition, an APIService, a ServiceAccount, a Role, a ClusterRole, a
// PriorityClass, a RuntimeClass, a LimitRange or a ResourceQuota waits until that one is applied,
// and such an object waits for what stands before it. With InOrder each object waits for the one
// before it. The result and the errors are always in the order of Objects.
//
// Of a Remote set, the label with the owner's UID counts where the owner reference does otherwise.
//
// Objects of others are not touched. An object that exists and does not belong to the set is
// [ErrControlled] if another owner controls it, and [ErrNotOwned] otherwise, unless the set is to
// Adopt it. One that is being deleted is [ErrDeleting]; its name is free later. One that its
// owner may not own is [ErrOwnerScope]. This also holds for objects that others create or replace
// while the call runs: an apply is bound to the UID of the object that was checked. If there was
// none, and the server's history shows that the apply met somebody else's object, it is taken
// back.
//
// If the client knows that nothing would change, it sends nothing, unless [DryRun] asks the
// server. An annotation ([AppliedAnnotation]) tells that exactly this was applied last, by
// whichever process. The managed fields tell that nobody has changed any of it since. The items
// of lists must also be in their order, and every applied value must still be there: a value is
// lost if somebody writes to the object while its kind's schema lacks the field, and is another
// one if somebody has applied that under the same field manager. All are restored, unless the
// client watches metadata only and so cannot see them. What somebody adds under the same field
// manager to a part that is owned as a whole passes for a default of the server, but for a
// selector of labels.
//
// A watch of Go types drops the managed fields, but the client reads from them first what its
// field manager has applied, so a restart asks the server for nothing that its watches have told.
// Where they cannot tell that, every change by others since the last apply counts, also one of the
// status: in a watch of some fields ([Keep]) or with a transform, and for a [FieldManager] of the
// call that is not the client's. For what was applied before this client began, it then lists the
// metadata of all objects with the label, if that saves requests. A change by others that the
// watch has not brought yet is repaired by the first call after the watch has brought it. Fields
// that another manager has come to own are a conflict, or taken back with ForceOwnership. What
// others have added beside stays theirs.
//
// An object is pruned if it has the label of the set, names the owner by UID, and is not among
// Objects. The owner's namespace is searched, or all of them if the owner is cluster-scoped. It
// is deleted on the condition that it is the very object and version that was checked ([IfUID],
// [IfResourceVersion]), and checked again if it has changed. Dependents go in the background
// unless [Propagation] says otherwise. An object that has other owners too is released: it loses
// the label and the reference. Nothing is pruned if the wanted objects are not certain: if one of
// Objects is of an unknown kind, has no name, is there twice, or is the owner, that is an error.
//
// What replaces an object is applied before the object is pruned. If an object could not be
// applied, nothing of its name is pruned, of whatever kind and in whatever namespace. With
// HoldPruning nothing at all is pruned then, for objects that replace some of another name. An
// object that was applied in another version, or through another group (an Event), is the same
// object: it is known by its UID, and not pruned.
//
// An error on one object does not stop the rest. The errors are joined (errors.Is and errors.As
// look into them), and each names its object. When ctx ends, the rest is not tried. Another call
// carries on. The options are those of [Client.Apply] and [Client.Delete]; IfUID and
// IfResourceVersion are errors. It may be called concurrently for different owners.
//
// client-go's fake has no server-side apply: there objects are created, or their sections
// replaced as in [Client.Upsert].
//
// See https://kubernetes.io/docs/reference/using-api/server-side-apply/,
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/ and, for the idea of a set
// that is known by a label, KEP-3659 (kubectl's ApplySet). [Client.Create] says what holds for
// every write.
func (c *Client) ApplyOwned(ctx context.Context, set OwnedSet, opts ...WriteOption) (OwnedResult, error) {
	result, err := owned.Apply(ctx, c.writer(), owned.Set(set), c.writeOptions(opts))
	return OwnedResult(result), err
}
