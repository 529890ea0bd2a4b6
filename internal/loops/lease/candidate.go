package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/loops/fence"
)

// state is where a candidate is on its way:
//
//	standing ─▶ leading ─▶ lost
//	    └──────────┴─────▶ resigned
type state int

const (
	standing state = iota
	leading
	lost     // it led, and did not resign
	resigned // of its own accord
)

// Candidate stands for a Lease. It has one goroutine, which ends when the candidate resigns or
// has lost, and one more for its teller, which ends when it resigns. All methods are safe for
// concurrent use.
type Candidate struct {
	config   Config
	lock     *lock
	cancel   context.CancelFunc
	finished chan struct{} // closed at the end of the goroutine
	elected  chan struct{}
	lost     chan struct{}
	teller   *teller

	mu       lockorder.Mutex[lockorder.Candidate]
	state    state
	err      error       // why it lost
	sent     time.Time   // when the last successful renewal was sent
	giveBack func()      // the identity; nil when Resign was called
	seen     *record     // the Lease as it was read or written last, nil before that
	expiry   *time.Timer // ends the leadership when that renewal has expired
}

// Stand makes a candidate that stands until [Candidate.Resign]. The candidate uses the values of
// the context and ignores its end: work that ends with the context needs the lease to the end.
func Stand(ctx context.Context, config Config) (*Candidate, error) {
	if err := config.Complete(); err != nil {
		return nil, err
	}
	giveBack, err := config.TakeIdentity(config.Name)
	if err != nil {
		return nil, err
	}
	c := &Candidate{
		config: config, finished: make(chan struct{}),
		elected: make(chan struct{}), lost: make(chan struct{}),
	}
	c.giveBack = giveBack
	c.lock = newLock(config, c)
	c.teller = newTeller(config.Changed, c.Status, config.Logger)
	config.Report.Show(c.Status)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go func() {
		defer close(c.finished)
		campaign := &campaign{config: config, lock: c.lock}
		campaign.run(life)
		c.lose(fmt.Errorf("it could not be renewed within %s: %w", config.RenewDeadline, c.lock.lastError()))
	}()
	return c, nil
}

// Elected is closed when the candidate leads.
func (c *Candidate) Elected() <-chan struct{} { return c.elected }

// Lost is closed when a leader has lost the lease without resigning. It does not stand again.
func (c *Candidate) Lost() <-chan struct{} { return c.lost }

// Err says why a candidate has lost.
func (c *Candidate) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Resign ends the candidature and waits for its goroutine. It then releases the lease, if that is
// configured and the candidate leads. It takes no longer than the renew deadline. The work that
// the lease protects must have ended before.
func (c *Candidate) Resign() {
	c.mu.Lock()
	giveBack := c.giveBack
	c.giveBack = nil
	release := c.config.Release && c.state != lost && c.state != resigned
	if c.state != lost {
		c.state = resigned
	}
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.mu.Unlock()
	c.cancel()
	<-c.finished
	if release {
		c.lock.release()
	}
	if giveBack != nil {
		c.teller.close()
		giveBack()
	}
}

// Status is what the candidate knows of the lease now.
func (c *Candidate) Status() Status {
	s := Status{Lease: c.lock.name(), Identity: c.config.Identity}
	c.mu.Lock()
	if c.seen != nil {
		s.Reached, s.Holder, s.Since = true, c.seen.holder, c.seen.acquired
	}
	s.Holds = c.state == leading && fence.Since(c.sent) < c.config.LeaseDuration
	s.Held, s.Err = c.hasLed(), c.err
	c.mu.Unlock()
	if s.Err == nil {
		s.Err = c.lock.trouble()
	}
	return s
}

// hasLed reports whether the candidate leads, or has led.
func (c *Candidate) hasLed() bool {
	select {
	case <-c.elected:
		return true
	default:
		return false
	}
}

// sees notes the Lease as it was read, or released.
func (c *Candidate) sees(r record) {
	c.mu.Lock()
	c.seen = &r
	c.mu.Unlock()
	c.config.Report.Reached()
	c.teller.changed()
}

// renewed notes that a request which was sent at that time has acquired or renewed the lease.
func (c *Candidate) renewed(sent time.Time, r record) {
	c.config.Report.Reached()
	if c.extends(sent, r) {
		c.config.Logger.Info("leading", "lease", c.lock.name(), "identity", c.config.Identity)
	}
	c.teller.changed()
}

// extends notes until when the candidate leads. It reports whether that is news.
func (c *Candidate) extends(sent time.Time, r record) (leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = &r
	if c.state != standing && c.state != leading {
		return false
	}
	c.sent = sent
	left := c.config.LeaseDuration - fence.Since(sent)
	if c.state == leading {
		c.expiry.Reset(left)
		return false
	}
	c.state = leading
	c.expiry = time.AfterFunc(left, func() { c.lose(c.expired()) })
	close(c.elected)
	return true
}

// lose ends the leadership of a candidate that leads.
func (c *Candidate) lose(why error) {
	c.mu.Lock()
	if c.state != leading {
		c.mu.Unlock()
		return
	}
	c.state = lost
	c.err = fmt.Errorf("lease %s: %w", c.lock.name(), why)
	c.expiry.Stop()
	close(c.lost)
	c.mu.Unlock()
	c.teller.changed()
	c.cancel()
	c.config.Logger.Info("leading no more", "lease", c.lock.name(), "identity", c.config.Identity, "err", why)
}

// Held is nil as long as the candidate holds the lease by the clocks. It does not rely on timers
// and goroutines: a process that was stopped may ask before any of them has run. Otherwise the
// error is an [ErrLost], and a leader has lost from then on.
func (c *Candidate) Held() error {
	c.mu.Lock()
	state, sent, err := c.state, c.sent, c.err
	c.mu.Unlock()
	switch {
	case state == lost:
	case state == standing:
		err = fmt.Errorf("lease %s: it was never held", c.lock.name())
	case state == resigned:
		err = fmt.Errorf("lease %s: it was given up", c.lock.name())
	case fence.Since(sent) < c.config.LeaseDuration:
		return nil
	default:
		c.lose(c.expired())
		err = fmt.Errorf("lease %s: %w", c.lock.name(), c.expired())
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

func (c *Candidate) expired() error {
	return fmt.Errorf("it has not been renewed for %s", c.config.LeaseDuration)
}

// leads reports whether the candidate leads.
func (c *Candidate) leads() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == leading
}

// errUnknown is where no request has failed: there was no time for one.
var errUnknown = errors.New("no request has failed meanwhile")
