package kates

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/internal/attempts"
	"github.com/kates-go/kates/internal/guard"
)

// A RunOption configures a [Run], a [RunEach], or a controller (package controller, which has some of its own): a [Query], a [WatchOption], a [LeaderElection], a [Sharding], or what [WithBackoff], [AlsoOn],
// [OnError] and [Workers] return.
type RunOption interface{ applyToRun(*runSettings) }

type runSettings struct {
	queries  []Query
	watch    []WatchOption
	backoff  attempts.Backoff
	triggers []func(ctx context.Context, poke func())
	failed   []func(err error, attempt int)
	election *LeaderElection
	sharding *Sharding
	workers  int // 0: not said
	own      []ownOption
	wrong    error
}

// ownOption is one of package controller.
type ownOption struct {
	name  string
	value any
}

// foreign is an error if an option is not one of Run and RunEach.
func (s *runSettings) foreign() error {
	if len(s.own) == 0 {
		return nil
	}
	return fmt.Errorf("%s is an option of package controller", s.own[0].name)
}

func newRunSettings(c *Client, noFunction bool, options []RunOption) (*runSettings, error) {
	s := &runSettings{backoff: attempts.Default}
	for _, o := range options {
		if o == nil {
			return nil, errors.New("an option is nil")
		}
		o.applyToRun(s)
	}
	if noFunction {
		return nil, errors.New("there is no function to call")
	}
	if err := errors.Join(s.wrong, s.backoff.Check()); err != nil {
		return nil, err
	}
	if s.sharding != nil {
		if s.election != nil {
			return nil, errors.New("both a leader and shards: say one")
		}
		config := s.sharding.config(c)
		return s, config.Complete()
	}
	if s.election != nil {
		config := s.election.config(c)
		return s, config.Complete()
	}
	return s, nil
}

// listen starts to listen to the other triggers. What it returns ends that, and waits.
func (s *runSettings) listen(ctx context.Context, poke func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	for _, listen := range s.triggers {
		go func() {
			listen(ctx, poke)
			done <- struct{}{}
		}()
	}
	return func() {
		cancel()
		for range s.triggers {
			<-done
		}
	}
}

type runOption func(*runSettings)

func (o runOption) applyToRun(s *runSettings) { o(s) }

func (q Query) applyToRun(s *runSettings) { s.queries = append(s.queries, q) }

// WithBackoff sets how long [Run] waits after an error of its function: first after one, then twice as long for each further
// one in a row, up to most. Default: from 100 ms to 1 minute.
func WithBackoff(first, most time.Duration) RunOption {
	return runOption(func(s *runSettings) { s.backoff = attempts.Backoff{First: first, Most: most} })
}

// Workers sets for how many keys [RunEach] calls its function at the same time. Default: 1.
func Workers(n int) RunOption {
	return runOption(func(s *runSettings) {
		if s.workers = n; n < 1 {
			s.wrong = fmt.Errorf("the number of workers is %d: there must be one at least", n)
		}
	})
}

// AlsoOn makes [Run] call its function for each value that comes from a channel, too: from a timer, or another system. It is called
// with the current snapshot, though nothing may have changed; values that come while it runs, or waits for its backoff, are one.
// No sender waits for the function. A channel that is closed is listened to no longer; that
// is no value. Until the first snapshot is complete, and while another leads, nothing is called. The option may be
// given several times.
func AlsoOn[T any](channel <-chan T) RunOption {
	return runOption(func(s *runSettings) {
		s.triggers = append(s.triggers, func(ctx context.Context, poke func()) {
			for {
				select {
				case _, open := <-channel:
					if !open {
						return
					}
					poke()
				case <-ctx.Done():
					return
				}
			}
		})
	})
}

// OnError makes [Run] tell a function of each error of its own, and how many there have been in a row, this one included. It is
// called by the goroutine of Run, before the wait. An error that the function returns when its context has ended is none of them. The
// option may be given several times.
func OnError(f func(err error, attempt int)) RunOption {
	return runOption(func(s *runSettings) {
		if f == nil {
			s.wrong = errors.New("OnError(nil)")
		}
		s.failed = append(s.failed, f)
	})
}

// Permanent marks an error of a function given to [Run] as one that another try will not mend: it ends Run, which returns err. Wrapped in
// other errors it does so too, and Run returns these. In a controller it ends nothing: the key waits for a change. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &attempts.Permanent{Err: err}
}

// PanicError is a panic of a user's function.
type PanicError struct {
	Value any    // of the panic
	Stack string // of the goroutine, as runtime/debug.Stack gives it
}

// Error says what the panic was, and where.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

func newPanicError(p *guard.Panic) error {
	return &PanicError{Value: p.Value, Stack: string(p.Stack)}
}
