package kates

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/kates-go/kates/internal/keyed"
)

// defaultShutdown is how a controller shuts down that no option tells otherwise.
var defaultShutdown = keyed.Shutdown{Timeout: 20 * time.Second}

// WithShutdownTimeout sets how long calls under way may go on when a controller is shut down,
// before their contexts are cancelled. Default: 20 s, which leaves a third of what a pod has by
// default. Zero cancels them at once. It is an option of controllers; [Run] and [RunEach] refuse
// it, since the contexts of their calls end at once.
func WithShutdownTimeout(d time.Duration) RunOption {
	return runOption(func(s *runSettings) {
		s.controllers("WithShutdownTimeout")
		if d < 0 {
			s.reject(fmt.Errorf("WithShutdownTimeout is %s: it cannot be negative; 0 cancels at once", d))
		}
		s.shutdown.Timeout = d
	})
}

// WithSignals shuts a controller down at the first of some signals (none given: SIGINT and
// SIGTERM), as the end of its context does. A second signal cancels the contexts of calls that
// still run. A third one has the effect that it has in a program without the option, which ends
// one whose reconciler ignores its context. By default no signals are handled. Several controllers
// of a program may each have the option. It is an option of controllers; [Run] and [RunEach]
// refuse it: os/signal's NotifyContext makes a context for them.
func WithSignals(signals ...os.Signal) RunOption {
	if len(signals) == 0 {
		signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	}
	return runOption(func(s *runSettings) {
		s.controllers("WithSignals")
		for _, one := range signals {
			if one == nil {
				s.reject(errors.New("WithSignals: a signal is nil"))
			}
		}
		s.shutdown.Signals = signals
	})
}

// controllers notes an option that Run and RunEach refuse.
func (s *runSettings) controllers(option string) {
	if s.controllerOnly == "" {
		s.controllerOnly = option
	}
}

// noController returns an error for an option that only controllers have.
func (s *runSettings) noController() error {
	if s.controllerOnly == "" {
		return nil
	}
	return fmt.Errorf("%s is an option of controllers", s.controllerOnly)
}
