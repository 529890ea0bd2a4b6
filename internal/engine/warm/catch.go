package warm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// catchPause is the pause before another watch, after one that has brought nothing.
const catchPause = 200 * time.Millisecond

// finish brings what was read up to the server's newest version (W1), and compares it with what
// the server has said (W3). It returns the version that has been reached.
func (w *start) finish(ctx context.Context, p *present) (rv string, err error) {
	if p.now.Whole {
		return w.takeWhole(p)
	}
	c := &catching{start: w, present: p, at: w.head.Position}
	if err := c.up(ctx); err != nil {
		return "", err
	}
	if err := w.verdict(p.answered); err != nil {
		return "", err
	}
	w.next.ComesFrom(&Base{id: w.head.Base, changed: w.changed, witnesses: w.head.Witnesses})
	return c.at, nil
}

// catching reads watches until they have reached the present.
type catching struct {
	*start
	*present
	at      string // up to which version all is known
	counted bool   // the number of objects at the server's version was compared
}

// reached reports whether that is the present, or a later moment.
func (c *catching) reached() bool { return !coherence.Newer(c.now.RV, c.at) }

// up reads one watch after the other.
func (c *catching) up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.wait())
	defer cancel()
	for !c.reached() {
		if c.watch == nil {
			var err error
			if c.watch, err = c.dial(ctx, c.at); err != nil {
				return c.late(ctx, err)
			}
		}
		before := c.at
		err := c.read(ctx)
		c.stop()
		if err != nil {
			return c.late(ctx, err)
		}
		if c.at == before && !c.reached() {
			source.Sleep(ctx, catchPause)
			c.nudge(ctx)
		}
	}
	return c.count()
}

// wait is how long the watches may take.
func (c *catching) wait() time.Duration { return cmp.Or(c.warmth.Wait, catchMost) }

// nudge asks for a list of one object again. A bookmark is as new as the server's cache, which
// follows etcd only if a list has to be consistent. The first answer may have come from etcd
// itself, as it does after a start of the server. What is wrong with the server, the next watch
// says.
func (c *catching) nudge(ctx context.Context) {
	_, _ = c.Requests.NewestRV(ctx)
}

// late says of an error at the end of the time that the time was over.
func (c *catching) late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return doubtful(fmt.Sprintf("the watch has not reached the present within %s", c.wait()))
	}
	return forgotten(err)
}

// read takes in a watch until it ends, or has reached the present.
func (c *catching) read(ctx context.Context) error {
	for !c.reached() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-c.watch.ResultChan():
			if !open {
				return nil
			}
			if err := c.take(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// take takes in an event. A bookmark may repeat an old version. An event is newer than all before.
func (c *catching) take(raw watch.Event) error {
	e, err := source.Check(raw)
	if err != nil {
		return err
	}
	rv := e.RV
	newer := coherence.Newer(rv, c.at)
	switch {
	case !coherence.Comparable(rv):
		return source.Garbled{Cause: fmt.Errorf("%s event at version %q, which is no version", e.Type, object.Brief(rv))}
	case e.Type == watch.Bookmark && newer:
		c.at = rv
		return nil
	case e.Type == watch.Bookmark:
		return nil
	case !newer:
		return source.Garbled{Cause: fmt.Errorf("%s event at version %s, and the watch was at %s before", e.Type, rv, c.at)}
	}
	if coherence.Newer(rv, c.now.RV) { // everything up to the server's version is there
		if err := c.count(); err != nil {
			return err
		}
	}
	o, ok := e.Object.(object.Object)
	had := ok && c.next.Get(object.KeyOf(o)) != nil
	if _, err := c.next.Apply(e); err != nil {
		return err
	}
	if ok && (had || c.next.Get(object.KeyOf(o)) != nil) { // else it is none of the query's
		c.changed[object.KeyOf(o)] = struct{}{}
	}
	c.at = rv
	return nil
}

// count compares the number of objects, once, at the version at which the server has told it.
func (c *catching) count() error {
	if c.counted || c.now.Objects < 0 {
		return nil
	}
	c.counted = true
	if _, n := c.next.Count(); int64(n) != c.now.Objects {
		return doubtful(fmt.Sprintf("the server has %d objects at version %s, and what is kept comes to %d", c.now.Objects, c.now.RV, n))
	}
	return nil
}
