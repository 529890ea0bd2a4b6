// Package model has what snapwatch knows of a watch: per kind the objects, what has changed, how
// often, and how far behind it is. It knows no terminal, no client and no clock: times are given
// to it.
//
//	m := model.New("services", "pods")
//	m.Sample(now, samples)            // the state of each kind: each second, and with each snapshot
//	m.Snapshot(now, counts, changes)  // a snapshot, and how it differs from the one before
//	picture := m.Picture(now)         // all of it, to be shown
//
// [Model] is the type to start from. One goroutine uses it; a [Picture] is the caller's.
package model

import (
	"slices"
	"time"
)

// Window is the time that rates are about.
const Window = 10 * time.Second

// Most is how many changes a model remembers.
const Most = 1000

// Type says what has happened to an object, in a sign.
type Type string

// The types of changes.
const (
	Added   Type = "+"
	Updated Type = "~"
	Deleted Type = "-"
)

// Change is what a snapshot shows of an object that differs from the one before.
type Change struct {
	At       time.Time
	Snapshot int // its number
	Type     Type
	Kind     int // its index
	// Namespace is empty for objects that are in none.
	Namespace, Name string
}

// Sample is the state of a kind at one time.
type Sample struct {
	State string // that of kates: listing, synced, …
	// Absent: the kind counts as empty, because it is missing or forbidden.
	Absent bool
	Error  string // why, while something is wrong
	Lag    time.Duration
	// Listed is how many objects the list under way has brought, and Held how many there are.
	Listed, Held int
	// Invalid are the objects that the snapshot leaves out.
	Invalid int
	// Events that have come, and Coalesced those of them that no snapshot shows, since the start.
	Events, Coalesced uint64
}

// Kind is what is known of one kind.
type Kind struct {
	Name string
	Sample
	// Known: a snapshot has shown it, and so Count is the number of its objects there.
	Known bool
	Count int
	// What the last snapshot has added, updated and deleted, and how many events before it no
	// snapshot has shown.
	Added, Updated, Deleted int
	Skipped                 uint64
	// Events and changes per second, in the last [Window].
	EventRate, ChangeRate float64
}

// Picture is all of it.
type Picture struct {
	At time.Time
	// Number of the last snapshot, 0 before the first. Shown is when it came.
	Number int
	Shown  time.Time
	Kinds  []Kind
	// Changes, those of the newest snapshot first. Within a snapshot they have the order of deltas.
	Changes []Change
}

// Model gathers what a watch tells.
type Model struct {
	kinds   []kind
	number  int
	shown   time.Time
	changes []Change // the oldest first
}

// kind is one kind, and what its rates are made of.
type kind struct {
	Kind
	events, changes rate
	// skipped is what Coalesced was at the last snapshot.
	skipped uint64
}

// New returns a model of these kinds.
func New(names ...string) *Model {
	m := &Model{kinds: make([]kind, len(names))}
	for i, name := range names {
		m.kinds[i].Name = name
	}
	return m
}

// Sample takes the state of each kind, in their order.
func (m *Model) Sample(at time.Time, samples []Sample) {
	for i := range min(len(samples), len(m.kinds)) {
		k, s := &m.kinds[i], samples[i]
		if m.number > 0 && s.Events > k.Events { // the first list is no rate
			k.events.add(at, s.Events-k.Events)
		}
		if s.Events < k.Events || s.Coalesced < k.skipped { // it was counted anew
			k.skipped = s.Coalesced
		}
		k.Sample = s
	}
}

// Snapshot takes a snapshot: how many objects of each kind it has (below 0 where it has none,
// because the kind is absent), and how it differs from the last one. The first one is no change:
// all objects would be new. A Sample of the same time goes before it.
func (m *Model) Snapshot(at time.Time, counts []int, changes []Change) {
	first := m.number == 0
	m.number++
	m.shown = at
	for i := range m.kinds {
		k := &m.kinds[i]
		k.Known, k.Count = i < len(counts) && counts[i] >= 0, 0
		if k.Known {
			k.Count = counts[i]
		}
		k.Added, k.Updated, k.Deleted = 0, 0, 0
		k.Skipped, k.skipped = k.Coalesced-k.skipped, k.Coalesced
		if first {
			k.Skipped = 0
		}
	}
	if first {
		return
	}
	for _, c := range changes {
		if c.Kind < 0 || c.Kind >= len(m.kinds) {
			continue
		}
		c.At, c.Snapshot = at, m.number
		m.kinds[c.Kind].count(c.Type)
		m.kinds[c.Kind].changes.add(at, 1)
		m.changes = append(m.changes, c)
	}
	if over := len(m.changes) - Most; over > 0 {
		m.changes = slices.Delete(m.changes, 0, over)
	}
}

func (k *Kind) count(t Type) {
	switch t {
	case Added:
		k.Added++
	case Updated:
		k.Updated++
	case Deleted:
		k.Deleted++
	}
}

// Picture returns all that is known at a time.
func (m *Model) Picture(at time.Time) Picture {
	p := Picture{At: at, Number: m.number, Shown: m.shown, Changes: slices.Clone(m.changes)}
	slices.SortStableFunc(p.Changes, func(a, b Change) int { return b.Snapshot - a.Snapshot })
	for i := range m.kinds {
		k := &m.kinds[i]
		k.EventRate, k.ChangeRate = k.events.per(at), k.changes.per(at)
		p.Kinds = append(p.Kinds, k.Kind)
	}
	return p
}

// Fine reports whether nothing is wrong with a kind: it is synced, or on its way to its first
// list.
func (k Kind) Fine() bool {
	return k.State == "synced" || (k.Error == "" && (k.State == "listing" || k.State == "waiting"))
}
