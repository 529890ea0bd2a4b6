package kates

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/kates-go/kates/internal/keyed"
)

// ErrAborted is the error of a run, or a controller, of which calls had their contexts cancelled:
// they had not ended within the shutdown timeout ([WithShutdownTimeout]), or a second signal came
// ([WithSignals]).
var ErrAborted = keyed.ErrAborted

// controllerTimeout is the shutdown timeout of controllers, if no option sets it.
const controllerTimeout = 20 * time.Second

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

// WithSignals shuts a run or a controller down at the first of some signals (none given: SIGINT and
// SIGTERM), as the end of its context does. A second signal cancels the contexts of calls that
// still run, if there is a shutdown timeout. A third one has the effect that it has in a program
// without the option, which ends one whose function ignores its context. By default no signals are
// handled. Several runs of a program may each have the option.
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
