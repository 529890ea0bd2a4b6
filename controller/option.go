package controller

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/kates-go/kates/internal/seam"
	"github.com/kates-go/kates/kates"
)

// settings are the options that are this package's own.
type settings struct {
	grace   time.Duration
	signals []os.Signal // that shut down; nil: none
}

// setting is what an option of this package does.
type setting func(*settings) error

func newSettings(own []any) (settings, error) {
	s := settings{grace: defaultGrace}
	for _, o := range own {
		if err := o.(setting)(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// ownOption is an option of this package. Given to kates.Run it is an error that has its name.
func ownOption(name string, set setting) kates.RunOption {
	return seam.Option(name, set).(kates.RunOption)
}

const defaultGrace = 20 * time.Second

// GracePeriod sets how long reconciles that run when the controller is shut down may go on before their contexts are cancelled.
// Default: 20 s, which leaves a third of what a pod has by default. Zero cancels them at once.
func GracePeriod(d time.Duration) kates.RunOption {
	return ownOption("GracePeriod", func(s *settings) error {
		if d < 0 {
			return fmt.Errorf("the grace period is %s", d)
		}
		s.grace = d
		return nil
	})
}

// HandleSignals has the first of some signals (none given: SIGINT and SIGTERM) shut the controller down as the end of its context does,
// and a second one cancel the contexts of reconciles that still run: [ErrAborted]. A third one has the effect that it has in a program without the option,
// which ends one whose reconciler does not heed its context. By default no signals are handled. Several controllers of a program may each have it.
func HandleSignals(signals ...os.Signal) kates.RunOption {
	if len(signals) == 0 {
		signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	}
	return ownOption("HandleSignals", func(s *settings) error {
		for _, one := range signals {
			if one == nil {
				return errors.New("HandleSignals: a signal is nil")
			}
		}
		s.signals = signals
		return nil
	})
}
