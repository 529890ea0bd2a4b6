package accumulator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// three is a snapshot of up to three queries.
type three struct {
	A, B, C []*unstructured.Unstructured
}

var modelFields = []string{"A", "B", "C"}

func (t *three) field(i int) []*unstructured.Unstructured {
	return [][]*unstructured.Unstructured{t.A, t.B, t.C}[i]
}

// modelReader is a reader of an accumulator, with what it has seen.
type modelReader struct {
	model   *model
	a       *Accumulator
	queries []query.Query
	slots   []*slot
	snap    three
	old     three // before the Update that runs, or that ran last
	shown   bool  // a snapshot, once
	running *call // the call that is held up
	notes   notes

	waiting []modelChange                     // not shown yet
	past    map[storedSlot]map[object.Key]int // since, of slots that showed another resource then
	wanted  [3]query.Query
	changes int // how many queries were replaced
}

// slot is one query of a reader.
type slot struct {
	resource string
	filters  []sim.Filter // of its watches; an object is in one of them at least
	where    *object.Where
	// since is, for each object, the earliest version of the server at which everything that was
	// shown of it so far may have been true. It never goes back (G5).
	since   map[object.Key]int
	replay  map[object.Key]object.Object // the deltas, applied
	least   map[object.Key]int           // the position of its latest watch at the last Update
	free    bool                         // a stream need not show anything new now (G3)
	anew    bool                         // the query was replaced, and this is its first snapshot
	removed bool                         // and the one that is added in its place is not shown yet
}

// storedSlot is a slot and a resource that it shows, or has shown.
type storedSlot struct {
	slot     int
	resource string
}

// field returns the query of a slot, nil if there is none.
func (r *modelReader) field(i int) *field {
	fields := r.a.collector.Fields()
	if at := slices.IndexFunc(fields, func(f *field) bool { return f.Name == modelFields[i] }); at >= 0 {
		return fields[at]
	}
	return nil
}

func newSlot(r object.Resource, q query.Query) *slot {
	s := &slot{resource: r.Resource, where: q.Where, since: map[object.Key]int{}, replay: map[object.Key]object.Object{}}
	namespaces, anyOf := q.Namespaces, q.AnyOf
	if namespaces == nil {
		namespaces = []string{q.Namespace}
	}
	if anyOf == nil {
		anyOf = []object.Selection{{}}
	}
	for _, ns := range namespaces {
		for _, one := range anyOf {
			one = object.Selection{Labels: q.Labels, Fields: q.Fields}.And(one)
			f := sim.Filter{Namespace: ns, Labels: labels.Everything(), Fields: fields.Everything(), Shard: q.Shard}
			if one.Labels != nil {
				f.Labels = one.Labels
			}
			if one.Fields != nil {
				f.Fields = one.Fields
			}
			s.filters = append(s.filters, f)
		}
	}
	return s
}

// shows reports whether an object is in the query.
func (s *slot) shows(u *unstructured.Unstructured) bool {
	if u != nil && s.where != nil {
		if in, err := s.where.Do(u); !in || err != nil {
			return false
		}
	}
	return slices.ContainsFunc(s.filters, func(f sim.Filter) bool { return f.Shows(u) })
}

// covers reports whether an object of that name may be in the query. A stream of the query that is
// to replace it may cover more.
func (s *slot) covers(key object.Key) bool {
	return slices.ContainsFunc(s.filters, func(f sim.Filter) bool {
		return (f.Namespace == "" || f.Namespace == key.Namespace) && f.Shard.HasNamespace(key.Namespace)
	})
}

// delivered notes how far the watches of a query have come. An object is in one of them.
func (s *slot) delivered(f *field, shown bool) {
	s.least, s.free = map[object.Key]int{}, false
	for _, l := range f.Query.Listeners() {
		st := l.State()
		rev := sim.Revision(st.PositionRV)
		s.free = s.free || st.Phase == audience.Relisting && shown // a first snapshot waits for it
		for _, key := range modelKeys {
			if at, known := s.least[key]; s.covers(key) && l.Covers(key) && (!known || rev < at) {
				s.least[key] = rev
			}
		}
	}
}

// call is an Update that runs.
type call struct {
	written      map[storedKey]int // what it must show at least
	signal, held bool
	landing      bool // some streams may have an own write already, and others signal it later
	upheld       bool // other things happened meanwhile
	result       Result
	err          error
	over         atomic.Bool
}

// update reads once, and compares the result with the server's history. A gate may hold it up.
func (m *model) update(r *modelReader, key object.Key, s sim.Step) (done bool, err error) {
	if r.running != nil {
		return false, nil
	}
	if s.B/3%3 != 0 { // otherwise events on their way have not arrived
		m.rest()
	}
	if s.C%5 != 0 {
		at := sim.UpdatePoints[s.C%len(sim.UpdatePoints)]
		m.asked = r
		m.gates.Close(sim.Gate{Point: at, Key: key, Skip: max(0, s.C/len(sim.UpdatePoints)-4), Steps: 1 + s.B/9%6})
	}
	err = r.update()
	m.gates.Clear(sim.UpdatePoints)
	return true, err
}

