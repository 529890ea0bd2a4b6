package testserver

import (
	"errors"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// ownerState is what becomes of an object because of one of its owners.
type ownerState int

const (
	ownerUnknown ownerState = iota // it cannot be found out: the object stays
	ownerThere                     // the object stays
	ownerGone                      // it is deleted, unless another owner is there
	ownerWaits                     // the owner waits for it to be deleted
)

// stateOf looks an owner up. One of a kind that nobody serves is unknown, and so is one in a
// namespace that a cluster-scoped object names.
func (c *collector) stateOf(r metav1.OwnerReference, namespace string) ownerState {
	k := c.s.kinds().OfKind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
	if k == nil || k.Namespaced && namespace == "" {
		return ownerUnknown
	}
	key := store.Key{Resource: k.Storage, Name: r.Name}
	if k.Namespaced {
		key.Namespace = namespace
	}
	o, there := c.s.item(key)
	switch {
	case !there || o.object.GetUID() != r.UID:
		return ownerGone
	case o.object.GetDeletionTimestamp() != nil && slices.Contains(o.object.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return ownerWaits
	}
	return ownerThere
}

// owners deletes an object none of whose owners is there any more. While one is, the references to
// those that are not are removed.
func (c *collector) owners(o item) {
	by := map[ownerState][]types.UID{}
	for _, r := range o.object.GetOwnerReferences() {
		state := c.stateOf(r, o.key.Namespace)
		by[state] = append(by[state], r.UID)
	}
	lost := slices.Concat(by[ownerGone], by[ownerWaits])
	switch {
	case len(lost) == 0 || by[ownerUnknown] != nil:
	case by[ownerThere] != nil:
		c.disown(o, lost...)
	case by[ownerWaits] != nil && len(c.owned[o.object.GetUID()]) > 0:
		if !c.unblock(o) { // else it is due again
			c.s.drop(o, metav1.DeletePropagationForeground)
		}
	default:
		c.s.drop(o, c.policyOf(o))
	}
}

// policyOf is how an object's own dependents are treated: as its finalizers say.
func (c *collector) policyOf(o item) metav1.DeletionPropagation {
	switch f := o.object.GetFinalizers(); {
	case slices.Contains(f, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(f, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// unblock ends a circle of owners that wait for each other: if a dependent of the object waits
// already, the object's owners no longer wait for it. It reports whether that is new.
func (c *collector) unblock(o item) bool {
	for _, key := range c.owned[o.object.GetUID()].sorted() {
		d, there := c.s.item(key)
		if !there || d.object.GetDeletionTimestamp() == nil || !slices.Contains(d.object.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			continue
		}
		return c.s.amend(o, func(o *unstructured.Unstructured) {
			owners, no := o.GetOwnerReferences(), false
			for i := range owners {
				owners[i].BlockOwnerDeletion = &no
			}
			o.SetOwnerReferences(owners)
		})
	}
	return false
}

// orphan takes the owner off its dependents, and lets it go.
func (c *collector) orphan(owner item) {
	uid := owner.object.GetUID()
	for _, key := range c.owned[uid].sorted() {
		if o, there := c.s.item(key); there {
			c.disown(o, uid)
		}
	}
	c.s.amend(owner, func(o *unstructured.Unstructured) { without(o, metav1.FinalizerOrphanDependents) })
}

// disown removes references to owners.
func (c *collector) disown(o item, owners ...types.UID) {
	c.s.amend(o, func(o *unstructured.Unstructured) {
		left := slices.DeleteFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return slices.Contains(owners, r.UID) })
		if len(left) == 0 {
			left = nil
		}
		o.SetOwnerReferences(left)
	})
}

// foreground lets an owner go when none of the dependents is left that it has to wait for. They
// are due as soon as it waits, and it is due when they are gone.
func (c *collector) foreground(owner item) {
	uid := owner.object.GetUID()
	blocks := func(r metav1.OwnerReference) bool {
		return r.UID == uid && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
	}
	for key := range c.owned[uid] {
		if o, there := c.s.item(key); there && slices.ContainsFunc(o.object.GetOwnerReferences(), blocks) {
			return
		}
	}
	c.s.amend(owner, func(o *unstructured.Unstructured) { without(o, metav1.FinalizerDeleteDependents) })
}

func without(o *unstructured.Unstructured, finalizer string) {
	left := slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == finalizer })
	if len(left) == 0 {
		left = nil
	}
	o.SetFinalizers(left)
}

// drop deletes an object as a controller would, unless it has changed: the user may have deleted
// it in another way. It reports whether that has changed something.
func (s *Server) drop(o item, policy metav1.DeletionPropagation) bool {
	uid, rv := o.object.GetUID(), strconv.FormatInt(o.rv, 10)
	q := &request{kind: o.kind, namespace: o.key.Namespace, name: o.key.Name}
	options := metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &rv},
	}
	before := s.store.RV()
	_, _, err := s.remove(q, options, false)
	return err == nil && s.store.RV() != before
}

// amend changes an object as a controller would. It reports whether that has changed something.
func (s *Server) amend(o item, change func(*unstructured.Unstructured)) bool {
	q := &request{kind: o.kind, namespace: o.key.Namespace, name: o.key.Name}
	before := s.store.RV()
	_, err := s.update(q, func(old map[string]any) (map[string]any, error) {
		next := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(old)}
		if next.GetUID() != o.object.GetUID() {
			return nil, apierrors.NewConflict(o.kind.GR(), o.key.Name, errors.New("it is another object"))
		}
		change(next)
		return next.Object, nil
	})
	return err == nil && s.store.RV() != before
}
