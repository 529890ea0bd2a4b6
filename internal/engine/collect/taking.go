package collect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
	"github.com/kates-go/kates/internal/engine/stream"
)

// Enter waits for the reader's turn, until ctx or the collector ends.
func (c *Collector[S]) Enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.turn <- struct{}{}:
	case <-c.finished: // whoever has the turn may not leave it
		return c.overBecause(c.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
	c.reading.Begin()
	err := c.Err()
	if err == nil {
		return nil
	}
	c.Leave()
	return c.overBecause(err)
}

// overBecause returns the error of a collector that has ended. It says what was incomplete.
func (c *Collector[S]) overBecause(err error) error {
	if why := c.Ready(); why != nil {
		return fmt.Errorf("the watch has ended: %w (%w)", err, why)
	}
	return fmt.Errorf("the watch has ended: %w", err)
}

// Leave ends the reader's turn.
func (c *Collector[S]) Leave() {
	c.reading.End()
	<-c.turn
}

// Doing notes which function of the user runs in the reader's turn; nil: none any more.
func (c *Collector[S]) Doing(what *string) { c.reading.Do(what) }

// Take takes the changes of every query. It returns false if there can be no first snapshot yet: a
// stream had its list, but has given it up. It belongs to the reader's turn.
func (c *Collector[S]) Take(fields []*Field[S]) bool {
	defer c.links.Know()
	c.host.Streams.Reach(stream.AtComplete)
	for _, f := range ranked(fields) {
		readable := c.readable(f)
		switch {
		case readable && f.Taken.OK(): // Advance has taken the first batch of a query that is added
			f.Taken = query.TakeMore(f.Query, f.Taken)
		case readable:
			f.Taken = f.Query.Take(f.Present)
		}
		// the phase is that after Take, which removes streams that are no longer wanted
		if f.Taken.OK() || c.Delivered() || readable && f.phase() == query.Empty || !f.counted.Load() {
			continue
		}
		for _, other := range fields {
			if other.Taken.OK() || other == f && readable {
				other.Query.Untake()
				other.Taken = query.Batch{}
			}
		}
		c.host.Past.Forget()
		return false
	}
	c.host.Streams.Reach(stream.AtTaken)
	return true
}

// ranked orders the fields: those whose objects name others come before the named ones. The order
// is stable.
func ranked[S any](all []*Field[S]) []*Field[S] {
	rank := func(f *Field[S]) int { return refs.Rank(f.Query) }
	if !slices.ContainsFunc(all, func(f *Field[S]) bool { return rank(f) > 0 }) {
		return all
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b *Field[S]) int { return rank(a) - rank(b) })
}

// following reads the names in objects as they come, until ctx ends. Otherwise a program that
// waits for a signal would start the lists of the named objects only after it.
func (c *Collector[S]) following(ctx context.Context) {
	for {
		var late <-chan time.Time
		if patience := c.followAll(ctx); patience > 0 {
			late = time.After(patience)
		}
		select {
		case <-ctx.Done():
			return
		case <-c.follow:
		case <-late:
		}
	}
}

// followAll reads the names in the objects of every query. It returns how long objects may still
// wait for those that they name, 0 if none does.
func (c *Collector[S]) followAll(ctx context.Context) (patience time.Duration) {
	if c.Enter(ctx) != nil {
		return 0
	}
	for _, f := range ranked(c.Fields()) {
		q, names := f.Query.(refs.Naming)
		if !names {
			continue
		}
		if !c.readable(f) {
			continue
		}
		if left := q.Follow(f.Present, c.next(f)); left > 0 && (patience == 0 || left < patience) {
			patience = left
		}
	}
	c.links.Know()
	c.Leave()
	c.host.Wake()
	return patience
}