// update starts an Update, and finishes it unless a gate holds it up.
func (r *modelReader) update() error {
	c := r.call()
	r.notes.begin()
	r.model.writing.Go(func() {
		c.result, c.err = r.a.Update(context.Background(), &r.snap, nil)
		c.over.Store(true)
	})
	if synctest.Wait(); c.over.Load() {
		return r.updated(c)
	}
	r.running, c.upheld = c, true
	return nil
}

// updated compares the result of an Update with the server's history.
func (r *modelReader) updated(c *call) error {
	m, result, err, old := r.model, c.result, c.err, r.old
	for _, s := range r.slots { // a stream may have given up own writes meanwhile
		s.free = s.free || r.shown && c.upheld && m.script.PendingMax > 0
	}
	switch {
	case err != nil:
		return err
	case !result.Complete && (r.shown || result.Changed):
		return errors.New("G1: complete no more")
	case !result.Complete:
		return r.switched() // nothing was shown, so nothing waits for it
	case !result.Changed && !r.shown:
		return errors.New("G1: the first snapshot is not news")
	case result.Changed && !c.upheld && !c.signal && !c.held && !c.landing:
		return errors.New("a change without a signal")
	case result.Changed && r.shown && len(result.Differences) == 0 &&
		!slices.ContainsFunc(r.slots, func(s *slot) bool { return s.removed }): // a query is news without objects, too
		return errors.New("G7: changed without a delta")
	}
	if err := r.notes.check(result); err != nil {
		return err
	}
	r.shown = true
	if err := r.switched(); err != nil {
		return err
	}
	if err := r.replayed(result); err != nil {
		return fmt.Errorf("G7: %w", err)
	}
	for i, s := range r.slots {
		if s.removed {
			if !c.upheld && (len(r.snap.field(i)) > 0 || len(s.replay) > 0) {
				return fmt.Errorf("G7: the removed query %s still has objects", modelFields[i])
			}
			continue
		}
		if err := s.same(old.field(i), r.snap.field(i), result.Changed); err != nil {
			return fmt.Errorf("query %s: %w", r.queries[i].Name, err)
		}
		// Streams past the cap have forgotten own writes. What they show after that counts only
		// when all of them have come as far.
		s.free = s.free || m.script.PendingMax > 0 && r.field(i).Query.State().Waits.Held > 0
		if err := s.true(m, r.snap.field(i), c.written); err != nil {
			return fmt.Errorf("query %s (%s): %w", r.queries[i].Name, r.queries[i].Kind, err)
		}
		s.anew = false
	}
	return nil
}

// call notes what an Update must show from now on.
func (r *modelReader) call() *call {
	m, c := r.model, &call{written: map[storedKey]int{}}
	c.landing = m.landing.Load() > 0
	select {
	case <-r.a.Changed():
		c.signal = true
	default:
	}
	// A change may be held until a late watch has caught up. If it is quiet, its release gives no
	// signal at once. The signal follows.
	c.held = slices.ContainsFunc(r.a.collector.Fields(), func(f *field) bool { return f.Query.State().Waits.Held > 0 }) || r.waiting != nil
	r.old = r.snap
	for i, s := range r.slots {
		if f := r.field(i); f != nil {
			s.delivered(f, r.shown)
		}
	}
	m.truth.Lock()
	defer m.truth.Unlock()
	for _, resource := range modelResources {
		for _, key := range modelKeys {
			k := storedKey{resource, key}
			c.written[k] = max(m.written[k], m.synced)
		}
	}
	return c
}

// replayed applies the deltas to the former content. Each delta must be a valid one.
func (r *modelReader) replayed(result Result) error {
	seen := map[string]int{}
	last := ""
	for _, d := range result.Differences {
		slot := r.slots[slices.Index(modelFields, d.Query)]
		replay := slot.replay
		o := d.New
		if o == nil {
			o = d.Old
		}
		key := object.KeyOf(o)
		name := d.Query + " " + key.String()
		if name < last && strings.HasPrefix(last, d.Query+" ") {
			return fmt.Errorf("%s comes after %s", name, last)
		}
		last = name
		seen[name]++
		switch {
		case seen[name] == 2 && !(replay[key] == nil && d.Old == nil), seen[name] > 2:
			return fmt.Errorf("several deltas of %s", name)
		case d.Old != replay[key]:
			return fmt.Errorf("the delta of %s starts from %v, not from %v", name, sim.Describe(d.Old), sim.Describe(replay[key]))
		case d.Old != nil && d.New != nil && (object.UIDOf(d.Old) != object.UIDOf(d.New) || d.Old.GetResourceVersion() == d.New.GetResourceVersion() && sim.SchemaOf(d.Old) == sim.SchemaOf(d.New) && !slot.anew):
			return fmt.Errorf("an update of %s from %v to %v", name, sim.Describe(d.Old), sim.Describe(d.New))
		}
		if replay[key] = d.New; d.New == nil {
			delete(replay, key)
		}
	}
	return nil
}

