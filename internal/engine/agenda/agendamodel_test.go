package agenda

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// size returns the number of keys that are not idle.
func (a *Agenda) size() int {
	return len(a.due) + len(a.untilQuiet) + a.queue.length() + len(a.rests) + a.active.length
}

// naiveKey is the state of a key in a naive agenda: flags, and a list of all its changes.
type naiveKey struct {
	held, ready bool
	waits       bool
	changes     []time.Time // since it began to wait for quiet
	rests       time.Time   // the end of its rest; zero if it does not rest
	failures    int
	own, was    bool // due for itself; so was the present turn
}

func (k *naiveKey) state() keyState {
	switch {
	case !k.rests.IsZero():
		return keyResting
	case k.held && k.ready:
		return keyRunningReady
	case k.held && k.waits:
		return keyRunningWaiting
	case k.held:
		return keyRunning
	case k.ready:
		return keyReady
	case k.waits:
		return keyWaiting
	}
	return keyIdle
}

// due reports whether the key is due already, or will be by itself.
func (k *naiveKey) due() bool { return k.ready || k.waits || !k.rests.IsZero() }

// quietAt returns when a key that waits for quiet becomes quiet: the quiet time after its last
// change, or at the latest the most after the first.
func (k *naiveKey) quietAt(d Debounce) time.Time {
	last := k.changes[len(k.changes)-1].Add(d.Quiet)
	if most := k.changes[0].Add(d.Most); most.Before(last) {
		return most
	}
	return last
}

// agendaModel is an agenda, and a naive one that looks through all keys for everything.
type agendaModel struct {
	*Agenda
	entries map[string]*Entry
	keys    map[string]*naiveKey
	queue   []string
	row     int // turns of keys that were due for themselves, while others waited
	steps   int
	idle    bool // a worker has found nothing, and waits
}

