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
// gets the call's, without its most verbose lines.
func withCall(ctx context.Context, id string, log logr.Logger) context.Context {
	return logr.NewContext(context.WithValue(ctx, calledKey{}, called{id, log}), bodiless(log))
}

// bodies is the level at which client-go logs the bodies of requests and answers, with all that
// Secrets have in them, to the logger of the request's context.
const bodies = 8

// bodiless returns a logger that is silent at that level, and above.
func bodiless(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(bodilessSink{log.GetSink()})
}

type bodilessSink struct{ logr.LogSink }

func (s bodilessSink) Enabled(level int) bool { return level < bodies && s.LogSink.Enabled(level) }

func (s bodilessSink) WithValues(kv ...any) logr.LogSink {
	return bodilessSink{s.LogSink.WithValues(kv...)}
}

func (s bodilessSink) WithName(name string) logr.LogSink {
	return bodilessSink{s.LogSink.WithName(name)}
}

// WithCallDepth implements [logr.CallDepthLogSink].
func (s bodilessSink) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return bodilessSink{deep.WithCallDepth(depth)}
	}
	return s
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
