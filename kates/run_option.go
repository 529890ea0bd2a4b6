package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/internal/loops/lease"
	"github.com/kates-go/kates/internal/loops/lease/shards"
)

// A RunOption configures a [Run], a [RunEach], or a controller (package controller). A [Query], a
// [WatchOption], a [LeaderElection], a [Sharding] and a [Handle] are such options, and
// [WithBackoff], [WithTriggers], [WithOnError], [WithWorkers], [WithShutdownTimeout],
// [WithSignals] and [WithUnhealthyAfter] return some.
type RunOption interface{ applyToRun(*runSettings) }

type runSettings struct {
	queries  []Query
	watch    []WatchOption
	policy   keyed.Policy
	triggers []keyed.Trigger
	election *LeaderElection
	sharding *Sharding
	division compile.Division // of the keys, with sharding
	handles  []*Handle
	workers  int // 0: no option says it
	refusal

	unhealthyAfter time.Duration // how long a call may take; 0: as long as it likes

	shutdown keyed.Shutdown
	cluster  keyed.OfCluster // of a run over many; else zero
	ofMany   bool            // there is such a run
}

// errNoClient is the error of what needs a client and was given none.
var errNoClient = errors.New("the client is nil")

func newRunSettings(c *Client, noFunction bool, options []RunOption) (*runSettings, error) {
	if c == nil {
		return nil, errNoClient
	}
	s, err := readRunOptions(options)
	if err != nil {
		return nil, err
	}
	if noFunction {
		return nil, errors.New("there is no function to call")
	}
	return s, s.checkLeases(c)
}

// readRunOptions reads options as far as no client is needed.
func readRunOptions(options []RunOption) (*runSettings, error) {
	s := &runSettings{
		policy:   keyed.Policy{Backoff: attempts.Default, Panicked: newPanicError, OfKey: newKeyError},
		shutdown: keyed.Shutdown{Timeout: keyed.AtOnce},
	}
	for _, o := range options {
		if o == nil {
			return nil, errors.New("an option is nil")
		}
		if _, ok := o.(collect.WitnessOption); ok {
			s.watch = append(s.watch, o.(WatchOption))
			continue
		}
		o.applyToRun(s)
	}
	return s, errors.Join(s.wrong, s.policy.Backoff.Check())
}

// checkLeases reports what is wrong with an election or shards.
func (s *runSettings) checkLeases(c *Client) error {
	switch {
	case s.sharding != nil && s.election != nil:
		return errors.New("both a leader and shards: say one")
	case s.sharding != nil:
		config := s.sharding.config(c)
		return config.Complete()
	case s.election != nil:
		config := s.election.config(c)
		return config.Complete()
	}
	return nil
}

// config is that of a loop of that name. Without a client it has no calls.
func (s *runSettings) config(c *Client, name string, log logr.Logger) keyed.Config {
	config := keyed.Config{Workers: max(1, s.workers), Policy: s.policy, Triggers: s.triggers, Shutdown: s.shutdown, Log: log}
	if c != nil {
		config.Calls = c.core.Loops.New(name, config.Workers, c.observers.call)
		config.Calls.Limit = s.unhealthyAfter
	}
	if s.election != nil {
		election := s.election.config(c)
		election.Report = c.core.Leases.Leaders.New(election.Namespace+"/"+election.Name, lease.ErrNeverLed)
		config.Election, config.Report = &election, election.Report
	}
	if s.sharding != nil {
		shard := s.sharding.shard(c)
		shard.Config.By, shard.Whole = string(s.division.Field), s.division.Whole
		shard.Config.Report = c.core.Leases.Shards.New(shard.Config.Namespace+"/"+shard.Config.Group, shards.ErrNever)
		config.Shards, config.Report = shard, shard.Config.Report
	}
	return config
}

// logOf is the log of a run, or a controller.
func (s *runSettings) logOf(c *Client, what, name string) logr.Logger {
	if s.ofMany {
		return s.cluster.Log
	}
	return c.core.Log.WithValues(what, name)
}

