package kates

import (
	"context"
	"errors"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/fence"
)

// Unfenced sends a write without the preconditions that it has under a lease (see
// [LeaderElection], Fencing). It is for writes that may overwrite any version. The write is still
// not sent if the lease is over.
func Unfenced() WriteOption { return func(o *writeOptions) { o.unfenced = true } }

// errUnseen is the reason for a conflict.
var errUnseen = errors.New("it has been changed since this work began")

// fenced returns the options of a write, and with them the preconditions that it needs to be sent
// under ctx. If ctx is bound to a lease, the next holder of the lease breaks them as soon as it
// writes to the object. Their version was known while the lease was held and when the work began,
// or the work wrote it itself. So it is older than all that another holder has written since,
// whatever the clocks say.
func (c *Client) fenced(
	ctx context.Context, op operation, o *object, w writeOptions,
) (writeOptions, error) {
	if err := fence.Check(ctx); err != nil {
		return w, err
	}
	return c.core.server.bind(ctx, op, o, w)
}

// wrote notes the version that a write made, for later writes of the same work.
func wrote(ctx context.Context, o *object, out stream.Outcome) {
	if coherence.Comparable(out.Version) {
		fence.HorizonOf(ctx).Wrote(o.stored(), out.Version)
	}
}

// begin returns the context of work that begins with what the client knows now.
func (c *Client) begin(ctx context.Context) context.Context { return c.core.server.begin(ctx) }
