package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/kates"
)

// watching is a watch of a fleet, whatever the type of its snapshots. One goroutine follows the
// fleet and signals; the reader takes.
type watching struct {
	fleet   *Fleet
	shape   *shape
	queries []kates.Query
	ctx     context.Context
	end     context.CancelCauseFunc
	running sync.WaitGroup
	news    chan struct{} // something has happened to a part
	changed chan struct{}

	mu      lockorder.Mutex[lockorder.FleetWatch]
	parts   []*part  // one for each cluster of the fleet, by name
	lost    []seated // names without a cluster
	members int      // how often these were read
	known   bool     // all sources had spoken when these were read
	first   bool     // the first snapshot is complete; it never turns back

	shown shown // the reader's
}

func startWatching(ctx context.Context, f *Fleet, s *shape, queries []kates.Query) *watching {
	w := &watching{
		fleet: f, shape: s, queries: queries,
		news: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		shown: newShown(),
	}
	w.ctx, w.end = context.WithCancelCause(ctx)
	w.running.Go(w.run)
	return w
}

// Changed signals that there is something new for Update. It holds one signal at most. A signal
// may turn out to be for nothing, but none is missing. The channel is closed when the watch ends.
func (w *watching) Changed() <-chan struct{} { return w.changed }

// Close ends the watch and waits until none of its goroutines runs any more.
func (w *watching) Close() {
	w.end(kates.ErrClosed)
	w.running.Wait()
}

// Ready is nil once the first snapshot is complete, and from then on always.
func (w *watching) Ready() error {
	w.mu.Lock()
	parts, first := w.parts, w.first
	w.mu.Unlock()
	if first {
		return nil
	}
	errs := []error{w.fleet.Ready()}
	for _, p := range parts {
		if !p.complete() {
			_, why := p.lacks()
			errs = append(errs, fmt.Errorf("cluster %q: %w", p.cluster.name, why))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.New("not complete yet")
}

// Status returns the state of the fleet, with the clusters that a snapshot lacks now, or for which
// it may be outdated, and why: those of [Missing]. It does not wait for any of them.
func (w *watching) Status() Status {
	status := w.fleet.Status()
	parts, _, _ := w.now() // a cluster without a client is in the fleet's status
	why := make(map[string]error, len(parts))
	for _, p := range parts {
		why[p.cluster.name] = p.missing()
	}
	for i, c := range status.Clusters {
		status.Clusters[i].Missing = cmp.Or(textOf(why[c.Name]), noClient(c))
	}
	return status
}

// noClient says why a cluster without a client is missing.
func noClient(c ClusterStatus) string {
	if c.Phase != "" {
		return ""
	}
	return cmp.Or(c.Rotation, errNoClient.Error())
}

// because adds to the error of an end what was incomplete.
func (w *watching) because(err error) error {
	if missing := w.Ready(); missing != nil {
		return fmt.Errorf("%w (%w)", err, missing)
	}
	return err
}

// run follows the fleet, and signals at most once per interval.
func (w *watching) run() {
	defer close(w.changed)
	members, stop := w.fleet.Listen()
	defer stop()
	defer w.endParts()
	look := time.NewTicker(w.fleet.options.Probe) // for what signals nothing: watches that lag
	defer look.Stop()
	pace := newPace(w.fleet.options.Interval)
	defer pace.timer.Stop()
	lagging := ""
	for {
		select {
		case <-members:
			w.follow()
			pace.want()
		case <-w.news:
			pace.want()
		case <-look.C:
			if now := w.lagging(); now != lagging {
				lagging = now
				pace.want()
			}
		case <-pace.timer.C:
			if next, complete := w.begin(time.Now()); complete {
				pace.signalled()
				w.signal()
			} else {
				pace.at(next)
			}
		case <-w.fleet.ctx.Done():
			w.end(kates.ErrClosed)
			return
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *watching) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *watching) poke() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// follow makes the parts those of the fleet's clusters.
func (w *watching) follow() {
	seated, known := w.fleet.seated()
	w.mu.Lock()
	w.known = known
	former := make(map[*Cluster]*part)
	for _, p := range w.parts {
		former[p.cluster] = p
	}
	w.parts, w.lost = nil, nil
	w.members++
	for _, s := range seated {
		if s.cluster == nil {
			w.lost = append(w.lost, s)
			continue
		}
		p := former[s.cluster]
		if p == nil {
			p = w.newPart(s.cluster)
		}
		delete(former, s.cluster)
		w.parts = append(w.parts, p)
		up := s.cluster.Health().Phase == Up
		if up && !p.up {
			p.answers()
		}
		p.up = up
	}
	w.mu.Unlock()
	for _, p := range former {
		p.end()
	}
}

func (w *watching) newPart(c *Cluster) *part {
	p := &part{cluster: c, began: time.Now(), log: w.fleet.log, poke: w.poke, retry: make(chan struct{}, 1)}
	ctx, end := context.WithCancel(w.ctx)
	p.end = end
	w.running.Go(func() { p.run(ctx, w.shape.part, w.queries) })
	return p
}

func (w *watching) endParts() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.parts {
		p.end()
	}
}

// now returns the parts, the names without a cluster, and a number that is another one after these
// have changed.
func (w *watching) now() (parts []*part, lost []seated, members int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.parts, w.lost, w.members
}

// begin reports whether the first snapshot is complete. If it is not, next is when that may change
// without an event; zero: never.
func (w *watching) begin(now time.Time) (next time.Time, complete bool) {
	w.mu.Lock()
	parts, lost, known, first := w.parts, w.lost, w.known, w.first
	w.mu.Unlock()
	if first {
		return next, true
	}
	complete = known && !slices.ContainsFunc(lost, func(s seated) bool { return s.err == nil })
	for _, p := range parts {
		phase := p.cluster.Health().Phase
		deadline := p.began.Add(w.fleet.options.Deadline)
		if p.complete() || phase == Unreachable || phase == Stale || !now.Before(deadline) {
			continue
		}
		complete = false
		if next.IsZero() || deadline.Before(next) {
			next = deadline
		}
	}
	if complete {
		w.mu.Lock()
		w.first = true
		w.mu.Unlock()
	}
	return next, complete
}

// lagging looks for watches that lag, and names their clusters: in two equal texts nothing has
// changed.
func (w *watching) lagging() string {
	parts, _, _ := w.now()
	var b strings.Builder
	for _, p := range parts {
		if p.complete() {
			if p.look(w.fleet.options.Deadline); p.lag.Load() != nil {
				fmt.Fprintf(&b, "%q %s\n", p.cluster.name, p.lag.Load().since)
			}
		}
	}
	return b.String()
}

// pace keeps signals apart.
type pace struct {
	interval time.Duration
	last     time.Time
	timer    *time.Timer
	pending  bool
}

func newPace(interval time.Duration) *pace {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &pace{interval: interval, timer: t}
}

// want asks for a signal: at once after a quiet spell, else when the interval is over.
func (p *pace) want() {
	if p.pending {
		return
	}
	p.pending = true
	p.timer.Reset(max(0, time.Until(p.last.Add(p.interval))))
}

func (p *pace) signalled() { p.pending, p.last = false, time.Now() }

// at asks again at a time; zero: when there is news.
func (p *pace) at(t time.Time) {
	p.pending = false
	if !t.IsZero() {
		p.timer.Reset(max(0, time.Until(t)))
	}
}
