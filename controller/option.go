package controller

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/kates-go/kates/internal/keyed"
	"github.com/kates-go/kates/kates"
)

// settings are the options that are this package's own.
type settings struct {
	grace   time.Duration
	signals []os.Signal // that shut down; nil: none
}

// option is an option of this package. Package kates refuses it by its name where it does not
// apply.
type option struct {
	kates.RunOption // nil, and never called: it makes this a kates.RunOption
	name            string
	set             func(*settings) error
}

var _ keyed.ControllerOption = option{}

// OptionOfController implements [keyed.ControllerOption].
func (o option) OptionOfController() string { return o.name }

// split separates the options of package kates from those of this package, which it evaluates.
func split(options []kates.RunOption) (others []kates.RunOption, s settings, err error) {
	s.grace = 20 * time.Second
	for _, o := range options {
		if o, ok := o.(option); ok {
			err = cmp.Or(err, o.set(&s))
			continue
		}
		others = append(others, o)
	}
	return others, s, err
}

// GracePeriod sets how long reconciles under way may go on when the controller is shut down,
// before their contexts are cancelled. Default: 20 s, which leaves a third of what a pod has by
// default. Zero cancels them at once.
func GracePeriod(d time.Duration) kates.RunOption {
	return option{name: "GracePeriod", set: func(s *settings) error {
		if d < 0 {
			return fmt.Errorf("the grace period is %s", d)
		}
		s.grace = d
		return nil
	}}
}

// HandleSignals shuts the controller down at the first of some signals (none given: SIGINT and
// SIGTERM), as the end of its context does. A second signal cancels the contexts of reconciles
// that still run: [ErrAborted]. A third one has the effect that it has in a program without the
// option, which ends one whose reconciler ignores its context. By default no signals are handled.
// Several controllers of a program may each have the option.
func HandleSignals(signals ...os.Signal) kates.RunOption {
	if len(signals) == 0 {
		signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	}
	return option{name: "HandleSignals", set: func(s *settings) error {
		for _, one := range signals {
			if one == nil {
				return errors.New("HandleSignals: a signal is nil")
			}
		}
		s.signals = signals
		return nil
	}}
}