// same compares a query's slice with the former one and with the deltas.
func (s *slot) same(old, now []*unstructured.Unstructured, changed bool) error {
	if !changed && !s.anew && (len(old) != len(now) || (len(now) > 0 && &old[0] != &now[0])) {
		return errors.New("unchanged, and yet another slice")
	}
	if len(now) != cap(now) || now == nil {
		return fmt.Errorf("G10: a slice of length %d and capacity %d", len(now), cap(now))
	}
	if len(now) != len(s.replay) {
		return fmt.Errorf("G7: the deltas give %d objects, the snapshot has %d", len(s.replay), len(now))
	}
	for i, o := range now {
		if s.replay[object.KeyOf(o)] != object.Object(o) {
			return fmt.Errorf("G7: the deltas do not give %s", sim.Describe(o))
		}
		if i > 0 && object.KeyOf(now[i-1]).String() >= object.KeyOf(o).String() {
			return fmt.Errorf("G9: %s is out of order", sim.Describe(o))
		}
	}
	return nil
}

// true finds for each object a moment in the server's history at which it was as shown. The
// moment is no earlier than what was shown before, what the watch has delivered, and own writes.
func (s *slot) true(m *model, now []*unstructured.Unstructured, written map[storedKey]int) error {
	got := map[object.Key]*unstructured.Unstructured{}
	for _, o := range now {
		got[object.KeyOf(o)] = o
		if err := m.Showed(s.resource, o); err != nil {
			return err
		}
	}
	for _, key := range modelKeys {
		least := s.since[key]
		if !s.free {
			least = max(least, s.least[key], written[storedKey{s.resource, key}])
		}
		moment, ok := s.moment(m.Server, key, got[key], least)
		if !ok {
			return fmt.Errorf("G2, G4, G5: %s shown, which is not true of %s since version %d (shown before %d, position %d, written %d):\n%s",
				sim.Describe(got[key]), key, least, s.since[key], s.least[key], written[storedKey{s.resource, key}], m.Story(s.resource, key))
		}
		s.since[key] = moment
	}
	return nil
}

// moment returns the first version, from least on, at which the query had the object as shown.
func (s *slot) moment(m *sim.Server, key object.Key, shown *unstructured.Unstructured, least int) (int, bool) {
	return m.Moment(s.resource, key, least, func(o *unstructured.Unstructured) bool {
		if !s.shows(o) {
			return shown == nil
		}
		return shown != nil && o.GetUID() == shown.GetUID() && o.GetResourceVersion() == shown.GetResourceVersion()
	})
}

// atRest compares the last snapshot with the server, and looks for memory that is still held.
func (r *modelReader) atRest() error {
	m := r.model
	if r.waiting != nil {
		return fmt.Errorf("never shown: %v", r.waiting)
	}
	if r.notes.flag.Load() {
		return errors.New("noted, and there is nothing")
	}
	for _, st := range r.a.Status() {
		i := slices.Index(modelFields, st.Name)
		if st.Pending != 0 || st.Unsettled != 0 || st.Error != "" || st.State != stream.Synced {
			return fmt.Errorf("status at rest: %+v", st)
		}
		s := r.slots[i]
		m.Mu.Lock()
		want := 0
		for _, u := range m.Now[s.resource] {
			if s.shows(u) {
				want++
			}
		}
		rev := m.Rev
		m.Mu.Unlock()
		if len(s.replay) != want {
			return fmt.Errorf("query %s shows %d objects, the server has %d", st.Name, len(s.replay), want)
		}
		s.least, s.free = map[object.Key]int{}, false
		for _, key := range modelKeys {
			s.least[key] = rev
		}
		if err := s.true(m, r.snap.field(i), nil); err != nil {
			return err
		}
		f := r.field(i)
		for _, l := range f.Query.Listeners() {
			if err := residueOf(l); err != nil {
				return fmt.Errorf("query %s: %w", st.Name, err)
			}
		}
		if waits := f.Query.State().Waits; waits != (query.Waits{}) {
			return fmt.Errorf("query %s: %+v", st.Name, waits)
		}
	}
	return nil
}

// residueOf returns an error if a listener and its stream still hold something when all is read.
func residueOf(l *stream.Listener) error {
	held := l.Stage().Held()
	if held.Dirty != 0 || held.Waiters != 0 || held.GivenUp || held.Expiring {
		return fmt.Errorf("held: %+v", held)
	}
	return nil
}
