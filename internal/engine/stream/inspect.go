package stream

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/footprint"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/object"
)

// Inspection is what a stream has, and what it has done, in numbers.
type Inspection struct {
	Status
	ID                int64 // tells the streams of a process apart
	Resource          object.Resource
	Namespace         string
	Labels, Fields    string // the selectors
	AnyOf             string // alternatives that are judged here; "" if there are none
	ShardSelector     string // "" for all objects
	Listeners         int
	Bytes             int64 // an estimate for all objects
	Listing           int   // objects of the list under way
	Events, Bookmarks uint64
	Undecodable       uint64
	Lists, Watches    map[string]uint64 // by reason
	PendingSince      time.Time         // the oldest pending write; zero: there is none
	Writes            []OwnWrite        // some of the pending writes, the oldest
}

// OwnWrite is an own write that the watch has not shown yet. Of one that is unsettled nothing else
// than the key and the version is known.
type OwnWrite struct {
	Key       object.Key
	Version   string // "" if it is not known
	Since     time.Time
	Gone      bool // the object was deleted, or is not among the stream's any more
	Unsettled bool
}

// order puts own writes that are unsettled last.
var order = map[bool]int{true: 1}

// writesMost is how many own writes an inspection has.
const writesMost = 100

// Inspect returns what the stream has and has done.
func (s *Stream) Inspect() Inspection {
	per := s.perObject()
	in := Inspection{
		ID: s.tally.id, Resource: s.Resource, Namespace: s.Key.Namespace, Labels: s.Key.Labels, Fields: s.Key.Fields,
		AnyOf: s.Key.AnyOf, ShardSelector: s.Selector.Shard.String(),
		Listing: int(s.tally.listed.Load()),
		Events:  s.tally.events.Load(), Bookmarks: s.tally.bookmarks.Load(), Undecodable: s.tally.undecodable.Load(),
		Lists: s.reflector.Lists(), Watches: s.reflector.Watches(),
	}
	s.mu.Lock()
	in.Status = s.status()
	in.Objects, in.Listeners = len(s.store.Objects), len(s.listeners)
	for o, since := range s.store.View.Outstanding {
		in.Writes = append(in.Writes, outstanding(o, since))
	}
	for key, until := range s.own.unsettled {
		in.Writes = append(in.Writes, OwnWrite{Key: key, Version: until.rv, Unsettled: true})
	}
	s.mu.Unlock()
	in.Bytes = per * int64(in.Objects)
	slices.SortFunc(in.Writes, func(a, b OwnWrite) int {
		if a.Unsettled != b.Unsettled {
			return cmp.Compare(order[a.Unsettled], order[b.Unsettled])
		}
		return a.Since.Compare(b.Since)
	})
	if len(in.Writes) > 0 {
		in.PendingSince = in.Writes[0].Since
	}
	in.Writes = in.Writes[:min(len(in.Writes), writesMost)]
	return in
}

func outstanding(o coherence.Write, since time.Time) OwnWrite {
	return OwnWrite{Key: o.Key, Version: o.Version, Since: since, Gone: o.Object == nil}
}

const (
	// sampled is how many objects are looked at for an estimate of their bytes.
	sampled = 64
	// sampledFor is how long an estimate is good, unless the number of objects doubles.
	sampledFor = 30 * time.Second
)

// perObject returns an estimate of the bytes that one object takes.
func (s *Stream) perObject() int64 {
	old, now := s.tally.size.Load(), time.Now()
	s.mu.Lock()
	n := len(s.store.Objects)
	if old != nil && now.Sub(old.at) < sampledFor && n < 2*old.objects || n == 0 {
		s.mu.Unlock()
		if n == 0 {
			return 0
		}
		return old.per
	}
	some := make([]object.Object, 0, sampled)
	for _, o := range s.store.Objects { // in no order
		if some = append(some, o); len(some) == sampled {
			break
		}
	}
	s.mu.Unlock()
	const entry = 64 // of the store's map
	per := footprint.Of(some...)/int64(len(some)) + entry
	s.tally.size.Store(&sized{per: per, objects: n, at: now})
	return per
}

