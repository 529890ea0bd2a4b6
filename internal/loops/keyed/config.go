package keyed

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/lease"
)

// Config says how a function is called.
type Config struct {
	Workers  int // at least 1
	Policy   Policy
	Triggers []Trigger
	Election *lease.Config // nil: every replica works
	Shards   Shards        // nil: all keys are this replica's
	Report   *lease.Report // of the Election, or of the Shards; nil if there is neither
	Shutdown Shutdown
	Calls    *Calls // nil: nobody wants to know of them
	Log      logr.Logger
}

// Standing runs a function that stands for a Lease, if the configuration says one. While it runs
// the report is among those of the client. The error says whether this replica held the Lease.
func (c *Config) Standing(ctx context.Context, run func() error) error {
	if c.Report == nil {
		return run()
	}
	defer c.Report.Begin()()
	err := run()
	if _, final := attempts.Final(err); final {
		return err
	}
	if s := c.Report.Status(); !s.Held && s.Err != nil && errors.Is(ctx.Err(), context.Canceled) {
		c.Log.Info("ended without having held the lease", "lease", s.Lease, "err", s.Err)
	}
	return c.Report.Explain(err)
}

// Unstarted returns the error of a run whose watch could not start: it has not stood for the
// Lease, if the configuration says one.
func (c *Config) Unstarted(err error) error {
	if c.Report == nil {
		return err
	}
	return c.Report.Unstarted(err)
}

// Policy says what happens after errors. It makes the errors that users see, whose types are
// public in package kates.
type Policy struct {
	Backoff attempts.Backoff
	// OnError are told of each error, and of how many there were in a row.
	OnError []func(err error, attempt int)
	// Panicked is the error of a panic.
	Panicked func(*guard.Panic) error
	// OfKey is an error of a key. Its Unwrap returns err.
	OfKey func(key string, err error) error
}

// Trigger calls for the function until ctx ends, though nothing may have changed.
type Trigger func(ctx context.Context, call func())

// Listen starts to listen to the triggers. stop ends that, and waits.
func Listen(ctx context.Context, triggers []Trigger, call func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	for _, listen := range triggers {
		go func() {
			listen(ctx, call)
			done <- struct{}{}
		}()
	}
	return func() {
		cancel()
		for range triggers {
			<-done
		}
	}
}

// Lacking returns the result of a run. Where there never was a snapshot, and the result does not
// say so, it logs what was missing.
func Lacking(log logr.Logger, missing, result error) error {
	if missing != nil && result == nil {
		log.Info("ended without one complete snapshot", "waiting", missing.Error())
	}
	return result
}

// EndedWithout adds to the error of an end what is missing, if the error does not say it.
func EndedWithout(missing, err error) error {
	if missing != nil && !errors.Is(err, missing) {
		return fmt.Errorf("%w (%w)", err, missing)
	}
	return err
}