// key chooses a key by a number, "" if there is none.
func (m *agendaModel) key(number int, among func(*naiveKey) bool) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.keys)) {
		if among(m.keys[name]) {
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return names[number%len(names)]
}

func anyKey(*naiveKey) bool    { return true }
func heldKey(k *naiveKey) bool { return k.held }

// enqueue makes a key ready.
func (m *agendaModel) enqueue(name string) {
	k := m.keys[name]
	k.waits, k.changes, k.ready = false, nil, true
	if !k.held {
		m.queue = append(m.queue, name)
	}
}

// wake makes the keys ready whose rest is over, in the order of their times.
func (m *agendaModel) wake() {
	for {
		first := ""
		for name, k := range m.keys {
			if !k.rests.IsZero() && !k.rests.After(time.Now()) && (first == "" || k.rests.Before(m.keys[first].rests)) {
				first = name
			}
		}
		if first == "" {
			return
		}
		m.keys[first].rests = time.Time{}
		m.enqueue(first)
	}
}

func (m *agendaModel) release() {
	m.Agenda.Release(time.Now())
	for _, name := range slices.Sorted(maps.Keys(m.keys)) {
		if k := m.keys[name]; k.waits && (k.changes == nil || !k.quietAt(m.debounce).After(time.Now())) {
			m.enqueue(name)
		}
	}
}

func (m *agendaModel) next() error {
	m.wake()
	want := ""
	if len(m.queue) > 0 {
		i := slices.IndexFunc(m.queue, func(name string) bool { return m.keys[name].own })
		common := slices.IndexFunc(m.queue, func(name string) bool { return !m.keys[name].own })
		if m.row++; i < 0 || common >= 0 && m.row > 4 {
			i, m.row = common, 0
		}
		if common < 0 {
			m.row = 0
		}
		want = m.queue[i]
		m.queue = slices.Delete(m.queue, i, i+1)
		k := m.keys[want]
		k.held, k.ready, k.own, k.was = true, false, false, k.own
	}
	if pending := m.Pending(); pending != (want != "") {
		return fmt.Errorf("a key is pending: %v, and the next is %q", pending, want)
	}
	e, _ := m.Agenda.Next()
	m.idle = e == nil
	if e == nil && want != "" || e != nil && e.Key != want {
		return fmt.Errorf("the next key is %v, want %q", e, want)
	}
	return nil
}

// over ends a turn.
func (m *agendaModel) over(name string, rests time.Duration) {
	k := m.keys[name]
	k.held = false
	if rests < 0 {
		m.Done(m.entries[name])
		if k.failures = 0; k.ready {
			m.enqueue(name)
		}
		return
	}
	m.Rest(m.entries[name], rests)
	k.failures++
	k.own = k.own || k.was
	k.waits, k.changes, k.ready, k.rests = false, nil, false, time.Now().Add(rests)
}

// step does one thing to both agendas.
func (m *agendaModel) step(s sim.Step) error {
	switch op := s.Op % 23; {
	case op >= 21:
		name := m.key(s.A, anyKey)
		m.PutAhead(m.entries[name])
		k := m.keys[name]
		if k.ready && !k.held && !k.own { // it queues anew, in the other class
			m.queue = append(slices.DeleteFunc(m.queue, func(other string) bool { return other == name }), name)
		}
		k.own = true
	case op < 3:
		name := m.key(s.A, anyKey)
		m.MakeDue(m.entries[name])
		if k := m.keys[name]; !k.due() {
			k.waits = true
		}
	case op < 8:
		name := m.key(s.A, anyKey)
		m.MakeDueOnceQuiet(m.entries[name])
		if k := m.keys[name]; k.waits || !k.due() {
			k.waits, k.changes = true, append(k.changes, time.Now())
		}
	case op < 9:
		name := m.key(s.A, anyKey)
		m.MakeReady(m.entries[name])
		if k := m.keys[name]; k.rests.IsZero() && !k.ready {
			m.enqueue(name)
		}
	case op < 11:
		m.release()
	case op < 14:
		return m.next()
	case op < 17:
		if name := m.key(s.A, heldKey); name != "" {
			rests := []time.Duration{-1, -1, 0, 2 * second, 5 * second}[s.B%5]
			if rests >= 0 {
				rests += time.Duration(m.steps) // no two rests end at the same time
			}
			m.over(name, rests)
		}
	case op < 18:
		name := m.key(s.A, anyKey)
		m.Drop(m.entries[name])
		*m.keys[name] = naiveKey{}
		m.queue = slices.DeleteFunc(m.queue, func(other string) bool { return other == name })
	default:
		// no two steps at the same time
		sim.After([]time.Duration{time.Millisecond, second, 3 * second}[s.B%3] + time.Duration(m.steps)*time.Microsecond)
	}
	return nil
}

// check compares the two agendas, and checks that waiting workers are woken.
func (m *agendaModel) check() error {
	waits, busy, quiet, rested := 0, 0, false, false
	for name, k := range m.keys {
		e := m.entries[name]
		if e.state != k.state() || e.failures != k.failures {
			return fmt.Errorf("%s is %s after %d failures, want %s after %d", name, e.state, e.failures, k.state(), k.failures)
		}
		if k.waits {
			waits++
		}
		if k.held {
			busy++
		}
		quiet = quiet || k.changes != nil && !k.quietAt(m.debounce).After(time.Now())
		rested = rested || !k.rests.IsZero() && !k.rests.After(time.Now())
	}
	if n := m.backlog.Load(); int(n) != waits || len(m.due)+len(m.untilQuiet) != waits || m.Agenda.queue.length() != len(m.queue) {
		return fmt.Errorf("%d keys wait, %d of them for quiet, want %d; %d are ready, want %d", n, len(m.untilQuiet), waits, m.Agenda.queue.length(), len(m.queue))
	}
	runs := 0
	for e := range m.Running() {
		if runs++; !m.keys[e.Key].held {
			return fmt.Errorf("%s runs, and nobody has it", e.Key)
		}
	}
	switch {
	case runs != busy:
		return fmt.Errorf("%d keys run, want %d", runs, busy)
	case m.idle && (len(m.queue) > 0 || rested):
		if m.idle = false; !has(m.signal) && !has(m.rested.C) {
			return fmt.Errorf("no worker is woken: %v are ready, one that rested: %v", m.queue, rested)
		}
	case quiet && !has(m.quiet.C):
		return fmt.Errorf("nobody is told that a key is quiet")
	case quiet: // the worker that gets the signal releases it
		m.release()
	}
	return nil
}

// has takes a value from a channel, if there is one.
func has[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestModelG3TheAgendaIsTheNaiveOne compares the agenda with flags and full scans: the state of
// each key, the order and the earliest times of turns, and that waiting workers are woken.
func TestModelG3TheAgendaIsTheNaiveOne(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, taken func()) {
		steps := sim.DrawScript(rt).Steps
		var err error
		synctest.Test(t, func(*testing.T) {
			m := &agendaModel{Agenda: New(Debounce{Quiet: 2 * second, Most: 5 * second}), entries: map[string]*Entry{}, keys: map[string]*naiveKey{}}
			for i := range 6 {
				name := fmt.Sprint("k", i)
				m.entries[name], m.keys[name] = &Entry{Key: name}, &naiveKey{}
			}
			for _, s := range steps {
				m.steps++
				if err = cmp.Or(m.step(s), m.check()); err != nil {
					return
				}
				taken()
			}
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}