// ListenerInspection is what a listener has, and what it was told, in numbers.
type ListenerInspection struct {
	Stream            int64 // its ID
	Bytes             int64 // an estimate for the objects that the listener sees
	Events, Coalesced uint64
	Untaken           int       // objects that have changed since the last batch
	UntakenSince      time.Time // the first of these changes; zero: there is none
}

// Inspect returns what the listener has and was told.
func (l *Listener) Inspect() ListenerInspection {
	s := l.stream
	per := s.perObject()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := l.untaken.Counts()
	in := ListenerInspection{
		Stream: s.tally.id, Bytes: per * int64(l.count()),
		Events: c.Changes, Coalesced: c.Coalesced, Untaken: c.Dirty, UntakenSince: c.Since,
	}
	if l.untaken.Whole() && s.progress.phase.listed() {
		in.Untaken = l.count()
	}
	return in
}

// Examined is what a stream has of one object.
type Examined struct {
	Stream int64 // its ID
	// Watched is the object as the watch has delivered it, and Current what the stream shows: that,
	// or what an own write has laid over it. Nil: there is none.
	Watched, Current object.Object
	// Write is the own write that is laid over; nil: there is none.
	Write *OwnWrite
	// Untaken: the object has changed since the last batch.
	Untaken bool
}

// Examine returns what the listener's stream has of one object.
func (l *Listener) Examine(key object.Key) Examined {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Examined{Stream: s.tally.id, Watched: s.store.Objects[key], Current: l.read(key)}
	for o, since := range s.store.View.Outstanding {
		if o.Key == key {
			w := outstanding(o, since)
			e.Write = &w
		}
	}
	if until, ok := s.own.unsettled[key]; ok && e.Write == nil {
		e.Write = &OwnWrite{Key: key, Version: until.rv, Unsettled: true}
	}
	e.Untaken = l.untaken.IsDirty(key)
	return e
}

// Status says how one stream stands.
type Status struct {
	State State
	Since time.Time
	// Error is the last one, "" while all is well.
	Error string
	// Form of the objects that the stream holds, and how they come over the wire.
	Form string
	// Shard is empty for a stream of all objects. For one of a share it says in words whether the
	// server sends this share alone.
	Shard string
	// Heard is when the server last said anything.
	Heard time.Time
	// Objects is how many objects the stream holds.
	Objects int
	// PositionRV is the version up to which the watch has delivered everything.
	PositionRV string
	// Pending own writes that the watch has not shown yet, and Unsettled ones that the server
	// could not be asked about.
	Pending, Unsettled int
	// Restarts is how many lists came after the first.
	Restarts int
	// Start says how the stream has begun, if streams are kept for the next process: "warm", or
	// "list: " and why it was not warm.
	Start string
}

// Status says how the listener's stream stands.
func (l *Listener) Status() Status {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status()
	st.Objects = l.count()
	if l.part != nil {
		st.Form = strings.TrimSpace(l.as.Form.Word() + " of a wider watch")
		if l.as.Shard != "" {
			st.Shard = intake.ShardNarrowed
		}
	}
	return st
}

// status says how the stream stands. Called with mu held.
func (s *Stream) status() Status {
	st := Status{
		State: s.health.state, Since: s.health.since, Heard: s.health.heard, Form: s.FormNow(),
		Shard:      s.ShardStatus(),
		PositionRV: s.store.View.Position(),
		Start:      s.kept.Start(),
		Pending:    s.store.View.Pending(), Restarts: s.health.restarts,
		Unsettled: s.own.forgetSettled(s.store.View.Position()),
	}
	if st.State == "" {
		st.State = Listing
	}
	if s.health.err != nil {
		st.Error = s.health.err.Error()
	}
	return st
}
