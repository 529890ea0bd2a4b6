//go:build lockorder

package lockorder

import "github.com/go-logr/logr"

// Logged returns a logger that no lock may be held across: a log is a user's, and may ask for a
// status.
func Logged(l logr.Logger) logr.Logger {
	if l.GetSink() == nil {
		return l
	}
	return l.WithSink(sink{l.GetSink()})
}

type sink struct{ logr.LogSink }

func (s sink) Info(level int, msg string, kv ...any) {
	CallOut("the logger")
	s.LogSink.Info(level, msg, kv...)
}

func (s sink) Error(err error, msg string, kv ...any) {
	CallOut("the logger")
	s.LogSink.Error(err, msg, kv...)
}

func (s sink) WithValues(kv ...any) logr.LogSink { return sink{s.LogSink.WithValues(kv...)} }

func (s sink) WithName(name string) logr.LogSink { return sink{s.LogSink.WithName(name)} }