// planFleet reads the options of a run over many clusters. Leases are in the home cluster. The
// queries and the watch options are those of each cluster.
func planFleet(run doors.FleetRun, options []RunOption) (*keyed.FleetPlan[RunOption, Query], error) {
	home := run.Home.(*Client)
	s, err := readRunOptions(options)
	switch {
	case err != nil:
	case len(s.handles) > 0:
		err = errors.New("a Handle is of the run of one cluster")
	case s.sharding != nil:
		err = errors.New("Sharding is an option of the run of one cluster; use a LeaderElection")
	case s.election != nil && home == nil:
		err = errors.New("a LeaderElection needs a cluster for its Lease: set Home in the options of the fleet")
	case s.election != nil:
		err = s.checkLeases(home)
	}
	if err != nil {
		return nil, err
	}
	plan := &keyed.FleetPlan[RunOption, Query]{Config: s.config(home, run.Name, run.Log), Queries: s.queries, Watched: len(s.watch) > 0, Keyed: s.workers > 0}
	plan.Calls = callsOfFleet(run, plan.Workers)
	plan.Calls.Limit = s.unhealthyAfter
	plan.OfCluster = func(c keyed.OfCluster) []RunOption {
		return []RunOption{runOption(func(one *runSettings) {
			one.queries, one.watch, one.policy, one.workers, one.unhealthyAfter = s.queries, s.watch, s.policy, s.workers, s.unhealthyAfter
			one.policy.OfKey, one.cluster, one.ofMany = c.OfKey, c, true
			one.shutdown = keyed.Shutdown{Timeout: keyed.AtOnce, Whole: c.Grace} // with all clusters
		})}
	}
	return plan, nil
}

type runOption func(*runSettings)

func (o runOption) applyToRun(s *runSettings) { o(s) }

func (q Query) applyToRun(s *runSettings) { s.queries = append(s.queries, q) }

// WithBackoff sets how long [Run] waits after an error of its function: first after one, then
// twice as long for each further one in a row, up to most. Default: from 100 ms to 1 minute.
func WithBackoff(first, most time.Duration) RunOption {
	return runOption(func(s *runSettings) { s.policy.Backoff = attempts.Backoff{First: first, Most: most} })
}

// WithWorkers sets for how many keys [RunEach] calls its function at the same time. Default: 1.
func WithWorkers(n int) RunOption {
	return runOption(func(s *runSettings) {
		if s.workers = n; n < 1 {
			s.reject(fmt.Errorf("the number of workers is %d: there must be one at least", n))
		}
	})
}

// WithTriggers makes [Run] call its function for each value of a channel, too: of a timer, or
// another system. The function is called with the current snapshot, though nothing may have
// changed. For [RunEach] and controllers a value calls for all keys; to call for one, use Trigger,
// as of a [Handle]. Values that come while it runs, or waits for its backoff, count as one. No
// sender waits for the function. When the channel is closed, Run stops listening to it. Its end is
// no value. Nothing is called before the first snapshot is complete, or while another leads. The
// option may be given several times.
func WithTriggers[T any](channel <-chan T) RunOption {
	return runOption(func(s *runSettings) {
		if channel == nil {
			s.reject(errors.New("WithTriggers(nil): a nil channel has no values"))
		}
		s.triggers = append(s.triggers, func(ctx context.Context, call func()) {
			for {
				select {
				case _, open := <-channel:
					if !open {
						return
					}
					call()
				case <-ctx.Done():
					return
				}
			}
		})
	})
}

// WithOnError makes [Run] call a function with each error of its own, and with how many there have
// been in a row, this one included. The goroutine of Run calls it before the wait. Errors that
// the function returns after its context has ended do not count. The option may be given several
// times.
func WithOnError(f func(err error, attempt int)) RunOption {
	return runOption(func(s *runSettings) {
		if f == nil {
			s.reject(errors.New("WithOnError(nil)"))
		}
		s.policy.OnError = append(s.policy.OnError, f)
	})
}

// Permanent marks an error of a function given to [Run] as one that another try will not mend: it
// ends Run, which returns err. It does so too when it is wrapped in other errors, and then Run
// returns these. In a controller it ends nothing: the key waits for a change. Permanent(nil) is
// nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &attempts.Permanent{Err: err}
}

