package kates

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/jsonform"
)

var getOptions = metav1.GetOptions{}

// written reads the server's answer to a write: is the object there now, is it
// terminating, or is it gone? Every write's answer is read here, and only here.
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
func written(verb string, answer *Unstructured, removed ...string) coherence.Write {
	w := coherence.Write{
		Key: accumulator.Key{Namespace: answer.GetNamespace(), Name: answer.GetName()},
		UID: answer.GetUID(),
	}
	deleted := answer.GetDeletionTimestamp() != nil
	switch {
	case verb == "delete" && !deleted:
	case deleted && !kept(answer, removed...):
		if verb == "delete" {
			w.Version = answer.GetResourceVersion()
		}
	default:
		w.Version, w.Object = answer.GetResourceVersion(), answer
	}
	return w
}

// kept reports whether something keeps a terminating object: finalizers other than those that were removed,
// a namespace's own ones, or a grace period.
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
// finalizers or a grace period keep it. What else goes with it (owned objects) comes with the watch.
// See [Client.Create] for what holds for every write, and [IfUID], [IfResourceVersion],
// [Propagation] and [GracePeriod].
func (c *Client) Delete(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.send(ctx, "delete", resource, target, opts, func(o *object, w writeOptions) (reply, error) {
		return c.delete(ctx, o, w)
	})
}

// delete sends the request, by the way that tells most about its outcome.
func (c *Client) delete(ctx context.Context, o *object, w writeOptions) (reply, error) {
	options := w.delete()
	in := c.in(o.resource, o.GetNamespace())
	switch {
	case c.core.rest != nil:
		return c.deleteRaw(ctx, o, options)
	case c.core.fake: // it knows no finalizers: the object is gone
		return reply{}, in.Delete(ctx, o.GetName(), options)
	}
	// A dynamic.Interface does not tell the answer: read before, ask after.
	before, err := in.Get(ctx, o.GetName(), getOptions)
	if err != nil {
		return reply{}, err
	}
	a := reply{Outcome: accumulator.Outcome{Unknown: true}}
	a.UID = before.GetUID()
	return a, in.Delete(ctx, o.GetName(), options)
}

// deleteRaw deletes over REST and reads the body of the answer.
func (c *Client) deleteRaw(ctx context.Context, o *object, options metav1.DeleteOptions) (a reply, err error) {
	body, err := jsonform.Encode(&options)
	if err != nil {
		return a, err
	}
	result := c.core.rest.Delete().AbsPath(o.path()...).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
	if err := result.Error(); err != nil { // Raw's does not have what the server said
		return a, err
	}
	raw, err := result.Raw()
	if err != nil {
		return a, err
	}
	got := &Unstructured{}
	if err := jsonform.Decode(raw, &got.Object); err != nil {
		a.Unknown = true // deleted, but who knows how
		return a, nil
	}
	if got.GetKind() == "Status" && got.GetAPIVersion() == "v1" {
		uid, _, _ := unstructured.NestedString(got.Object, "details", "uid")
		a.UID, a.Unknown = types.UID(uid), uid == ""
		return a, nil
	}
	return c.answered("delete", got, removedBy(options)...), nil
}

// removedBy are the finalizers that a deletion takes off the object. If none is left after that, the server deletes
// it, and answers with the object as it was before: with them.
func removedBy(o metav1.DeleteOptions) []string {
	if p := o.PropagationPolicy; p != nil && *p == metav1.DeletePropagationBackground {
		return []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	}
	return nil
}

// path of the object in the API.
func (o *object) path() []string {
	return append(resourcePath(o.resource, o.GetNamespace()), o.GetName())
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
		return fmt.Errorf("observe: %w", err)
	}
	if !c.core.fake && !coherence.Comparable(o.GetResourceVersion()) {
		return fmt.Errorf("observe %s: %w: %q", o, errNoVersion, o.GetResourceVersion())
	}
	begun := c.core.streams.Begin(o.resource, o.key())
	c.commit(context.Background(), begun, o, accumulator.Outcome{Write: observed(o.Unstructured)})
	return nil
}

var errNoVersion = errors.New("no usable resource version")

// observed is written for an answer that somebody else got.
func observed(u *Unstructured) coherence.Write {
	if u.GetDeletionTimestamp() != nil && !kept(u) {
		return written("observe", u)
	}
	return coherence.Write{
		Key: accumulator.Key{Namespace: u.GetNamespace(), Name: u.GetName()},
		UID: u.GetUID(), Version: u.GetResourceVersion(), Object: u,
	}
}
