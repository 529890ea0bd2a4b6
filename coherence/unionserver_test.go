package coherence_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/coherence"
)

// at is the truth at a revision.
func (m *unionModel) at(rev int) *state {
	for ; rev > firstRev; rev-- {
		if s, ok := m.history[rev]; ok {
			return s
		}
	}
	return nil
}

func (m *unionModel) put(s *state) {
	m.rev++
	if s != nil {
		s.rev = m.rev
	}
	m.history[m.rev] = s
}

// write does something to the object, and returns the answer.
func (m *unionModel) write(t *rapid.T) coherence.Write {
	now := m.at(m.rev)
	w := coherence.Write{Key: theKey}
	if now != nil && rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		w.UID = now.uid
		m.put(nil)
		if rapid.Bool().Draw(t, "answered with the deletion's version") {
			w.Version = version(m.rev)
		}
		return w
	}
	next := &state{in: make([]bool, len(m.members))}
	if now != nil {
		next.uid = now.uid
	} else {
		m.uids++
		next.uid = types.UID(fmt.Sprint("u", m.uids))
	}
	for i := range next.in {
		next.in[i] = rapid.Bool().Draw(t, "in")
	}
	m.put(next)
	w.UID, w.Version, w.Object = next.uid, version(next.rev), next
	return w
}

// deliver moves a watch by one revision. An event comes only of what its selector selects.
func (m *unionModel) deliver(w *member) {
	old := m.at(w.rev)
	w.rev++
	now, rv := m.at(w.rev), version(w.rev)
	switch {
	case old == now:
	case w.lost && now != nil && w.stored != nil && w.stored.uid == now.uid && w.stored.rev > now.rev:
		// an own write that was given up is newer
	case w.selects(now):
		w.change(rv, func() {
			w.stored = now
			w.Observe(coherence.Event{Key: theKey, UID: now.uid, Object: now, Version: rv})
		})
	case w.selects(old):
		w.change(rv, func() {
			w.stored = nil
			w.Observe(coherence.Event{Key: theKey, UID: old.uid, Version: rv})
		})
	}
}

func (m *unionModel) list(w *member, rev int) {
	rv := version(rev)
	w.change(rv, func() {
		w.rev, w.stored, w.skippedRV = rev, nil, rv
		if now := m.at(rev); w.selects(now) {
			w.stored = now
		}
		w.List(rv, func(coherence.Key) types.UID {
			if w.stored == nil {
				return ""
			}
			return w.stored.uid
		})
	})
	w.dirty = w.dirty || w.lost
	w.lost = false
}

func (m *unionModel) bookmark(w *member) {
	for w.rev < m.rev {
		m.deliver(w)
	}
	rv := version(m.rev)
	w.change(rv, func() { w.Advance(rv) })
}
