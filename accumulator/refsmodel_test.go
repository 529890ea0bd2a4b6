package accumulator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/suite/rounds"
)

// TestG1G4G5G6WhatIsShownNamesWhatIsKnown lets objects that name others come, change and go, and
// the named objects too. This client and others write them, while lists take their time, and
// requests fail. Whenever an object is shown, the objects that it names are known. At rest the
// snapshot matches the server, and only named objects are watched. The differences give the
// snapshot (G7).
func TestG1G4G5G6WhatIsShownNamesWhatIsKnown(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		s := drawScript(rt)
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
	own
	a      *Accumulator
	replay map[string]bool
}

func runRefScript(s script, taken func()) error {
	sim := newSim()
	m := &refModel{replay: map[string]bool{}}
	m.own = own{sim, stream.New(stream.Config{Source: plain(sim.source), StreamLists: s.Stream, Grace: s.Grace})}
	defer m.streams.Close()
	slow := func(string) time.Duration { return 30 * time.Millisecond }
	sim.listDelay, sim.listAnswer = slow, slow
	var err error
	if m.a, err = New(context.Background(), m.streams, namingQueries(), Options{}); err != nil {
		return err
	}
	for i, step := range s.Steps {
		if err := m.do(step); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		taken()
	}
	return m.settle()
}

func (m *refModel) do(s step) error {
	switch {
	case s.Op < 50:
		m.write(s)
	case s.Op < 75:
		synctest.Wait()
		return m.look()
	case s.Op < 78:
		m.cut()
	case s.Op < 96:
		after([]time.Duration{time.Millisecond, 40 * time.Millisecond, second, 15 * second}[s.A%4])
	default:
		return m.settle()
	}
	return nil
}

func (m *refModel) write(s step) {
	resource, name := []string{"as", "bs"}[s.A%2], []string{"x", "y", "z"}[s.B%3]
	old := m.now[resource][Key{Namespace: "ns", Name: name}]
	byUs := s.C%2 == 0
	switch u := thing(name, "refs", []string{"x", "y", "x.y.none", "", "z", "x.x"}[s.C/2%6]); {
	case old != nil && s.C%5 == 0 && byUs:
		m.own.delete(resource, name, 0, true)
	case old != nil && s.C%5 == 0:
		m.remove(resource, name)
	default:
		if old != nil {
			u.SetUID(old.GetUID())
		}
		if byUs {
			m.put(resource, u, 0)
		} else {
			m.create(resource, u)
		}
	}
}

// look takes a snapshot, if there is one.
func (m *refModel) look() error {
	var snap two
	r, err := m.a.Update(context.Background(), &snap, nil)
	if err != nil || !r.Complete {
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
			delete(m.replay, d.Query+versionOf(d.Old.(*unstructured.Unstructured)))
		}
		if d.New != nil {
			m.replay[d.Query+versionOf(d.New.(*unstructured.Unstructured))] = true
		}
	}
	if !maps.Equal(shown, m.replay) {
		return fmt.Errorf("G7: the differences give %v, the snapshot has %v", m.replay, shown)
	}
	refs := m.a.fieldsNow()[0].refs
	refs.mu.Lock()
	defer refs.mu.Unlock()
	for _, u := range snap.A {
		keys, _ := inLabelOf(u)
		for _, key := range keys {
			if key.Name == "" {
				continue
			}
			ref := refs.named[Key{Namespace: "ns", Name: key.Name}]
			if ref == nil || !ref.part.ready() {
				return fmt.Errorf("G1: %s is shown, and %s that it names is not known", u.GetName(), key.Name)
			}
		}
	}
	return nil
}

// versions returns the names of objects with their versions.
func versions(objects []*unstructured.Unstructured) (all []string) {
	for _, u := range objects {
		all = append(all, versionOf(u))
	}
	return all
}

// settle compares the snapshot with the server when all goroutines are idle.
func (m *refModel) settle() error {
	after(5 * time.Minute)
	synctest.Wait()
	if err := m.look(); err != nil {
		return err
	}
	m.mu.Lock()
	want, named := map[string]bool{}, map[string]bool{}
	for _, u := range m.now["as"] {
		want["A"+versionOf(u)] = true
		for _, name := range strings.Split(u.GetLabels()["refs"], ".") {
			named[name] = true
		}
	}
	delete(named, "")
	for _, u := range m.now["bs"] {
		if named[u.GetName()] {
			want["B"+versionOf(u)] = true
		}
	}
	m.mu.Unlock()
	if !maps.Equal(want, m.replay) {
		return fmt.Errorf("G6: the snapshot has %v, the server %v", m.replay, want)
	}
	f := m.a.fieldsNow()
	synctest.Wait()
	if n := len(f[0].refs.named); n != len(named) || len(f[0].parts) != n {
		return fmt.Errorf("G6: %d are watched by %d, and %v are named", n, len(f[0].parts), slices.Sorted(maps.Keys(named)))
	}
	if n := len(f[1].source.waiting.keys); n > 0 {
		return fmt.Errorf("G6: %d wait", n)
	}
	if n := m.streams.Len(); n != len(named)+1 {
		return fmt.Errorf("G6: %d streams for %d names", n, len(named))
	}
	return nil
}
