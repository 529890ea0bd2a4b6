package kates

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kates-go/kates/accumulator"
)

// ErrNotOwned: there is an object of that name which is not of this set.
var ErrNotOwned = errors.New("it exists, and is not owned by this set")

// OwnedSetLabel is the label of the objects of an [OwnedSet], unless that names another one. Its value is the name
// of the set and the UID of the owner.
const OwnedSetLabel = "kates.io/owned-set"

// OwnedSet is what one owner wants there to be: the objects of a partition, or of a root of a controller. See
// [Client.ApplyOwned].
type OwnedSet struct {
	// Owner of the objects, of any form, as the server has it: with its UID.
	Owner any
	// Name tells the sets of one owner apart, and from what others make for the same owner: the name of the
	// program, or of a part of it. At most 26 characters, as a label's value has them.
	Name string
	// Objects that are wanted, with nothing in them but the fields that this program decides about. One without a
	// namespace gets that of the owner, or the client's default if the owner is cluster-scoped. They are not
	// modified.
	Objects []Object
	// Kinds to prune, beside those of Objects, as kubectl takes them: each kind that has ever been in the set.
	// Objects of other kinds are not found. One that is not known is an error; the rest is done.
	Kinds []string
	// Existing, if not nil, are the objects among which to prune, as a snapshot shows them (others may be among
	// them; Kinds does not matter then): a slice that is empty, not nil, where there are none. A controller has them by
	// controller.Owned. A program that watches what it owns saves requests thereby: else each
	// kind is looked through in a running watch without selectors, or listed by label.
	Existing []Object
	// Plain owner references, in place of controller references. What controllers are given as owned does not have such objects:
	// with controller.Owned as Existing they would never be pruned.
	Plain bool
	// Adopt takes in objects that exist without belonging to the set, unless another owner controls them. They
	// are pruned, and deleted with the owner, like others from then on.
	Adopt bool
	// HoldPruning prunes nothing while some object could not be applied: what replaces another may be what failed.
	HoldPruning bool
	// Label is the key of the label, OwnedSetLabel if empty.
	Label string
}

// OwnedResult says what has become of an [OwnedSet].
type OwnedResult struct {
	Applied   []ObjectReference // created or changed
	Unchanged []ObjectReference // as they were, whether the server was asked or not
	Pruned    []ObjectReference // deleted (finalizers may keep them for a while)
	Released  []ObjectReference // no longer wanted, and left to their other owners
}

// ApplyOwned makes the objects of a set what they are to be, and removes those that are no longer wanted.
//
// Each object is sent by server-side apply ([Client.Apply]), in the order given, with an owner reference and the
// label of the set. What other field managers own in it stays; where they own a field with another value, it is a
// conflict ([IsConflict]) and untouched, unless [ForceOwnership] is given. An object that exists and does not
// belong to the set is not touched either: it is [ErrControlled] if another owner controls it, else [ErrNotOwned],
// unless the set is to Adopt it. One that is being deleted is [ErrDeleting] (its name is free later on), one that
// its owner may not own [ErrOwnerScope]. That holds as well for one that comes into being, or takes the place of
// another, while this is under way: applying is bound to the UID of the object that was judged, and where there
// was none, what met somebody else's object, by the server's history, is taken back.
//
// Where this client knows that nothing would change, nothing is sent: an annotation ([AppliedAnnotation]) says that the very
// same was applied last, by whichever process, and the managed fields that nobody has changed any of it since; the items of
// lists are to be in their order besides, which a watch of metadata alone does not tell where there are several, and all of it is to
// be there: what was lost, because somebody wrote to the object while its kind's schema did not have a field, is put back, which such a watch does not tell
// either. Through a
// watch that drops the managed fields, as those of Go types do, any change counts that others have made since, the
// status included; of what was applied before this client began, it asks the server by a list of the metadata of all that has the label, if
// that is worth it. What others have changed and the watch has not brought yet is put right by the call that follows when it has.
// What others have changed is not: fields that another manager has come to own are a conflict, or taken back with
// ForceOwnership; what others have added beside is theirs.
//
// Pruned is what has the label of the set, and names the owner by UID, and is not among Objects: in the owner's
// namespace, or in all if the owner is cluster-scoped. It is deleted on the condition that it is the very object
// and version that was judged ([IfUID], [IfResourceVersion]), and judged anew if it has changed; dependents go in
// the background unless [Propagation] says otherwise. An object that has other owners too is released: it loses
// the label and the reference. Objects of others are never touched. Nothing is pruned unless it is known what is
// wanted: if one of Objects is of an unknown kind, has no name, is there twice, or is the owner, that is an error.
//
// An error on one object does not stop the rest. They are joined (errors.Is and errors.As look into them), and
// each names its object. When ctx ends, what is left is not tried. Calling it again carries on. The options are
// those of [Client.Apply] and [Client.Delete]; IfUID and IfResourceVersion are errors. It may be called
// concurrently for different owners.
//
// On client-go's fake, which has no server-side apply, objects are created, or their sections replaced
// ([MergeUpdate]).
//
// See https://kubernetes.io/docs/reference/using-api/server-side-apply/,
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/ and, for the idea of a set that is known by
// a label, KEP-3659 (kubectl's ApplySet). [Client.Create] says what holds for every write.
func (c *Client) ApplyOwned(ctx context.Context, set OwnedSet, opts ...WriteOption) (OwnedResult, error) {
	a := &ownedApply{client: c, set: set, options: c.writeOptions(opts)}
	if err := a.prepare(ctx); err != nil {
		return a.result, fmt.Errorf("apply an owned set: %w", err)
	}
	for i, o := range a.wanted {
		if ctx.Err() != nil {
			a.fail(fmt.Errorf("apply an owned set: %w, with %d of %d objects not tried", ctx.Err(), len(a.wanted)-i, len(a.wanted)))
			return a.result, errors.Join(a.errs...)
		}
		a.fail(a.apply(ctx, o))
	}
	if len(a.errs) == 0 || !set.HoldPruning {
		a.prune(ctx)
	}
	return a.result, errors.Join(a.errs...)
}

