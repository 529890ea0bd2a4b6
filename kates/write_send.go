package kates

import (
	"cmp"
	"context"
	"fmt"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/fence"
	"github.com/kates-go/kates/internal/jsonform"
)

// reply is the server's answer to a write, and what the answer tells about the object.
type reply struct {
	object *Unstructured // for the target; nil if the answer has none
	stream.Outcome
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
		return c.answered(op, got), nil
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
	if err = cmp.Or(err, fence.Check(ctx), ctx.Err()); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	got, err := c.do(ctx, op, o, c.writeOptions(opts), r)
	if err != nil {
		return err
	}
	return jsonform.Fill(target, got)
}

// do sends a request, unless ctx or the lease is over, and makes its answer an own write. It holds
// no lock meanwhile.
func (c *Client) do(ctx context.Context, op operation, o *object, w writeOptions, r request) (*Unstructured, error) {
	w, err := c.fenced(ctx, op, o, w)
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
		wrote(ctx, o, a.Outcome)
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
