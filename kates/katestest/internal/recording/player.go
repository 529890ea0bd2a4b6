package recording

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Fastest is the speed of a replay that goes on as soon as the clients have read what there is.
const Fastest = math.MaxFloat64

// Player is a transport that plays a recording. It has no goroutine: whoever reads waits for the
// position. It is safe for concurrent use.
//
// The position is a time of the recording. At a finite speed it goes on with the clock. At speed 0
// it stays where it is, until Step or To. At speed Fastest it goes to the next moment whenever all
// open watches have been read, and somebody waits in each of them.
type Player struct {
	tape *tape

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when the position jumps, or a watch ends
	over    chan struct{} // closed and replaced when all was played and read
	speed   float64
	at      time.Duration // the position, when it was set
	since   time.Time     // when that was; zero: nobody has asked yet
	open    map[*played]struct{}
}

// NewPlayer makes a player. Its position is that of the first answer in the recording, and stays
// there until the first request.
func NewPlayer(r *Recording, speed float64) *Player {
	t := newTape(r)
	return &Player{
		tape: t, changed: make(chan struct{}), over: make(chan struct{}), speed: speed, at: t.begin, open: map[*played]struct{}{},
	}
}

// end is the last moment.
func (t *tape) end() time.Duration {
	if len(t.moments) == 0 {
		return t.begin
	}
	return t.moments[len(t.moments)-1]
}

// wake wakes everything that waits. Called with mu held.
func (p *Player) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// position is where the replay is. Called with mu held.
func (p *Player) position() time.Duration {
	if p.speed == 0 || p.speed == Fastest || p.since.IsZero() {
		return p.at
	}
	passed := float64(time.Since(p.since)) * p.speed
	if passed >= float64(p.tape.end()-p.at) {
		return max(p.at, p.tape.end())
	}
	return p.at + time.Duration(passed)
}

// due is how long it takes until the position is reached, from now on. It is false if no time
// brings it about. Called with mu held.
func (p *Player) due(at time.Duration) (time.Duration, bool) {
	if p.speed == 0 || p.speed == Fastest || p.since.IsZero() {
		return 0, false
	}
	left := math.Ceil(float64(at-p.at)/p.speed) - float64(time.Since(p.since))
	// A timer that fires a rounding error too early must not be set to nothing again.
	return time.Duration(min(max(left, float64(time.Microsecond)), math.MaxInt64/2)), true
}

// set moves the position. Called with mu held.
func (p *Player) set(at time.Duration) {
	p.at = max(at, p.position())
	if !p.since.IsZero() {
		p.since = time.Now()
	}
	p.wake()
}

// begin starts the clock.
func (p *Player) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = time.Now()
		p.wake()
	}
}

// next is the first moment after a position.
func (t *tape) next(at time.Duration) (time.Duration, bool) {
	n, found := slices.BinarySearch(t.moments, at)
	if found {
		n++
	}
	if n == len(t.moments) {
		return 0, false
	}
	return t.moments[n], true
}

// At returns the position.
func (p *Player) At() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position()
}

// Moments returns when something happens.
func (p *Player) Moments() []time.Duration { return slices.Clone(p.tape.moments) }

// SetSpeed changes the speed from now on.
func (p *Player) SetSpeed(speed float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(0)
	p.speed = speed
}

// Step goes to the next moment, and reports whether there was one.
func (p *Player) Step() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, more := p.tape.next(p.position())
	if more {
		p.set(at)
	}
	return more
}

// To goes to a position, but not back.
func (p *Player) To(at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(at)
}

// idle reports whether all open watches have been read up to the position. Called with mu held.
func (p *Player) idle() bool {
	at := p.position()
	for b := range p.open {
		if !b.waiting || b.ready(at) {
			return false
		}
	}
	return len(p.open) > 0
}

// rest is called when somebody waits, or has left. If nobody is busy, the replay goes on at speed
// Fastest, or is over. Called with mu held.
func (p *Player) rest() {
	if !p.idle() {
		return
	}
	at, more := p.tape.next(p.position())
	switch {
	case !more:
		close(p.over)
		p.over = make(chan struct{})
	case p.speed == Fastest:
		p.set(at)
	}
}

// Wait returns when everything was played, and all open watches have been read.
func (p *Player) Wait(ctx context.Context) error {
	for {
		p.mu.Lock()
		at := p.position()
		_, more := p.tape.next(at)
		over := !more && p.idle()
		until := pause{changed: p.changed, over: p.over}
		until.left, until.timed = p.due(p.tape.end())
		until.timed = until.timed && more
		p.mu.Unlock()
		if over {
			return nil
		}
		if err := until.wait(ctx); err != nil {
			return fmt.Errorf("wait for the end of the replay, which is at %s of %s: %w", at, p.tape.end(), err)
		}
	}
}

// pause is what somebody waits for: a change, the end, or a time.
type pause struct {
	changed, over <-chan struct{}
	left          time.Duration
	timed         bool
}

func (p pause) wait(ctx context.Context) error {
	var timer <-chan time.Time
	if p.timed {
		t := time.NewTimer(p.left)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-p.changed:
	case <-p.over:
	case <-timer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// CloseIdleConnections does nothing: there are no connections. Clients look for it.
func (p *Player) CloseIdleConnections() {}

// RoundTrip implements http.RoundTripper.
func (p *Player) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close() // the contract of RoundTripper demands it
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	p.begin()
	switch what := targetOf(r.Method, r.URL.Path, r.URL.Query(), ""); what.verb {
	case listing, watching:
		return p.objects(r, what.verb == watching)
	case getting, asking, unclear:
		return p.single(r)
	}
	return refuse(r, http.StatusMethodNotAllowed, "MethodNotAllowed",
		"a replay answers lists, watches and gets, and no %s of %s: use another client for writes", r.Method, r.URL.Path)
}
