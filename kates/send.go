package kates

import (
	"cmp"
	"context"
	"fmt"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/fence"
	"github.com/kates-go/kates/internal/jsonform"
)

// reply is what the server said to a write, and what that tells of the object written.
type reply struct {
	object *Unstructured // for the target; nil if the answer has none
	accumulator.Outcome
	// unrelated: the write did not touch the object that it was addressed to.
	unrelated bool
}

// request is the one request of a write, or several.
type request func(*object, writeOptions) (reply, error)

// write is send for requests that are answered with the object that was written.
func (c *Client) write(ctx context.Context, verb string, resource, target any, opts []WriteOption,
	send func(*object, writeOptions) (*Unstructured, error),
) error {
	return c.send(ctx, verb, resource, target, opts, func(o *object, w writeOptions) (reply, error) {
		if err := c.fitsTarget(target, o.resource.Kind); err != nil {
			return reply{}, err // and not when the write is done
		}
		got, err := send(o, w)
		if err != nil {
			return reply{}, err
		}
		return c.answered(verb, got), nil
	})
}

// answered is an answer that is the object as it was written; for removed see written.
func (c *Client) answered(verb string, got *Unstructured, removed ...string) reply {
	shared := got
	if c.core.fake {
		shared = got.DeepCopy() // a fake may hand out what it keeps
	}
	return reply{object: got, Outcome: accumulator.Outcome{Write: written(verb, shared, removed...)}}
}

// send does what all writes have in common: it reads the caller's value, sends the request, takes
// the answer in as an own write, and fills the target.
func (c *Client) send(ctx context.Context, verb string, resource, target any, opts []WriteOption, r request) error {
	if err := c.checkTarget(target); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	o, err := c.object(ctx, resource)
	if err == nil && verb != "create" {
		err = o.named()
	}
	if err = cmp.Or(err, fence.Check(ctx), ctx.Err()); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	got, err := c.do(ctx, verb, o, c.writeOptions(opts), r)
	if err != nil {
		return err
	}
	return jsonform.Fill(target, got)
}

// do sends a request, if it may be sent under ctx, without any lock held, and takes its answer in as an own write.
func (c *Client) do(ctx context.Context, verb string, o *object, w writeOptions, r request) (*Unstructured, error) {
	w, err := c.fenced(ctx, verb, o, w)
	if err == nil && !c.core.fake && verb != "create" && verb != "upsert" {
		if err = w.possible(); err != nil {
			err = o.conflict(err)
		}
	}
	if err != nil {
		return nil, o.failed(verb, err)
	}
	begun := c.core.streams.Begin(o.resource, o.key())
	a, err := r(o, w)
	switch {
	case err != nil:
		begun.Abandon()
		return nil, o.failed(verb, err)
	case w.dryRun != nil || a.unrelated:
		begun.Abandon()
	default:
		wrote(ctx, o, a.Outcome)
		c.commit(ctx, begun, o, a.Outcome)
	}
	return a.object, nil
}

// commit takes in a write that has succeeded.
func (c *Client) commit(ctx context.Context, begun *accumulator.Write, o *object, out accumulator.Outcome) {
	if out.Key.Name == "" {
		out.Key = o.key()
	}
	if err := begun.Commit(ctx, out); err != nil {
		// The write has succeeded. The watch will bring what could not be asked for.
		c.core.log.Info("own write not settled, the watch will bring it", "object", o.String(), "error", err.Error())
	}
}
