package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/suite/sim"
)

// next takes a turn, if there is one, and compares it with the server.
func (m *partModel) next() (bool, error) {
	synctest.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
	defer cancel()
	t, err := m.p.Next(ctx)
	m.taken = m.wanted()
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m.held = append(m.held, t)
	return true, m.check(t)
}

func (m *partModel) check(t *Turn) error {
	k, wanted := m.truth(t.Key), m.wanted()
	want, exists := wanted[t.Key]
	switch {
	case k.held:
		return fmt.Errorf("%s is held by two", t.Key)
	case t.Attempt != k.fails+1:
		return fmt.Errorf("%s: attempt %d after %d failures", t.Key, t.Attempt, k.fails)
	case k.fails > 0 && time.Now().Before(k.rests):
		return fmt.Errorf("%s comes %s before its backoff is over", t.Key, time.Until(k.rests))
	case t.Gone && exists, !t.Gone && !exists && !m.broken():
		return fmt.Errorf("%s: gone is %v, and the server has %v", t.Key, t.Gone, want)
	}
	if !exists && !t.Gone {
		want = wanted["shared"] // a broken object keeps its key
	}
	got := map[string]string{}
	snap := t.Snapshot.(*three)
	for i, name := range modelFields {
		for _, u := range snap.field(i) {
			version := string(u.GetUID()) + "@" + u.GetResourceVersion()
			got[name+u.GetName()] = version
			if id := name + u.GetName() + version; m.shown[id] == nil {
				m.shown[id] = u
			} else if m.shown[id] != stream.Object(u) {
				return fmt.Errorf("G10: %s: another pointer for %s", t.Key, id)
			}
		}
		if snap.field(i) == nil || len(snap.field(i)) != cap(snap.field(i)) {
			return fmt.Errorf("G10: %s: a slice of length %d, capacity %d", t.Key, len(snap.field(i)), cap(snap.field(i)))
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("%s has %v, the server %v", t.Key, got, want)
	}
	if err := k.apply(t); err != nil {
		return fmt.Errorf("G7: %s: %w", t.Key, err)
	}
	if !maps.Equal(k.replay, got) {
		return fmt.Errorf("G7: %s: the differences give %v, the snapshot has %v", t.Key, k.replay, got)
	}
	switch {
	case k.fails > 0 || t.Gone || m.script.Bugs:
	case maps.Equal(k.last, got):
		return fmt.Errorf("%s was handed out though nothing has changed: %v", t.Key, got)
	case m.script.Quiet && m.script.Slow:
		return fmt.Errorf("%s was handed out, and all there is are quiet writes: %v", t.Key, got)
	case !m.script.Quiet && !k.misses(got):
		return fmt.Errorf("%s was handed out for nothing: %v", t.Key, got)
	}
	clear(k.must)
	k.last, k.held = got, true
	return nil
}

// misses reports whether the last turn differed from now where it matters.
func (k *partTruth) misses(now map[string]string) bool {
	for id := range k.must {
		if now[id] != k.last[id] {
			return true
		}
	}
	return false
}

// apply applies the differences to the content of the last turn.
func (k *partTruth) apply(t *Turn) error {
	for _, d := range t.Differences {
		o := d.New
		if o == nil {
			o = d.Old
		}
		id := d.Query + o.GetName()
		if old := k.replay[id]; (d.Old == nil) != (old == "") || d.Old != nil && old != string(d.Old.GetUID())+"@"+d.Old.GetResourceVersion() {
			return fmt.Errorf("a difference of %s from %s to %s, which was %q", id, sim.Describe(d.Old), sim.Describe(d.New), old)
		}
		if delete(k.replay, id); d.New != nil {
			k.replay[id] = string(d.New.GetUID()) + "@" + d.New.GetResourceVersion()
		}
	}
	return nil
}

func (m *partModel) done(i int, failed bool) {
	t := m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	m.over = append(m.over, t)
	k := m.truth(t.Key)
	k.held = false
	if failed {
		k.fails++
		k.rests = time.Now().Add(partBackoff.After(k.fails))
		t.Done(errors.New("oops"))
		return
	}
	k.fails = 0
	t.Done(nil)
}

// settle takes and ends all turns until there is none, and looks for lost turns and memory that
// is left.
func (m *partModel) settle() error {
	for more := true; more; {
		for len(m.held) > 0 {
			m.done(0, false)
		}
		sim.After(time.Minute)
		for {
			got, err := m.next()
			if err != nil {
				return fmt.Errorf("at rest: %w", err)
			}
			if more = len(m.held) > 0; !got {
				break
			}
		}
	}
	wanted := m.wanted()
	for key, k := range m.keys {
		if key != "shared" && k.misses(wanted[key]) && !m.script.Bugs {
			return fmt.Errorf("%s was lost: its last turn had %v, the server has %v", key, k.last, wanted[key])
		}
		if wanted[key] == nil && len(k.last) > 0 && !m.broken() {
			return fmt.Errorf("%s was not handed out empty, but with %v", key, k.last)
		}
	}
	delete(wanted, "shared")
	if got := m.p.Keys(); len(got) != len(wanted) && !m.broken() {
		return fmt.Errorf("G6: partitions %v, and the server has %d", got, len(wanted))
	}
	if n := m.p.scheduler.agenda.size(); n > 0 || m.p.scheduler.waiting() {
		return fmt.Errorf("G6: %d keys wait or are held", n)
	}
	return nil
}
