package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/loops/attempts"
)

// retries are the pauses between attempts to run a source, and between those to connect.
var retries = attempts.Backoff{First: time.Second, Most: time.Minute}

// runSource runs a source, again and again if it fails.
func (f *Fleet) runSource(s *sourceState) {
	for failures := 0; ; {
		began := time.Now()
		err := guard.Named("the source panicked", func() error {
			return s.source.Run(f.ctx, func(all []Member) { f.take(s, all) })
		})
		if f.ctx.Err() != nil {
			return
		}
		if failures++; time.Since(began) > retries.Most { // it has worked for a while
			failures = 1
		}
		if err == nil {
			err = errors.New("it has ended")
		}
		f.mu.Lock()
		s.err = err
		f.signal()
		f.mu.Unlock()
		f.log.WithValues(guard.Attribute(err)...).
			Error(err, "a source of clusters has failed; its clusters stay", "source", s.name)
		if !sleep(f.ctx, retries.After(failures)) {
			return
		}
	}
}

// take takes what a source says, and makes it so.
func (f *Fleet) take(s *sourceState, all []Member) {
	copies := make([]Member, 0, len(all))
	for _, m := range all {
		copies = append(copies, m.copy())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.say(s, copies)
}

// say makes what a source says so. f.mu is held.
func (f *Fleet) say(s *sourceState, all []Member) {
	if f.ctx.Err() != nil {
		return
	}
	first := !s.said
	s.said, s.err, s.members = true, nil, all
	if first {
		f.precede(s)
	}
	wanted, from := f.wanted()
	for name, m := range wanted {
		if seat := f.seats[name]; seat != nil {
			seat.from = from[name]
			seat.want(m)
			continue
		}
		seat := newSeat(f.ctx, m)
		seat.from = from[name]
		f.seats[name] = seat
		f.running.Go(func() { (&attendant{fleet: f, seat: seat}).run() })
	}
	for name, seat := range f.seats {
		if _, ok := wanted[name]; !ok {
			delete(f.seats, name)
			seat.leave()
		}
	}
	f.signal()
}

// precede frees the names that a source says in its first word, and that later sources have. So
// it does not matter which source speaks first when a program starts. f.mu is held.
func (f *Fleet) precede(s *sourceState) {
	for _, m := range s.members {
		if seat := f.seats[m.Name]; seat != nil && slices.Index(f.sources, s) < slices.Index(f.sources, seat.from) {
			seat.from = nil
		}
	}
}

// wanted returns the members of all sources by name, and which source each is from. A source that
// has a name keeps it as long as it says it. f.mu is held.
func (f *Fleet) wanted() (wanted map[string]Member, from map[string]*sourceState) {
	wanted, from = make(map[string]Member), make(map[string]*sourceState)
	for _, s := range f.sources {
		for _, m := range s.members {
			if seat := f.seats[m.Name]; seat != nil && seat.from == s {
				from[m.Name] = s
			}
		}
	}
	for _, s := range f.sources {
		s.unfit = nil
		for _, m := range s.members {
			_, twice := wanted[m.Name]
			if first := from[m.Name]; first == s && twice && m.Err != nil {
				s.unfit = m.Err // the source itself says which one counts
				continue
			} else if first != nil && (first != s || twice) {
				s.unfit = fmt.Errorf("cluster %q is that of %s: the one of %s is left out", m.Name, first.name, s.name)
				continue
			}
			if m.Name == "" {
				s.unfit = errors.New("a cluster has no name, and is left out")
				continue
			}
			from[m.Name], wanted[m.Name] = s, m
		}
	}
	return wanted, from
}

// byCode stands for the program among the sources: [Fleet.Set] says what it has to say.
type byCode struct{}

func (byCode) String() string { return "the program" }

// Run implements [Source]. It is never called.
func (byCode) Run(context.Context, func([]Member)) error { return nil }

// sleep waits, and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
