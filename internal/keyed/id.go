package keyed

import (
	"context"

	"github.com/go-logr/logr"
)

// called is what the context of a call has.
type called struct {
	id  string
	log logr.Logger
}

type calledKey struct{}

// withCall returns the context of a call. Whoever asks it for a logger, as klog.FromContext does,
// gets the call's.
func withCall(ctx context.Context, id string, log logr.Logger) context.Context {
	return logr.NewContext(context.WithValue(ctx, calledKey{}, called{id, log}), log)
}

// CallID is that of the call whose context this is, or was made of; empty if there is none.
func CallID(ctx context.Context) string {
	c, _ := ctx.Value(calledKey{}).(called)
	return c.id
}

// LogOf is the logger of the call whose context this is, with the call's ID, or otherwise the one
// that is given.
func LogOf(ctx context.Context, otherwise logr.Logger) logr.Logger {
	if c, ok := ctx.Value(calledKey{}).(called); ok {
		return c.log
	}
	return otherwise
}
