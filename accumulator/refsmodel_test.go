package accumulator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestModelG1G4G5G6WhatIsShownNamesWhatIsKnown lets objects that name others come, change and go,
// and the named objects too. This client and others write them, while lists take their time, and
// requests fail. Whenever an object is shown, the objects that it names are known. At rest the
// snapshot matches the server, and only named objects are watched. The differences give the
// snapshot (G7).
func TestModelG1G4G5G6WhatIsShownNamesWhatIsKnown(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		s := sim.DrawScript(rt)
		var err error
		synctest.Test(t, func(*testing.T) { err = runRefScript(s, step) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// refModel is the simulated server, a snapshot of objects that name and are named, and the same
// snapshot made from its differences.
type refModel struct {
	sim.Client
	a       *Accumulator
	replay  map[string]bool
	last    map[string]int // the highest version shown, by field and name
	gates   sim.Gates
	tasks   sync.WaitGroup
	running *refCall // that is held up
	notes   notes
	wanted  query.Query // whose objects name others
	// late: a gate has held lists up, perhaps for longer than a named object is waited for. since
	// says when each was first named.
	late  bool
	since map[string]time.Time
	known map[string]bool // the named objects that were known when an Update had taken everything
}

// refCall is an Update.
type refCall struct {
	snap   two
	result Result
	err    error
	over   atomic.Bool
}

// refVariants are the queries that replace each other.
var refVariants = []query.Query{
	{}, {Namespaces: []string{"ns"}}, {Labels: labels.SelectorFromSet(labels.Set{"refs": "x"})},
	{AnyOf: []object.Selection{{Labels: labels.SelectorFromSet(labels.Set{"refs": "z"})}, {Labels: labels.SelectorFromSet(labels.Set{"refs": "x.y.none"})}}},
}

// wants reports whether an object is in the query that names others.
func (m *refModel) wants(u *unstructured.Unstructured) bool {
	q, has := m.wanted, labels.Set(u.GetLabels())
	return (q.Labels == nil || q.Labels.Matches(has)) &&
		(q.AnyOf == nil || slices.ContainsFunc(q.AnyOf, func(s object.Selection) bool { return s.Labels.Matches(has) }))
}

// refPoints are the points that an Update passes.
var refPoints = []stream.Point{stream.AtNamed, stream.AtNames, stream.AtTake, stream.AtTaken, stream.AtComplete}

func runRefScript(s sim.Script, taken func()) error {
	server := sim.New()
	m := &refModel{replay: map[string]bool{}, last: map[string]int{}, since: map[string]time.Time{}}
	m.Client = sim.NewClient(server, streamset.New(stream.Config{
		Source: sim.Plain(server.Source), StreamLists: s.Stream, Grace: s.Grace, Points: m.reached,
	}))
	defer m.Streams.Close()
	defer m.tasks.Wait()
	defer m.gates.Open()
	slow := func(string) time.Duration { return 30 * time.Millisecond }
	server.ListDelay, server.ListAnswer = slow, slow
	var err error
	if m.a, err = New(context.Background(), m.Streams, namingQueries(), collect.Options{Noted: &m.notes.flag}); err != nil {
		return err
	}
	for i, step := range s.Steps {
		m.gates.Step()
		err := m.goOn()
		if err == nil {
			err = m.do(step)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		taken()
	}
	return m.settle()
}

func (m *refModel) do(s sim.Step) error {
	switch {
	case s.Op < 50:
		m.write(s)
	case s.Op < 75:
		synctest.Wait()
		if s.C%3 != 0 && m.running == nil {
			m.gates.Close(sim.Gate{Point: refPoints[s.A%len(refPoints)], Skip: s.B % 3, Steps: 1 + s.C/3%6})
		}
		return m.look()
	case s.Op < 78:
		m.Cut()
	case s.Op < 80:
		m.wanted = refVariants[s.A%len(refVariants)]
		m.wanted.Name, m.wanted.Kind, m.wanted.Resolve = "A", "as", sim.Query("A", "as").Resolve
		return m.a.Replace(context.Background(), m.wanted)
	case s.Op < 84:
		m.late = true
		p := []stream.Point{stream.AtListed, stream.AtWatch, stream.AtList, stream.AtListed}[s.A%4]
		m.gates.Close(sim.Gate{Point: p, Shard: s.B % sim.Shards, Steps: 1 + s.C%8})
		if s.B/3%2 == 0 {
			m.Mu.Lock()
			m.Oldest = m.Rev + 1 // the streams list again
			m.Mu.Unlock()
			m.Cut()
		}
	case s.Op < 96:
		sim.After([]time.Duration{time.Millisecond, 40 * time.Millisecond, second, 15 * second}[s.A%4])
	default:
		return m.settle()
	}
	return nil
}

func (m *refModel) write(s sim.Step) {
	resource, name := []string{"as", "bs"}[s.A%2], []string{"x", "y", "z"}[s.B%3]
	old := m.Now[resource][object.Key{Namespace: "ns", Name: name}]
	byUs := s.C%2 == 0
	refs := []string{"x", "y", "x.y.none", "", "z", "x.x"}[s.C/2%6]
	for _, named := range strings.Split(refs, ".") {
		if m.since[named].IsZero() {
			m.since[named] = time.Now()
		}
	}
	if byUs && s.C/2%3 != 0 {
		p := []stream.Point{stream.AtCommit, stream.AtLand}[s.A/2%2]
		m.gates.Close(sim.Gate{Point: p, Key: object.Key{Namespace: "ns", Name: name}, Steps: 1 + s.B/3%8})
	}
	switch u := sim.Thing(name, "refs", refs); {
	case old != nil && s.C%5 == 0 && byUs:
		m.own(func() { m.Client.Delete(resource, name, 0, true) })
	case old != nil && s.C%5 == 0:
		m.Remove(resource, name)
	default:
		if old != nil {
			u.SetUID(old.GetUID())
		}
		if byUs {
			m.own(func() { m.Put(resource, u, 0) })
		} else {
			m.Create(resource, u)
		}
	}
}

// reached notes what is known when everything has been taken: later the names may be read again.
// Then a gate may hold the goroutine up.
func (m *refModel) reached(at stream.Moment) {
	if at.Point == stream.AtTaken {
		m.known = map[string]bool{}
		for _, name := range []string{"x", "y", "z", "none"} {
			m.known[name] = slices.ContainsFunc(m.a.collector.Fields()[0].Query.Listeners(), func(l *stream.Listener) bool {
				return l.Covers(object.Key{Namespace: "ns", Name: name}) && l.State().Ready()
			})
		}
	}
	m.gates.Reached(at)
}

// own writes as this client. A gate may hold it up.
func (m *refModel) own(write func()) {
	m.tasks.Go(write)
	synctest.Wait()
}

// goOn releases those that have been held up for long enough, one after the other.
func (m *refModel) goOn() error {
	synctest.Wait()
	for m.gates.Next() {
		synctest.Wait()
	}
	return m.looked()
}

// look takes a snapshot, if there is one, and no gate holds the Update up.
func (m *refModel) look() error {
	if m.running != nil {
		return nil
	}
	c := &refCall{}
	m.running = c
	m.notes.begin()
	m.tasks.Go(func() {
		c.result, c.err = m.a.Update(context.Background(), &c.snap, nil)
		c.over.Store(true)
	})
	synctest.Wait()
	m.gates.Clear(refPoints)
	return m.looked()
}

// looked checks the Update that is over, if there is one.
func (m *refModel) looked() error {
	if m.running == nil || !m.running.over.Load() {
		return nil
	}
	snap, r, err := m.running.snap, m.running.result, m.running.err
	m.running = nil
	if err != nil || !r.Complete {
		return err
	}
	if err := m.notes.check(r); err != nil {
		return err
	}
	shown := map[string]bool{}
	for i, objects := range [][]string{versions(snap.A), versions(snap.B)} {
		for _, o := range objects {
			shown["AB"[i:i+1]+o] = true
		}
	}
	for _, d := range r.Differences {
		if d.Old != nil {
			delete(m.replay, d.Query+sim.VersionOf(d.Old.(*unstructured.Unstructured)))
		}
		if d.New != nil {
			m.replay[d.Query+sim.VersionOf(d.New.(*unstructured.Unstructured))] = true
		}
	}
	if !maps.Equal(shown, m.replay) {
		return fmt.Errorf("G7: the differences give %v, the snapshot has %v", m.replay, shown)
	}
	for _, d := range r.Differences {
		if d.New == nil {
			continue
		}
		id, rev := d.Query+d.New.GetName(), sim.Revision(d.New.GetResourceVersion())
		if rev < m.last[id] {
			return fmt.Errorf("G5: %s at version %d, after %d", id, rev, m.last[id])
		}
		m.last[id] = rev
	}
	for _, u := range snap.A {
		keys, _ := inLabelOf(u)
		for _, key := range keys {
			patient := !m.late || time.Since(m.since[key.Name]) < refs.Patience
			if key.Name != "" && !m.known[key.Name] && patient {
				return fmt.Errorf("G1: %s is shown, and %s that it names is not known", u.GetName(), key.Name)
			}
		}
	}
	return nil
}

// versions returns the names of objects with their versions.
func versions(objects []*unstructured.Unstructured) (all []string) {
	for _, u := range objects {
		all = append(all, sim.VersionOf(u))
	}
	return all
}

// settle compares the snapshot with the server when all goroutines are idle.
func (m *refModel) settle() error {
	m.Mu.Lock()
	m.Oldest = 0
	m.Mu.Unlock()
	m.gates.Release()
	if err := m.goOn(); err != nil {
		return err
	}
	for range 2 { // the first one may show a query that was replaced
		sim.After(5 * time.Minute)
		synctest.Wait()
		if err := m.look(); err != nil {
			return err
		}
	}
	m.late = false // each named object is known
	clear(m.since)
	m.Mu.Lock()
	want, named := map[string]bool{}, map[string]bool{}
	for _, u := range m.Now["as"] {
		if !m.wants(u) {
			continue
		}
		want["A"+sim.VersionOf(u)] = true
		for _, name := range strings.Split(u.GetLabels()["refs"], ".") {
			named[name] = true
		}
	}
	delete(named, "")
	for _, u := range m.Now["bs"] {
		if named[u.GetName()] {
			want["B"+sim.VersionOf(u)] = true
		}
	}
	m.Mu.Unlock()
	if !maps.Equal(want, m.replay) {
		return fmt.Errorf("G6: the snapshot has %v, the server %v", m.replay, want)
	}
	f := m.a.collector.Fields()
	sim.After(5 * time.Minute) // streams that were left end
	synctest.Wait()
	watched := len(f[0].Query.Listeners())
	if n := f[0].Query.State().Waits.Named; n != len(named) || watched != n {
		return fmt.Errorf("G6: %d are watched by %d, and %v are named", n, watched, slices.Sorted(maps.Keys(named)))
	}
	if n := f[1].Query.State().Waits.Held; n > 0 {
		return fmt.Errorf("G6: %d wait", n)
	}
	if n := m.Streams.Len(); n != len(named)+len(f[1].Query.Listeners()) {
		return fmt.Errorf("G6: %d streams for %d names", n, len(named))
	}
	return nil
}
