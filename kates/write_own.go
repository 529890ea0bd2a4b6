package kates

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

var getOptions = metav1.GetOptions{}

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
func written(op operation, answer *Unstructured, removed ...string) coherence.Write {
	w := coherence.Write{
		Key: stream.Key{Namespace: answer.GetNamespace(), Name: answer.GetName()},
		UID: answer.GetUID(),
	}
	deleted := answer.GetDeletionTimestamp() != nil
	switch {
	case op == opDelete && !deleted:
	case deleted && !kept(answer, removed...):
		if op == opDelete {
			w.Version = answer.GetResourceVersion()
		}
	default:
		w.Version, w.Object = answer.GetResourceVersion(), answer
	}
	return w
}

// kept reports whether something keeps a terminating object: a finalizer that was not removed, a
// namespace's own finalizer, or a grace period.
func kept(u *Unstructured, removed ...string) bool {
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

// Delete deletes the object that the resource names. The target receives its last state
// where the server answers with it, and is zeroed where it does not.
//
// After Delete snapshots do not show the object, or show it with its deletionTimestamp where
// finalizers or a grace period keep it. What else goes with it (owned objects) comes with the
// watch. See [Client.Create] for what holds for every write, and [IfUID], [IfResourceVersion],
// [Propagation] and [GracePeriod].
func (c *Client) Delete(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.send(ctx, opDelete, resource, target, opts, func(o *object, w writeOptions) (reply, error) {
		return c.delete(ctx, o, w)
	})
}

// delete sends the request and reads the answer.
func (c *Client) delete(ctx context.Context, o *object, w writeOptions) (reply, error) {
	options := w.delete()
	d, err := c.core.server.Delete(ctx, o.address(), options)
	switch {
	case err != nil:
		return reply{}, err
	case d.Object != nil:
		return c.answered(opDelete, d.Object, removedBy(options)...), nil
	}
	a := reply{Outcome: stream.Outcome{Unknown: d.Unknown}}
	a.UID = d.UID
	return a, nil
}

// removedBy are the finalizers that a deletion takes off the object. If none is left after that,
// the server deletes it, and answers with the object as it was before: with them.
func removedBy(o metav1.DeleteOptions) []string {
	if p := o.PropagationPolicy; p != nil && *p == metav1.DeletePropagationBackground {
		return []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	}
	return nil
}

// Observe makes a write that another client made an own write of this one: written
// is the object as the server answered, with its resource version. From then on snapshots show
// it, or something newer.
func (c *Client) Observe(written any) error {
	o, err := c.object(context.Background(), written)
	if err == nil {
		err = o.named()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", opObserve, err)
	}
	if err := c.core.server.checkVersion(o.Unstructured); err != nil {
		return o.failed(opObserve, err)
	}
	begun := c.core.streams.Begin(o.resource, o.key())
	c.commit(context.Background(), begun, o, stream.Outcome{Write: observed(o.Unstructured)})
	return nil
}

var errNoVersion = errors.New("no usable resource version")

// observed is written for an answer that somebody else got.
func observed(u *Unstructured) coherence.Write {
	if u.GetDeletionTimestamp() != nil && !kept(u) {
		return written(opObserve, u)
	}
	return coherence.Write{
		Key: stream.Key{Namespace: u.GetNamespace(), Name: u.GetName()},
		UID: u.GetUID(), Version: u.GetResourceVersion(), Object: u,
	}
}
