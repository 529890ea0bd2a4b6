package coherence_test

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/suite/rounds"
)

// ownWrite is a write that the server has done, and the client learns of stream by stream.
type ownWrite struct {
	coherence.Write
	rev     int // at which it is true
	next    int // the member that is to record it
	asked   []*member
	askedRV string // the oldest of the versions that the server answered when it was asked
}

// unionModel is a server with one object, the streams of a union, and one reader.
type unionModel struct {
	rev     int
	uids    int
	history map[int]*state // by revision; nil: deleted
	members []*member
	writes  []*ownWrite
	floor   int // no list is older
	ownRev  int // the newest revision of an own write that every stream has recorded

	// The reader: what it holds, has shown, and the parts of the round that is under way.
	shown  coherence.Object
	held   coherence.Departure
	waits  bool
	dirty  bool
	looked map[*member]coherence.Sight
	asOf   int // of what is shown: the oldest revision at which it can have been the truth
	due    int // the round has to show own writes up to here
}

// giveUp drops a stream's own writes until its next list. What they left stays in the store.
func (m *unionModel) giveUp(w *member) {
	o := w.read()
	w.stored, _ = o.(*state)
	wroteRV, _ := w.Known(theKey)
	w.GiveUp()
	w.lost = true
	w.left = w.left.And(coherence.GivenUp(o, wroteRV))
}

// record tells the next stream of an own write. It reports whether it was the last one.
func (m *unionModel) record(t *rapid.T, o *ownWrite) (done bool) {
	w := m.members[o.next]
	o.next++
	write, fate := o.Write, coherence.Elsewhere
	written, _ := o.Object.(*state)
	if written == nil || !written.selected() {
		fate = coherence.Gone
	}
	if written != nil && !w.selects(written) {
		write.Object = nil
	}
	recorded := true
	w.change(write.Version, func() {
		var stored coherence.Object
		if w.stored != nil {
			stored = w.stored
		}
		recorded = w.Record(write, stored, time.Time{})
	})
	if recorded {
		w.passed(write, fate)
	} else {
		m.ask(w, o)
	}
	if o.next < len(m.members) {
		return false
	}
	for _, asked := range o.asked {
		asked.passed(coherence.Write{Key: theKey, Version: o.askedRV}, coherence.GoneBefore)
	}
	for _, w := range m.members {
		w.End(theKey)
	}
	m.ownRev = max(m.ownRev, o.rev)
	return true
}

// ask is rule 6 for a deletion that was answered without a version.
func (m *unionModel) ask(w *member, o *ownWrite) {
	m.floor = m.rev
	answer := coherence.Write{Key: theKey, UID: o.UID, Version: version(m.rev)}
	byRV := answer.Version
	if now := m.at(m.rev); w.selects(now) {
		answer.Object, answer.UID, byRV = now, now.uid, version(now.rev)
	}
	w.change(answer.Version, func() {
		var stored coherence.Object
		if w.stored != nil {
			stored = w.stored
		}
		w.Record(answer, stored, time.Time{})
	})
	if o.asked = append(o.asked, w); o.askedRV == "" || coherence.Newer(o.askedRV, byRV) {
		o.askedRV = byRV
	}
}

// take moves what a stream has noted to the reader.
func (m *unionModel) take(w *member) {
	m.begin()
	if w.lost {
		return
	}
	m.dirty = m.dirty || w.dirty
	m.held = m.held.And(w.left)
	w.left, w.dirty = coherence.Departure{}, false
}

// look asks a stream about the key, after all streams have been taken from. It reports whether
// the reader has a reason to.
func (m *unionModel) look(w *member) bool {
	if len(m.looked) == 0 {
		for _, w := range m.members {
			m.take(w)
		}
	}
	if !m.dirty && !m.waits || m.looked[w].KnownRV != "" {
		return false
	}
	m.looked[w] = w.sight()
	return true
}

// begin starts a round of the reader: a call of Update.
func (m *unionModel) begin() {
	if m.looked == nil {
		m.looked, m.due = make(map[*member]coherence.Sight), m.ownRev
	}
}

// decide ends a round, and compares what is shown with the history.
func (m *unionModel) decide(t *rapid.T) {
	for _, w := range m.members {
		m.look(w)
	}
	looked := m.looked
	m.looked = nil
	if !m.dirty && !m.waits {
		return
	}
	sights := make([]coherence.Sight, 0, len(m.members))
	lost, behind, current := false, false, true
	for _, w := range m.members {
		s := looked[w]
		sights = append(sights, s)
		lost = lost || s.Lost
		knownRev, _ := strconv.Atoi(s.KnownRV)
		current = current && knownRev == m.rev
	}
	d := coherence.Decide(m.shown, m.held, sights)
	m.dirty, m.waits, m.held = false, d.Open, d.Left
	if d.Kept && d.Object != m.shown {
		t.Fatalf("kept %v in place of %v", d.Object, m.shown)
	}
	if m.shown == nil && d.Open {
		// Of an own write that its stream has passed, and whose object no stream has shown, the
		// reader learns no later than when the decision is final.
		m.due = 0
	}
	m.shown = d.Object
	for _, s := range sights {
		behind = behind || s.Behind(d.UntilRV)
	}
	if m.waits != (behind || lost) {
		t.Fatalf("G6: waits until %q for %v", d.UntilRV, sights)
	}
	if lost { // nothing is shown before the relist
		return
	}
	m.check(t)
	if now := m.at(m.rev); current && m.truth(now) != m.shown {
		t.Fatalf("G6: shows %v, every stream has reached %v", m.shown, now)
	}
}