// ownedApply is one ApplyOwned.
type ownedApply struct {
	client     *Client
	set        OwnedSet
	options    writeOptions
	owner      *object
	label      string // its key
	value      string // and value
	annotation string // that says what was applied
	wanted     []*wanted
	keys       map[storedKey]bool // of wanted, and of those that may not be
	result     OwnedResult
	errs       []error
}

// storedKey names an object, through whatever version it is served.
type storedKey struct {
	storage string
	accumulator.Key
}

func (o *object) stored() storedKey { return storedKey{o.resource.Storage, o.key()} }

func (a *ownedApply) fail(err error) {
	if err != nil {
		a.errs = append(a.errs, err)
	}
}

// prepare checks the set before anything is sent.
func (a *ownedApply) prepare(ctx context.Context) error {
	if a.options.uid != nil || a.options.version != nil {
		return errors.New("IfUID and IfResourceVersion are about one object")
	}
	if a.options.fieldManager == "" {
		a.options.fieldManager = defaultFieldManager
	}
	var err error
	if a.owner, err = a.client.object(ctx, a.set.Owner); err == nil {
		err = a.owner.named()
	}
	switch {
	case err != nil:
		return fmt.Errorf("the owner: %w", err)
	case a.owner.GetUID() == "" && !a.client.core.fake:
		return fmt.Errorf("the owner %s has no UID: it is to be as the server has it", a.owner)
	case a.owner.GetDeletionTimestamp() != nil:
		return fmt.Errorf("the owner %s: %w", a.owner, ErrDeleting)
	}
	if err := a.setLabel(); err != nil {
		return err
	}
	a.keys = make(map[storedKey]bool, len(a.set.Objects))
	var errs []error
	for i, wanted := range a.set.Objects {
		if err := a.want(ctx, wanted); err != nil {
			errs = append(errs, fmt.Errorf("object %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (a *ownedApply) setLabel() error {
	a.label, a.value = OwnedSetLabel, a.set.Name
	if a.set.Label != "" {
		a.label = a.set.Label
	}
	a.annotation = appliedAnnotation(a.label)
	if uid := string(a.owner.GetUID()); uid != "" { // a fake's has none
		a.value += "." + uid
	}
	problems := validation.IsQualifiedName(a.label)
	if a.set.Name == "" {
		problems = append(problems, "the set has no name")
	}
	if problems = append(problems, validation.IsValidLabelValue(a.value)...); len(problems) > 0 {
		return fmt.Errorf("the set's name %q makes no label %s=%s: %s", a.set.Name, a.label, a.value, strings.Join(problems, "; "))
	}
	return nil
}

// ours reports whether an object has the label of the set, and names its owner, which may own it.
func (a *ownedApply) ours(o Object) bool {
	reachable := a.owner.GetNamespace() == "" || a.owner.GetNamespace() == o.GetNamespace()
	return reachable && o.GetLabels()[a.label] == a.value && HasOwnerReference(a.owner, o)
}

func (a *ownedApply) selector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{a.label: a.value})
}

func referenceOf(r accumulator.Resource, o Object) ObjectReference {
	apiVersion, kind := r.Kind.ToAPIVersionAndKind()
	return corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}
}
