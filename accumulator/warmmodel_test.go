package accumulator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// warmStep is a step of a script: what happens, and numbers that it may use.
type warmStep struct{ what, a, b int }

// warmModel is a program that is started again and again on a server, by itself and others.
type warmModel struct {
	*sim.Server
	files, older *sim.Files
	streams      *streamset.Set
	a            *Accumulator
	client       sim.Client
	own          map[object.Key]int // the version after an own write
	restored     bool               // a cluster was: W3 does not find everything where there is a selector
	warm, lists  int                // how streams have begun
	step         func()
}

func warmName(n int) string { return fmt.Sprint("x", n%5) }

func (m *warmModel) start() error {
	m.streams = streamset.New(stream.Config{Source: sim.Plain(m.Source), Warm: sim.Warm(m.files), PageSize: 2})
	in := sim.Query("B", "as")
	in.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
	var err error
	m.a, err = New(context.Background(), m.streams, []query.Query{sim.Query("A", "as"), in}, collect.Options{})
	m.client = sim.NewClient(m.Server, m.streams)
	m.own = make(map[object.Key]int)
	return err
}

// present waits for the first snapshot, and compares it with the server.
func (m *warmModel) present() error {
	for range 60 { // a plain start after all bounds takes less
		synctest.Wait()
		m.step()
		var snap two
		r, err := m.a.Update(context.Background(), &snap, nil)
		if err != nil {
			return err
		}
		if !r.Changed {
			sim.After(time.Second)
			continue
		}
		for _, q := range m.a.Status() {
			if q.Start == "warm" {
				m.warm++
			} else {
				m.lists++
			}
		}
		return m.compare(snap)
	}
	return fmt.Errorf("no snapshot: %v", m.a.Status())
}

// compare compares a snapshot with what the server has now.
func (m *warmModel) compare(snap two) error {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	var all, in []string
	for _, o := range m.At("as", m.Rev) {
		all = append(all, sim.VersionOf(o))
		if o.GetLabels()["in"] == "yes" {
			in = append(in, sim.VersionOf(o))
		}
	}
	var starts []string
	for _, q := range m.a.Status() {
		starts = append(starts, q.Start)
	}
	if got, want := warmVersions(snap.A), sorted(all); got != want {
		return fmt.Errorf("shows %s, and the server has %s at %d (%q)", got, want, m.Rev, starts)
	}
	if got, want := warmVersions(snap.B), sorted(in); got != want && !m.restored {
		return fmt.Errorf("by labels: shows %s, and the server has %s at %d (%q)", got, want, m.Rev, starts)
	}
	return nil
}

func warmVersions(all []*unstructured.Unstructured) string {
	var names []string
	for _, o := range all {
		names = append(names, sim.VersionOf(o))
	}
	return sorted(names)
}

func sorted(all []string) string {
	slices.Sort(all)
	return strings.Join(all, " ")
}

// look checks that own writes are shown, whatever the watch has brought.
func (m *warmModel) look() error {
	m.step() // beside what was done
	var snap two
	if _, err := m.a.Update(context.Background(), &snap, nil); err != nil {
		return err
	}
	for key, since := range m.own {
		var shown *unstructured.Unstructured
		for _, o := range snap.A {
			if o.GetName() == key.Name {
				shown = o
			}
		}
		if _, ok := m.Moment("as", key, since, func(u *unstructured.Unstructured) bool {
			return u == nil && shown == nil || u != nil && shown != nil && sim.VersionOf(u) == sim.VersionOf(shown)
		}); !ok {
			return fmt.Errorf("G4: %s is %s, written at %d", key, sim.Describe(shown), since)
		}
	}
	return nil
}

// do does a step.
func (m *warmModel) do(s warmStep) error {
	name := warmName(s.a)
	key := object.Key{Namespace: "ns", Name: name}
	m.Mu.Lock()
	_, there := m.Now["as"][key]
	m.Mu.Unlock()
	made := sim.Thing(name, "in", []string{"yes", "no"}[s.b%2], "n", fmt.Sprint(s.b))
	switch s.what {
	case 0, 1:
		m.Create("as", m.next(key, made))
	case 2:
		if there {
			m.Remove("as", name)
		}
	case 3:
		m.client.Put("as", m.next(key, made), 0)
		m.own[key] = m.rev()
	case 4:
		if there && m.client.Delete("as", name, 0, s.b%2 == 0) {
			m.own[key] = m.rev()
		}
	case 5:
		sim.After(time.Duration(1+s.b%3) * time.Minute)
	case 6:
		m.Bookmarks()
	case 7:
		m.Create("bs", sim.Thing(name))
	case 8:
		m.Late(time.Duration(s.b%3) * time.Second)
	case 9:
		m.older = m.files.Copy()
	default:
		return m.again(s)
	}
	return m.look()
}

// next is the next version of an object: it keeps its UID.
func (m *warmModel) next(key object.Key, made *unstructured.Unstructured) *unstructured.Unstructured {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if old := m.Now["as"][key]; old != nil {
		made.SetUID(old.GetUID())
	}
	return made
}

func (m *warmModel) rev() int {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.Rev
}

// again ends the program, lets something happen, and starts it.
func (m *warmModel) again(s warmStep) error {
	kept := m.files
	if s.b%3 == 0 { // it is killed
		kept = m.files.Copy()
	}
	m.streams.Close()
	m.files = kept
	switch s.a % 16 {
	case 1:
		m.files.Edit([]string{".base", ".changes", ""}[s.b%3], damaged)
	case 2:
		m.files.Edit([]string{".base", ".changes"}[s.b%2], lost)
	case 3:
		m.files = m.older.Copy()
	case 4:
		m.Mu.Lock()
		m.Oldest = m.Rev - s.b%4
		m.Mu.Unlock()
	case 5, 6:
		m.restored = true
		m.Restore(max(m.rev()-1-s.b%6, 100))
	}
	m.Late(0)
	m.step()
	for i := range s.b % 8 { // others write meanwhile
		m.step()
		name := warmName(s.a + i)
		key := object.Key{Namespace: "ns", Name: name}
		switch (s.a + i) % 3 {
		case 0:
			m.Create("as", m.next(key, sim.Thing(name, "in", "yes", "n", fmt.Sprint(i))))
		case 1:
			m.Create("bs", sim.Thing(name))
		case 2:
			m.Remove("as", name)
		}
	}
	if err := m.start(); err != nil {
		return err
	}
	return m.present()
}

func TestModelG4G5G6AWarmStartShowsThePresentWhateverWasKept(t *testing.T) {
	warm, lists := 0, 0
	rounds.Check(t, func(rt *rapid.T, step func()) {
		script := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) warmStep {
			return warmStep{rapid.IntRange(0, 13).Draw(t, "what"), rapid.IntRange(0, 39).Draw(t, "a"), rapid.IntRange(0, 23).Draw(t, "b")}
		}), 1, 40).Draw(rt, "script")
		var err error
		synctest.Test(t, func(*testing.T) {
			m := &warmModel{Server: sim.New(), files: &sim.Files{}, older: &sim.Files{}, step: step}
			if err = m.start(); err == nil {
				err = m.present()
			}
			for i, s := range script {
				if err == nil {
					step()
					if err = m.do(s); err != nil {
						err = fmt.Errorf("step %d %v: %w", i, s, err)
					}
				}
			}
			m.streams.Close()
			warm, lists = warm+m.warm, lists+m.lists
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
	if warm == 0 || lists == 0 {
		t.Errorf("%d streams have begun warm, and %d with lists", warm, lists)
	}
	t.Logf("%d streams have begun warm, and %d with lists", warm, lists)
}
