package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
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
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// referring is a snapshot whose objects refer to others.
type referring struct {
	A []*unstructured.Unstructured
	L tables.Lookup[*unstructured.Unstructured]
}

func referringQueries() []query.Query { return []query.Query{keyed("A", "as"), sim.Query("L", "ls")} }

// readModel is the simulated server, partitions that look things up, and what each turn has read.
type readModel struct {
	upheld
	held []*readTurn
	over []*readTurn
	keys map[string]*readTruth
	// seen is, for each object, the version of the server of which a turn was last shown it
	seen map[storedKey]int
}

// readTurn is a turn, what it shows, and what it has looked up.
type readTurn struct {
	*Turn
	at   map[string]string                         // versions of the key's objects
	seen map[object.Key]*unstructured.Unstructured // that can be looked up
	read map[string]string                         // the results by what it looked up
}

// readTruth is what the test knows about a key.
type readTruth struct {
	part   *partition
	last   map[string]string // the key's objects at its last turn
	read   map[string]string // what the last turn that ended had read
	seen   map[storedKey]int // like that of the model
	failed bool
	held   bool
}

// TestModelG4G5G6APartitionIsActivatedByWhatItHasReadAndByNothingElse lets objects come, change,
// and go between partitions. Turns look objects up by name and by selector. This client and others
// write these objects before, during and after the turns, which succeed or fail. Every look-up
// shows the state of its turn. A turn comes only if its objects, or what the last turn has read,
// have changed. At rest nothing has.
func TestModelG4G5G6APartitionIsActivatedByWhatItHasReadAndByNothingElse(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		s := sim.DrawScript(rt)
		pace := rapid.SampledFrom([]time.Duration{0, second}).Draw(rt, "pace")
		var err error
		synctest.Test(t, func(*testing.T) { err = runReadScript(s, pace, step) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func runReadScript(s sim.Script, pace time.Duration, taken func()) error {
	m := &readModel{keys: map[string]*readTruth{}, seen: map[storedKey]int{}}
	m.resources, m.names, m.written = []string{"as", "ls"}, []string{"x", "y", "z"}, map[storedKey]int{}
	m.Server = sim.New()
	m.Streams = streamset.New(stream.Config{Source: sim.Plain(m.Source), StreamLists: s.Stream, Points: m.gates.Reached})
	defer m.end()
	var err error
	m.p, err = Start(context.Background(), m.Streams, reflect.TypeFor[referring](), referringQueries(), Options{
		Options: collect.Options{Pace: collect.Pace{Interval: pace}}, Backoff: partBackoff,
	})
	if err != nil {
		return err
	}
	for i, step := range s.Steps {
		m.gates.Step()
		if c := m.goOn(); c != nil {
			if _, err := m.returned(c); err != nil {
				return fmt.Errorf("step %d: a Next that was held up: %w", i, err)
			}
		}
		if err := m.do(step); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		taken()
	}
	return m.settle()
}

func (m *readModel) do(s sim.Step) error {
	switch {
	case s.Op < 40:
		m.write(s)
	case s.Op < 60:
		var gate *sim.Gate
		if s.C%3 != 0 {
			gate = nextGate(s)
		}
		_, err := m.next(gate)
		return err
	case s.Op < 78 && len(m.held) > 0:
		return m.held[s.A%len(m.held)].look(s)
	case s.Op < 82 && len(m.over) > 0:
		return m.over[s.A%len(m.over)].look(s) // this look-up is not recorded
	case s.Op < 92 && len(m.held) > 0:
		m.done(s.A%len(m.held), s.B%4 == 0)
	case s.Op < 94:
		m.relist(s, s.B%2 == 0)
	case s.Op < 98:
		sim.After(sim.ModelPauses[s.A%4])
	default:
		return m.settle()
	}
	return nil
}

// write creates, changes or deletes an object, as this client or another.
func (m *readModel) write(s sim.Step) {
	resource, kinds := "as", []string{"a", "b", "a.b", "c", ""}
	if s.A%3 > 0 {
		resource, kinds = "ls", []string{"v", "w", "", "v"}
	}
	name := []string{"x", "y", "z"}[s.B%3]
	byUs := s.C%2 == 0
	old := m.Now[resource][object.Key{Namespace: "ns", Name: name}]
	if byUs && s.C%3 != 0 {
		m.commitGate(name, s)
	}
	if old != nil && s.C%5 == 0 {
		if byUs {
			m.own(resource, name, func() { m.Client.Delete(resource, name, 0, true) })
		} else {
			m.Remove(resource, name)
		}
		return
	}
	u := sim.Thing(name, "k", kinds[s.C/5%len(kinds)])
	if old != nil {
		u.SetUID(old.GetUID())
	}
	if byUs {
		m.own(resource, name, func() { m.Put(resource, u, 0) })
	} else {
		m.Create(resource, u)
	}
}

// next takes a turn, if there is one and no gate holds Next up.
func (m *readModel) next(gate *sim.Gate) (bool, error) {
	c := m.call(gate)
	if c == nil {
		return false, nil
	}
	return m.returned(c)
}

// returned checks that a turn shows what is so, and has a reason.
func (m *readModel) returned(c *nextCall) (bool, error) {
	if c.err != nil {
		return false, nil
	}
	turn := c.turn
	k := m.keys[turn.Key]
	if k == nil || k.part != turn.part { // the key was forgotten, and exists again
		k = &readTruth{part: turn.part, seen: map[storedKey]int{}}
		m.keys[turn.Key] = k
	}
	t := &readTurn{Turn: turn, at: map[string]string{}, seen: map[object.Key]*unstructured.Unstructured{}, read: map[string]string{}}
	if err := m.content(c, t); err != nil {
		return false, err
	}
	switch {
	case k.held:
		return false, fmt.Errorf("%s is held by two", t.Key)
	case k.last == nil || k.failed || t.Gone:
	case maps.Equal(k.last, t.at) && !differs(k.read, t.seen):
		return false, fmt.Errorf("%s was handed out for nothing: %v, read %v", t.Key, t.at, k.read)
	}
	if err := k.explained(t); err != nil {
		return false, err
	}
	k.held, k.last = true, t.at
	if t.Gone {
		k.last = nil
	}
	m.held = append(m.held, t)
	return true, nil
}

// content notes what a turn shows. Each object is as it was at a version of the server: no earlier
// than Next must show, and than a turn showed before.
func (m *readModel) content(c *nextCall, t *readTurn) error {
	own := map[object.Key]*unstructured.Unstructured{}
	for _, u := range t.Snapshot.(*referring).A {
		own[object.KeyOf(u)] = u
		t.at[u.GetName()] = sim.VersionOf(u)
	}
	for key, placed := range m.p.indexes.fields[1].Shown.objects {
		t.seen[key] = placed.source().(*unstructured.Unstructured)
	}
	for k, least := range c.least {
		shows, got := t.seen, m.seen
		if k.resource == "as" {
			shows, got = own, m.keys[t.Key].seen
		}
		least = max(least, got[k])
		moment, ok := m.Moment(k.resource, k.Key, least, func(u *unstructured.Unstructured) bool {
			if u == nil || k.resource == "as" && !slices.Contains(byLabel(u), t.Key) {
				return shows[k.Key] == nil
			}
			return shows[k.Key] != nil && versionOf(u) == versionOf(shows[k.Key])
		})
		if !ok {
			return fmt.Errorf("G2, G4, G5: %s has %s, which is not true of %v since version %d (shown before %d, written %d):\n%s",
				t.Key, sim.Describe(shows[k.Key]), k, least, got[k], m.written[k], m.Story(k.resource, k.Key))
		}
		got[k] = moment
	}
	return nil
}

// explained returns an error unless the differences of the turn match what it has read.
func (k *readTruth) explained(t *readTurn) error {
	want := map[string]bool{}
	for what, was := range k.read {
		if is := serverSays(t.seen, what); is != was {
			for _, name := range strings.Fields(was + " " + is) {
				if strings.Contains(was, name) != strings.Contains(is, name) {
					want[strings.Split(name, "@")[0]] = true
				}
			}
		}
	}
	got := map[string]bool{}
	for _, d := range t.Differences {
		if d.Query == "L" && d.New != nil {
			got[d.New.GetName()] = true
		} else if d.Query == "L" {
			got[d.Old.GetName()] = true
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("G7: %s: differences of %v, want %v", t.Key, got, want)
	}
	return nil
}

func (m *readModel) objectsOf(key string) map[string]string {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	all := map[string]string{}
	for _, u := range m.Now["as"] {
		if slices.Contains(byLabel(u), key) {
			all[u.GetName()] = sim.VersionOf(u)
		}
	}
	return all
}

func (m *readModel) lookable() map[object.Key]*unstructured.Unstructured {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return maps.Clone(m.Now["ls"])
}

// lookFor looks up a name, or "namespace?selector".
func lookFor(what string, get func(string, string) (*unstructured.Unstructured, bool), list func(string, labels.Selector) []*unstructured.Unstructured) (text string) {
	namespace, selector, selects := strings.Cut(what, "?")
	if !selects {
		if u, found := get("ns", what); found {
			text = sim.VersionOf(u)
		}
		return text
	}
	s, _ := labels.Parse(selector)
	for _, u := range list(namespace, s) {
		text += sim.VersionOf(u) + " "
	}
	return text
}

// serverSays returns what the server would answer.
func serverSays(objects map[object.Key]*unstructured.Unstructured, what string) string {
	return lookFor(what, func(namespace, name string) (*unstructured.Unstructured, bool) {
		u := objects[object.Key{Namespace: namespace, Name: name}]
		return u, u != nil
	}, func(namespace string, s labels.Selector) (all []*unstructured.Unstructured) {
		for _, key := range slices.SortedFunc(maps.Keys(objects), object.Compare) {
			if (namespace == "" || namespace == key.Namespace) && s.Matches(labels.Set(objects[key].GetLabels())) {
				all = append(all, objects[key])
			}
		}
		return all
	})
}

// differs reports whether a look-up would have another result now.
func differs(read map[string]string, now map[object.Key]*unstructured.Unstructured) bool {
	for what, was := range read {
		if serverSays(now, what) != was {
			return true
		}
	}
	return false
}

// look looks something up in a turn, or after it.
func (t *readTurn) look(s sim.Step) error {
	what := []string{"x", "y", "z", "none", "?k=v", "ns?k!=v", "ns?", "other?k=w"}[s.B%8]
	look := t.Snapshot.(*referring).L
	got := lookFor(what, func(namespace, name string) (*unstructured.Unstructured, bool) {
		u, err := look.Get(namespace, name)
		return u, err == nil
	}, func(namespace string, s labels.Selector) []*unstructured.Unstructured {
		all, _ := look.List(namespace, s)
		return all
	})
	if want := serverSays(t.seen, what); got != want {
		return fmt.Errorf("G4, G10: %s reads %q as %q, want %q", t.Key, what, got, want)
	}
	if !t.ended.Load() {
		t.read[what] = got
	}
	return nil
}

func (m *readModel) done(i int, failed bool) {
	t := m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	m.over = append(m.over, t)
	k := m.keys[t.Key]
	k.held, k.failed, k.read = false, failed, t.read
	if failed {
		m.ended(t.Turn, errors.New("oops"))
		return
	}
	m.ended(t.Turn, nil)
}

// settle takes and ends all turns until there is none, and looks for lost turns and memory that
// is left.
func (m *readModel) settle() error {
	m.Mu.Lock()
	m.Oldest = 0
	m.Mu.Unlock()
	m.gates.Release()
	if c := m.goOn(); c != nil {
		if _, err := m.returned(c); err != nil {
			return fmt.Errorf("a Next that was held up until the end: %w", err)
		}
	}
	for more := true; more; {
		for len(m.held) > 0 {
			m.done(0, false)
		}
		sim.After(time.Minute)
		for {
			got, err := m.next(nil)
			if err != nil {
				return fmt.Errorf("at rest: %w", err)
			}
			if more = len(m.held) > 0; !got {
				break
			}
		}
	}
	reading := 0
	for key, k := range m.keys {
		objects := m.objectsOf(key)
		if m.p.scheduler.parts[key] == nil && len(objects) == 0 {
			continue
		}
		if !maps.Equal(objects, k.last) || differs(k.read, m.lookable()) {
			return fmt.Errorf("%s was lost: it had %v and read %v, the server has %v and %v", key, k.last, k.read, objects, m.lookable())
		}
		reading += len(k.read)
	}
	rs := m.p.scheduler.readers[1]
	if reading == 0 && len(rs.names)+len(rs.selected) > 0 {
		return fmt.Errorf("G6: nobody has read anything, and %v %v are left", rs.names, rs.selected)
	}
	if n := busyKeys(m.p); n > 0 {
		return fmt.Errorf("G6: %d keys wait or are held", n)
	}
	for _, part := range m.p.scheduler.parts {
		if n := len(part.shares[1].dirty) + len(part.shares[1].meanwhile); n > 0 {
			return fmt.Errorf("G6: %s has %d look-ups left", part.Key, n)
		}
	}
	return nil
}
