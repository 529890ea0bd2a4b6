package coherence_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// state is one state of the only object of this model. Each is a value of its own.
type state struct {
	uid types.UID
	rev int
	in  []bool // which streams select it
}

func (s *state) GetUID() types.UID          { return s.uid }
func (s *state) GetResourceVersion() string { return version(s.rev) }
func (s *state) String() string             { return fmt.Sprint(s.uid, "@", s.rev, s.in) }

// selected reports whether any stream selects it.
func (s *state) selected() bool {
	for _, in := range s.in {
		if in {
			return true
		}
	}
	return false
}

var theKey = coherence.Key{Name: "x"}

// firstRev is the revision at which the model starts, without the object.
const firstRev = 10

// member is one stream of the union: a watch with a selector, and the own writes laid over it.
type member struct {
	*coherence.View
	bit       int
	rev       int // up to which the watch has read the history
	stored    *state
	lost      bool
	skippedRV string
	// What the reader has not taken yet.
	dirty bool
	left  coherence.Departure
}

func (m *member) selects(s *state) bool { return s != nil && s.in[m.bit] }

func (m *member) read() coherence.Object {
	if m.stored == nil {
		return m.Read(theKey, nil)
	}
	return m.Read(theKey, m.stored)
}

// change runs f, and notes how that changes what the stream shows, as a listener does.
func (m *member) change(asOfRV string, f func()) {
	before := m.read()
	f()
	after := m.read()
	if before == after {
		return
	}
	m.dirty = true
	switch {
	case after == nil:
		m.left = m.left.Leave(asOfRV, before)
	case !m.lost:
		m.left = coherence.Departure{}
	}
}

func (m *member) passed(w coherence.Write, fate coherence.Fate) {
	if m.read() == nil && coherence.Comparable(w.Version) {
		m.left, m.dirty = m.left.And(coherence.Passed(w, fate, "")), true
	}
}

func (m *member) sight() coherence.Sight {
	knownRV, _ := m.Known(theKey)
	if m.lost {
		return coherence.Sight{KnownRV: knownRV, Lost: true}
	}
	left := m.left
	m.left = coherence.Departure{} // a sight takes it
	return coherence.Sight{
		Object: m.read(), KnownRV: knownRV,
		SkippedRV: m.skippedRV, Left: left,
	}
}
