package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/fence"
	"github.com/kates-go/kates/internal/jsonform"
)

// reply is the server's answer to a write, and what the answer tells about the object.
type reply struct {
	object *Unstructured // for the target; nil if the answer has none
	stream.Outcome
	// wrote is what was sent for a whole status, or a part of it; nil: the answer does not tell
	// whether anything was dropped.
	wrote *Unstructured
	// unrelated says that the write did not change the object that it was addressed to.
	unrelated bool
}

// request is the one request of a write, or several.
type request func(*object, writeOptions) (reply, error)

// write is send for requests whose answer is the object that was written.
func (c *Client) write(ctx context.Context, op operation, resource, target any, opts []WriteOption,
	send func(*object, writeOptions) (*Unstructured, error),
) error {
	return c.send(ctx, op, resource, target, opts, func(o *object, w writeOptions) (reply, error) {
		if err := c.fitsTarget(target, o.resource.Kind); err != nil {
			return reply{}, err // an error must not come after the write
		}
		got, err := send(o, w)
		if err != nil {
			return reply{}, err
		}
		answer := c.answered(op, got)
		if op == opUpdateStatus {
			answer.wrote = o.Unstructured
		}
		return answer, nil
	})
}

// answered reads an answer that is the object as it was written. For removed see written.
func (c *Client) answered(op operation, got *Unstructured, removed ...string) reply {
	write := written(op, c.core.server.own(got), removed...)
	return reply{object: got, Outcome: stream.Outcome{Write: write}}
}

// send does what all writes have in common: it reads the caller's value, sends the request, makes
// the answer an own write, and fills the target.
func (c *Client) send(ctx context.Context, op operation, resource, target any, opts []WriteOption, r request) error {
	if err := c.checkTarget(target); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	o, err := c.object(ctx, resource)
	if err == nil && op != opCreate {
		err = o.named()
	}
	w := c.writeOptions(opts)
	if err = cmp.Or(err, w.wrong, fence.Check(ctx), ctx.Err()); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	var wrote *Unstructured
	got, err := c.do(ctx, op, o, w, func(o *object, w writeOptions) (reply, error) {
		answer, err := r(o, w)
		wrote = answer.wrote
		return answer, c.missing(ctx, op, o, err)
	})
	if err != nil {
		return err
	}
	if err := dropped(op, nil, wrote, got); err != nil {
		return o.failed(op, err)
	}
	return jsonform.Fill(target, got)
}

// missing says of an error that the kind has no such subresource, if that is the reason: the server
// answers "not found", as for an object that is gone.
func (c *Client) missing(ctx context.Context, op operation, o *object, err error) error {
	if op.subresource == "" || op.verb == toCreate || !apierrors.IsNotFound(err) {
		return err
	}
	if now, gone := c.core.get(ctx, o); gone != nil || o.GetUID() != "" && now.GetUID() != o.GetUID() {
		return err
	}
	return fmt.Errorf("its kind has no %s subresource: %w", op.subresource, err)
}

// do sends a request, unless ctx or the lease is over, and makes its answer an own write. It holds
// no lock meanwhile.
func (c *Client) do(ctx context.Context, op operation, o *object, w writeOptions, r request) (*Unstructured, error) {
	err := fence.Check(ctx)
	if err == nil {
		w, err = c.core.server.bind(ctx, op, o, w)
	}
	if err == nil {
		err = c.core.server.possible(op, o, w)
	}
	if err != nil {
		return nil, o.failed(op, err)
	}
	begun := c.core.streams.Begin(o.resource, o.key())
	a, err := r(o, w)
	switch {
	case err != nil:
		begun.Abandon()
		return nil, o.failed(op, err)
	case w.dryRun != nil || a.unrelated:
		begun.Abandon()
	default:
		if coherence.Comparable(a.Version) {
			fence.HorizonOf(ctx).Wrote(o.stored(), a.Version) // for later writes of the same work
		}
		c.commit(ctx, begun, o, a.Outcome)
	}
	return a.object, nil
}

// commit makes a write that has succeeded an own write.
func (c *Client) commit(ctx context.Context, begun *stream.Write, o *object, out stream.Outcome) {
	if out.Key.Name == "" {
		out.Key = o.key()
	}
	if err := begun.Commit(ctx, out); err != nil {
		// The write has succeeded: this is no error of the write.
		c.core.log.Info("own write not settled, the watch will bring it", "object", o.String(), "error", err.Error())
	}
}

// errUnseen is the reason for a conflict.
var errUnseen = errors.New("it has been changed since this work began")

// begin returns the context of work that begins with what the client knows now.
func (c *Client) begin(ctx context.Context) context.Context {
	if !fence.Fenced(ctx) {
		return ctx
	}
	return fence.WithHorizon(ctx, c.core.streams.Horizon())
}

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

// Observe makes a write that another client made an own write of this one: written
// is the object as the server answered, with its resource version. From then on snapshots show
// it, or something newer. ctx bounds the requests that this may need. If ctx has ended already,
// that is the error, and nothing is noted.
func (c *Client) Observe(ctx context.Context, written any) error {
	o, err := c.object(ctx, written)
	if err == nil {
		err = o.named()
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return fmt.Errorf("%s: %w", opObserve, err)
	}
	if err := c.core.server.checkVersion(o.Unstructured); err != nil {
		return o.failed(opObserve, err)
	}
	begun := c.core.streams.Begin(o.resource, o.key())
	c.commit(ctx, begun, o, c.answered(opObserve, o.Unstructured).Outcome)
	return nil
}

var errNoVersion = errors.New("no usable resource version")
