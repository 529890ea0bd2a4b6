package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/coherence"
)

var getOptions = metav1.GetOptions{}

// written reads the server's answer to a write: is the object there now, is it
// terminating, or is it gone? Every write's answer is read here, and only here.
//
//   - gone: a DELETE answered by a Status, or by the object without a
//     deletionTimestamp; or any write answered by an object with a deletionTimestamp
//     that nothing keeps any more (no finalizers, no grace).
//   - terminating: it has a deletionTimestamp and something keeps it. It is there.
//   - present: everything else.
//
// A DELETE that ends a terminating object answers with the deletion's version. A
// write that removes the last finalizer answers with the object's old version, so
// that version says nothing, and the deletion's is unknown.
func written(verb string, answer *Unstructured) coherence.Write {
	w := coherence.Write{
		Key: accumulator.Key{Namespace: answer.GetNamespace(), Name: answer.GetName()},
		UID: answer.GetUID(),
	}
	deleted := answer.GetDeletionTimestamp() != nil
	switch {
	case verb == "delete" && !deleted:
	case deleted && !kept(answer):
		if verb == "delete" {
			w.Version = answer.GetResourceVersion()
		}
	default:
		w.Version, w.Object = answer.GetResourceVersion(), answer
	}
	return w
}

// kept reports whether something keeps a terminating object: finalizers, a namespace's own ones, or
// a grace period.
func kept(u *Unstructured) bool {
	if len(u.GetFinalizers()) > 0 {
		return true
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

// commit takes in a write that has succeeded.
func (c *Client) commit(ctx context.Context, begun *accumulator.Write, o *object, w coherence.Write) {
	c.commitOutcome(ctx, begun, o, accumulator.Outcome{Write: w})
}

func (c *Client) commitOutcome(ctx context.Context, begun *accumulator.Write, o *object, out accumulator.Outcome) {
	if out.Key.Name == "" {
		out.Key = o.key()
	}
	if err := begun.Commit(ctx, out); err != nil {
		// The write has succeeded. The watch will bring what could not be asked for.
		c.core.log.Info("own write not settled, the watch will bring it", "object", o.String(), "error", err.Error())
	}
}

// Delete deletes the object that the resource names. The target receives its last state
// where the server answers with it, and is zeroed where it does not.
//
// After Delete snapshots do not show the object, or show it with its deletionTimestamp where
// finalizers or a grace period keep it. What else goes with it (owned objects) comes with the watch.
// See [Client.Create] for what holds for every write, and [IfUID], [IfResourceVersion],
// [Propagation] and [GracePeriod].
func (c *Client) Delete(ctx context.Context, resource, target any, opts ...WriteOption) error {
	if err := c.checkTarget(target); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	o, err := c.object(ctx, resource)
	if err == nil {
		err = cmp.Or(o.named(), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	w := c.writeOptions(opts)
	begun := c.core.streams.Begin(o.resource, o.key())
	answer, out, err := c.delete(ctx, o, w)
	if err != nil {
		begun.Abandon()
		return o.failed("delete", err)
	}
	if w.dryRun != nil {
		begun.Abandon()
	} else {
		c.commitOutcome(ctx, begun, o, out)
	}
	return fill(target, answer)
}

// delete sends the request, by the way that tells most about its outcome.
func (c *Client) delete(ctx context.Context, o *object, w writeOptions) (*Unstructured, accumulator.Outcome, error) {
	options := w.delete()
	in := c.in(o.resource, o.GetNamespace())
	switch {
	case c.core.rest != nil:
		return c.deleteRaw(ctx, o, options)
	case c.core.fake: // it knows no finalizers: the object is gone
		err := in.Delete(ctx, o.GetName(), options)
		return nil, accumulator.Outcome{Write: coherence.Write{Key: o.key()}}, err
	}
	// A dynamic.Interface does not tell the answer: read before, ask after.
	before, err := in.Get(ctx, o.GetName(), getOptions)
	if err != nil {
		return nil, accumulator.Outcome{}, err
	}
	if err := in.Delete(ctx, o.GetName(), options); err != nil {
		return nil, accumulator.Outcome{}, err
	}
	w2 := coherence.Write{Key: o.key(), UID: before.GetUID()}
	return nil, accumulator.Outcome{Write: w2, Unknown: true}, nil
}

// deleteRaw deletes over REST and reads the body of the answer.
func (c *Client) deleteRaw(ctx context.Context, o *object, options metav1.DeleteOptions) (*Unstructured, accumulator.Outcome, error) {
	out := accumulator.Outcome{Write: coherence.Write{Key: o.key()}}
	body, err := encode(&options)
	if err != nil {
		return nil, out, err
	}
	raw, err := c.core.rest.Delete().AbsPath(o.path()...).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Raw()
	if err != nil {
		return nil, out, err
	}
	answer := &Unstructured{}
	if err := decode(raw, &answer.Object); err != nil {
		out.Unknown = true // deleted, but who knows how
		return nil, out, nil
	}
	if answer.GetKind() == "Status" && answer.GetAPIVersion() == "v1" {
		uid, _, _ := unstructured.NestedString(answer.Object, "details", "uid")
		out.UID, out.Unknown = types.UID(uid), uid == ""
		return nil, out, nil
	}
	out.Write = written("delete", answer)
	return answer, out, nil
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
	c.commit(context.Background(), begun, o, observed(o.Unstructured))
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
