package kates

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/fence"
)

// Unfenced sends a write without the preconditions that it would have under a lease (see [LeaderElection], Fencing): for what may be
// written over whatever is there. It still is not sent when the lease is over.
func Unfenced() WriteOption { return func(o *writeOptions) { o.unfenced = true } }

// errUnseen is the reason of a conflict.
var errUnseen = errors.New("it has been changed since this work began")

// fenced is what a write needs beside its options to be sent under ctx: where that is bound to a lease, preconditions that whoever has the lease by
// the time the write arrives has broken by writing to the object. The version that they name was known while the lease was held, and when the work
// began, or is the work's own: so it is older than what another has written since, whatever the clocks say.
func (c *Client) fenced(ctx context.Context, verb string, o *object, w writeOptions) (writeOptions, error) {
	if err := fence.Check(ctx); err != nil {
		return w, err
	}
	if !fence.Fenced(ctx) || w.unfenced || w.version != nil || c.core.fake || !preconditioned(verb, o) {
		return w, nil
	}
	uid, version, err := c.seen(ctx, o, w.uid)
	switch {
	case apierrors.IsNotFound(err) && verb == "apply":
		return w, nil // it creates, which nothing can be a precondition of
	case err != nil:
		return w, err
	}
	if !fence.HorizonOf(ctx).Includes(o.resource.Storage, o.stored(), version) {
		return w, o.conflict(errUnseen)
	}
	w.uid, w.version = &uid, &version
	return w, nil
}

// preconditioned reports whether the server takes preconditions with such a write, and it has not its own.
func preconditioned(verb string, o *object) bool {
	switch {
	case verb == "create", verb == "upsert": // one has none, the other reads what it writes to
		return false
	case strings.HasPrefix(verb, "create the "):
		return verb == "create the eviction of"
	case verb == "apply", strings.HasPrefix(verb, "update"):
		return o.GetResourceVersion() == ""
	}
	return true
}

// seen is the object as the client knows it, or else the server.
func (c *Client) seen(ctx context.Context, o *object, wanted *types.UID) (uid types.UID, version string, err error) {
	var found accumulator.Object
	if known, ok := c.core.streams.Lookup(o.resource, o.key(), accumulator.Version); ok && known != nil {
		found = known
	} else if found, err = c.in(o.resource, o.GetNamespace()).Get(ctx, o.GetName(), getOptions); err != nil {
		return "", "", err
	}
	if wanted != nil && found.GetUID() != *wanted {
		return *wanted, found.GetResourceVersion(), nil // the server will say so
	}
	return found.GetUID(), found.GetResourceVersion(), nil
}

// wrote notes what a write has made of its object, for those that the same work makes after it.
func wrote(ctx context.Context, o *object, out accumulator.Outcome) {
	if coherence.Comparable(out.Version) {
		fence.HorizonOf(ctx).Wrote(o.stored(), out.Version)
	}
}

// begin is ctx for work that begins with what the client knows now.
func (c *Client) begin(ctx context.Context) context.Context {
	if !fence.Fenced(ctx) || c.core.fake {
		return ctx
	}
	return fence.WithHorizon(ctx, c.core.streams.Horizon())
}