// Again is what a function given to [Run] or [RunEach] returns to be called again after a time
// (zero or less: at once), though nothing may have changed. It is a success. A call that comes
// earlier, because of a change, takes its place. Reconcilers of package controller have
// RequeueAfter, which is the same.
func Again(after time.Duration) error { return &attempts.Asked{After: max(after, 0)} }

// AgainWithBackoff is what a function given to [Run] or [RunEach], or a reconciler, returns to be
// called again as after an error ([WithBackoff]), though nothing is wrong: what it waits for is
// not there yet. Nothing is logged, and [WithOnError] is not told.
func AgainWithBackoff() error { return &attempts.Asked{Backoff: true} }

// KeyError is an error of one key of a [RunEach] or a controller. [WithOnError] gets it.
type KeyError struct {
	Key string
	Err error
}

// Error names the key.
func (e *KeyError) Error() string { return fmt.Sprintf("key %q: %s", e.Key, e.Err.Error()) }

// Unwrap returns the error.
func (e *KeyError) Unwrap() error { return e.Err }

func newKeyError(key string, err error) error { return &KeyError{Key: key, Err: err} }

// PanicError is a panic of a user's function. [Invalid] objects have it, too, if a function of
// their query panicked (errors.As).
type PanicError struct {
	Value any    // of the panic
	Stack string // of the goroutine, as runtime/debug.Stack gives it

	what string
}

// Error says what the panic was, in one line. Logs have the stack as an attribute, "stack".
func (e *PanicError) Error() string { return fmt.Sprintf("%s: %v", cmp.Or(e.what, "panic"), e.Value) }

func newPanicError(p *guard.Panic) error {
	return &PanicError{Value: p.Value, Stack: string(p.Stack), what: p.What}
}

// withPanic returns an error in which the user finds a [*PanicError], if a function panicked.
func withPanic(err error) error {
	if p := (*guard.Panic)(nil); errors.As(err, &p) {
		return &panicked{plain.Error(err), newPanicError(p)}
	}
	return plain.Error(err)
}

// panicked is an error because of a panic.
type panicked struct {
	error
	public error
}

func (p *panicked) Unwrap() []error { return []error{p.public, p.error} }

// ErrAborted is the error of a run, or a controller, of which calls had their contexts cancelled:
// they had not ended within the shutdown timeout ([WithShutdownTimeout]), or a second signal came
// ([WithSignals]).
var ErrAborted = keyed.ErrAborted

// WithShutdownTimeout sets how long calls under way may go on when a run or a controller is shut
// down, before their contexts are cancelled, which is [ErrAborted]. Zero cancels them at once. The
// watches go on until the calls have returned, and the leader's Lease is kept.
//
// Default for controllers: 20 s, which leaves a third of what a pod has by default. Default for
// [Run] and [RunEach]: the contexts of calls end with that of the run, and that is no error.
func WithShutdownTimeout(d time.Duration) RunOption {
	return runOption(func(s *runSettings) {
		if d < 0 {
			s.reject(fmt.Errorf("WithShutdownTimeout is %s: it cannot be negative; 0 cancels at once", d))
		}
		s.shutdown.Timeout = d
	})
}

// WithSignals shuts a run or a controller down at the first of some signals (none given: SIGINT
// and SIGTERM), as the end of its context does. A second signal cancels the contexts of calls that
// still run, if there is a shutdown timeout. A third one has the effect that it has in a program
// without the option, which ends one whose function ignores its context. By default no signals are
// handled. Several runs of a program may each have the option. In a bubble of [testing/synctest],
// where no signal can come, the run is an error: a test ends the context.
func WithSignals(signals ...os.Signal) RunOption {
	if len(signals) == 0 {
		signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	}
	return runOption(func(s *runSettings) {
		for _, one := range signals {
			if one == nil {
				s.reject(errors.New("WithSignals: a signal is nil"))
			}
		}
		s.shutdown.Signals = signals
	})
}