// truth is what the union has of a state.
func (m *unionModel) truth(s *state) coherence.Object {
	if s == nil || !s.selected() {
		return nil
	}
	return s
}

// check looks for the oldest revision at which what is shown was the truth, no older than what
// was shown before and than own writes.
func (m *unionModel) check(t *rapid.T) {
	for rev := max(m.asOf, m.due); rev <= m.rev; rev++ {
		if m.truth(m.at(rev)) == m.shown {
			m.asOf = rev
			return
		}
	}
	t.Fatalf("G4, G5: shows %v, which is not the truth at any revision from %d (shown) and %d (own) to %d: %v",
		m.shown, m.asOf, m.due, m.rev, m.history)
}

// deliverAll lets everything arrive, and looks for what is left.
func (m *unionModel) deliverAll(t *rapid.T) {
	m.decide(t) // the round that may be under way
	for len(m.writes) > 0 {
		m.answer(t, 0)
	}
	for _, w := range m.members {
		m.bookmark(w)
		if w.lost {
			m.list(w, m.rev)
		}
	}
	m.decide(t)
	if now := m.at(m.rev); m.truth(now) != m.shown || m.waits {
		t.Fatalf("G6: shows %v (waits: %v), the server has %v", m.shown, m.waits, now)
	}
}

// answer tells one more stream of a write. It reports whether it could. A deletion without a
// version reaches all streams at once, and between two rounds of the reader: the server is asked
// for each stream at a moment of its own, and what others write in between may leave a gap.
func (m *unionModel) answer(t *rapid.T, i int) bool {
	o := m.writes[i]
	atOnce := o.Version == ""
	if atOnce && len(m.looked) > 0 {
		return false
	}
	done := m.record(t, o)
	for atOnce && !done {
		done = m.record(t, o)
	}
	if done {
		m.writes = append(m.writes[:i], m.writes[i+1:]...)
	}
	return true
}

// TestModelG4G5G6AUnionShowsTheTruthOfAVersionThatOnlyGrows lets one object move between the
// streams of
// a union, by own and foreign writes, while each stream and the reader run at their own pace.
// Whatever the reader shows has to be the truth at some version, and that version never goes
// back; absence too. When every stream has reached the newest version, it is the truth of that.
func TestModelG4G5G6AUnionShowsTheTruthOfAVersionThatOnlyGrows(t *testing.T) {
	rounds.Check(t, func(t *rapid.T, step func()) {
		m := &unionModel{rev: firstRev, floor: firstRev, asOf: firstRev, history: map[int]*state{}}
		for i := range rapid.IntRange(2, 3).Draw(t, "streams") {
			w := &member{View: coherence.NewView(coherence.Options{}), bit: i}
			m.members = append(m.members, w)
			m.list(w, firstRev)
		}
		actions := make(map[string]func(*rapid.T))
		for name, act := range m.actions() {
			actions[name] = func(t *rapid.T) {
				if act(t) {
					step()
				}
			}
		}
		t.Repeat(actions)
		m.deliverAll(t)
	})
}

// actions are what may happen. Each reports whether there was something to do.
func (m *unionModel) actions() map[string]func(*rapid.T) bool {
	some := rapid.SampledFrom(m.members)
	return map[string]func(*rapid.T) bool{
		"foreign write": func(t *rapid.T) bool {
			m.write(t)
			return true
		},
		"own write": func(t *rapid.T) bool {
			for _, w := range m.members {
				w.Begin(theKey, nil)
			}
			m.writes = append(m.writes, &ownWrite{Write: m.write(t), rev: m.rev})
			m.floor = m.rev
			return true
		},
		"answer": func(t *rapid.T) bool {
			if len(m.writes) == 0 {
				return false
			}
			return m.answer(t, rapid.IntRange(0, len(m.writes)-1).Draw(t, "which"))
		},
		"event": func(t *rapid.T) bool {
			w := some.Draw(t, "stream")
			if w.rev == m.rev {
				return false
			}
			m.deliver(w)
			return true
		},
		"bookmark": func(t *rapid.T) bool {
			m.bookmark(some.Draw(t, "stream"))
			return true
		},
		"list": func(t *rapid.T) bool {
			w := some.Draw(t, "stream")
			position, _ := strconv.Atoi(w.Position())
			m.list(w, rapid.IntRange(max(position, w.rev, m.floor), m.rev).Draw(t, "served at"))
			return true
		},
		"give up": func(t *rapid.T) bool {
			w := some.Draw(t, "stream")
			if w.lost || w.Pending() == 0 {
				return false
			}
			m.giveUp(w)
			return true
		},
		"take": func(t *rapid.T) bool {
			if len(m.looked) > 0 {
				return false
			}
			m.take(some.Draw(t, "stream"))
			return true
		},
		"look": func(t *rapid.T) bool {
			return m.look(some.Draw(t, "stream"))
		},
		"update": func(t *rapid.T) bool {
			m.decide(t)
			return true
		},
	}
}
