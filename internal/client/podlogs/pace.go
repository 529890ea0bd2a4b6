package podlogs

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/kates-go/kates/internal/loops/attempts"
)

// loggedFailures is how many failures in a row are worth a line in the program's log.
const loggedFailures = 3

// adviceMost is the longest pause that a server may ask for, in seconds.
const adviceMost = 5 * 60

// pace is when a log is tried again.
type pace struct {
	attempts.Backoff
	clock  clock.Clock
	log    logr.Logger
	failed int  // tries in a row that brought nothing
	logged bool // that they failed
}

// worked ends a row of failures.
func (p *pace) worked() {
	if p.logged {
		p.log.Info("the log is read again")
	}
	p.failed, p.logged = 0, false
}

// wait waits for the time of the next try, or for the end of ctx. err is why the last one brought
// nothing, nil if there was nothing.
func (p *pace) wait(ctx context.Context, err error) {
	p.failed++
	if err != nil && p.failed >= loggedFailures && !p.logged {
		p.log.Info("cannot read the log, trying again", "err", err)
		p.logged = true
	}
	pause := wait.Jitter(p.After(p.failed), 0.5)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = max(pause, time.Duration(min(seconds, adviceMost))*time.Second)
	}
	timer := p.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
