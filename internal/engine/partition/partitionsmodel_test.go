package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// partScript is everything that chance decides.
type partScript struct {
	Quiet bool // own writes are quiet
	Slow  bool // watches are late: only own writes arrive
	Bugs  bool // the key function panics over some objects
	Gates bool // gates hold up what is under way, and watches end
	Pace  time.Duration
	Steps []sim.Step
}

var (
	partResources = []string{"as", "bs", "cs"}
	partNames     = []string{"x", "y", "z", "v"}
	partKeys      = [][]any{nil, {"k1"}, {"k2"}, {"k1", "k2"}, {"k3", "k3", "k1"}, {query.EveryPartition}, {"k2", query.EveryPartition}}
	partBackoff   = attempts.Backoff{First: 100 * time.Millisecond, Most: second}
)

// partModel is the simulated server, a client's partitions of it, and what the test knows about
// them.
type partModel struct {
	upheld
	script partScript
	held   []*Turn
	over   []*Turn
	keys   map[string]*partTruth
	// the wanted content when the partitions last took in changes
	taken map[string]map[string]string
	shown map[string]object.Object // by name, UID and version
}

// partTruth is what the test knows about a key.
type partTruth struct {
	must   map[string]int    // the versions of changes that need a turn, unless they are undone
	last   map[string]string // versions by field and name at the last turn
	replay map[string]string // the same, from the differences
	since  map[string]int    // the version of the server of which each object was shown
	// quietly has what own writes have taken away without owing a turn: the version that the
	// partitions had taken by then.
	quietly map[string]string
	held    bool
	fails   int
	rests   time.Time
}

// TestModelG4G5G6G7G9PartitionsAreTheModels mixes own and foreign writes of objects that come, go
// and move between keys, workers that succeed and fail, mispaired calls of Done, and time, in
// every order that chance makes. It compares every turn with the server: its objects, pointers,
// and differences. Each key is in one turn at a time, is due, and has waited for its backoff. At
// rest no turn is lost, and no memory is left.
func TestModelG4G5G6G7G9PartitionsAreTheModels(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		s := partScript{
			Quiet: rapid.Bool().Draw(rt, "quiet"), Slow: rapid.Bool().Draw(rt, "slow"), Bugs: rapid.Bool().Draw(rt, "bugs"), Gates: rapid.Bool().Draw(rt, "gates"),
			Pace:  rapid.SampledFrom([]time.Duration{0, second}).Draw(rt, "pace"),
			Steps: sim.DrawScript(rt).Steps,
		}
		var err error
		synctest.Test(t, func(*testing.T) { err = runPartScript(s, step) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func runPartScript(s partScript, taken func()) error {
	m := &partModel{script: s, keys: map[string]*partTruth{}, shown: map[string]object.Object{}}
	m.resources, m.names, m.written = partResources, partNames, map[storedKey]int{}
	m.Server = sim.New()
	m.Streams = streamset.New(stream.Config{Source: sim.Plain(m.Source), StreamLists: true, Points: m.gates.Reached})
	defer m.end()
	var queries []query.Query
	for i, resource := range partResources {
		q := sim.Query(modelFields[i], resource)
		if q.Key = partKey; resource == "cs" {
			q.Key = nil
		}
		queries = append(queries, q)
	}
	var err error
	m.p, err = Start(context.Background(), m.Streams, reflect.TypeFor[three](), queries, Options{
		Options: collect.Options{Pace: collect.Pace{Interval: s.Pace}, QuietOwnWrites: s.Quiet}, Backoff: partBackoff,
	})
	if err != nil {
		return err
	}
	if _, err := m.next(nil); err != nil { // its first lists are complete
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

// partKey returns the keys of an object.
func partKey(o object.Object) []string {
	u := o.(*unstructured.Unstructured)
	if broken, _, _ := unstructured.NestedBool(u.Object, "spec", "broken"); broken {
		panic("a bug")
	}
	keys, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "keys")
	return keys
}

func (m *partModel) do(s sim.Step) error {
	switch {
	case s.Op < 40:
		m.write(s)
	case s.Op < 65:
		var gate *sim.Gate
		if m.script.Gates && s.C%3 != 0 {
			gate = nextGate(s)
		}
		_, err := m.next(gate)
		return err
	case s.Op < 85 && len(m.held) > 0:
		m.done(s.A%len(m.held), s.B%3 == 0)
	case s.Op < 90 && len(m.over) > 0:
		m.over[s.A%len(m.over)].Done([]error{nil, errors.New("late")}[s.B%2])
	case s.Op < 92 && m.script.Gates:
		m.relist(s, s.B%2 == 0)
	case s.Op < 98:
		sim.After(sim.ModelPauses[s.A%4])
	default:
		return m.settle()
	}
	return nil
}

// write creates, changes, moves or deletes an object, as this client or another.
func (m *partModel) write(s sim.Step) {
	resource, name := partResources[s.A%3], partNames[s.B%len(partNames)]
	byUs := m.script.Slow || s.C%2 == 0
	if m.script.Slow {
		m.Mu.Lock()
		m.Delay = func(string) time.Duration { return sim.ModelPauses[s.C%4] }
		m.Mu.Unlock()
	}
	old := m.Now[resource][object.Key{Namespace: "ns", Name: name}]
	var u *unstructured.Unstructured
	if old == nil || s.C%5 != 0 {
		u = sim.Thing(name)
		if old != nil && s.C%7 != 0 {
			u.SetUID(old.GetUID())
		}
		u.Object["spec"] = map[string]any{"keys": partKeys[s.A/3%len(partKeys)], "broken": m.script.Bugs && s.C%11 == 0 && resource != "cs"}
	}
	// a deletion ends as an own one, which is under way, has left it
	quiet := m.script.Quiet && (byUs || u == nil && m.underWay(resource, name))
	if quiet {
		m.hide(s.A%3, name)
	}
	before := m.wanted()
	remove := func() { m.Client.Delete(resource, name, 0, true) }
	if byUs && m.script.Gates && s.C%3 != 0 {
		m.commitGate(name, s)
	}
	switch {
	case u == nil && byUs:
		m.own(resource, name, remove)
	case u == nil:
		m.Remove(resource, name)
	case byUs && (old == nil || u.GetUID() == ""):
		if old != nil {
			m.own(resource, name, remove)
			m.changed(before, quiet)
			before = m.wanted()
		}
		m.own(resource, name, func() { m.Put(resource, u, 0) })
	case byUs:
		m.own(resource, name, func() { m.Put(resource, u, 0) })
	default:
		m.Create(resource, u)
	}
	if m.script.Quiet && !m.script.Slow {
		synctest.Wait() // an own write hides a foreign one of its object that has not arrived
	}
	m.changed(before, quiet)
}

// hide notes that a quiet own write hides what others have written to its object, as far as that
// has not arrived, or has arrived while another own write was under way.
func (m *partModel) hide(field int, name string) {
	id, under := modelFields[field]+name, m.underWay(partResources[field], name)
	for _, k := range m.keys {
		if under || k.must[id] > m.position(id) {
			delete(k.must, id)
		}
	}
}

// position returns the newest version that a watch of the field of id has reached.
func (m *partModel) position(id string) (position int) {
	for _, l := range m.p.indexes.fields[slices.Index(modelFields, id[:1])].Query.Listeners() {
		position = max(position, sim.Revision(l.State().PositionRV))
	}
	return position
}

// changed notes which turns a write needs, from the state before it.
func (m *partModel) changed(before map[string]map[string]string, quiet bool) {
	now := m.wanted()
	for key := range before {
		m.truth(key)
	}
	for key := range now {
		m.truth(key)
	}
	for key, k := range m.keys {
		ids := maps.Clone(before[key])
		if ids == nil {
			ids = map[string]string{}
		}
		maps.Copy(ids, now[key])
		for id := range ids {
			version, shared := now["shared"][id]
			switch {
			// it came and went
			case now[key][id] == "" && (k.last[id] == "" || m.script.Quiet && m.taken[key][id] == ""):
				delete(k.must, id)
			// so it did, unseen: the watch has not shown that it came, and ends with a list
			case now[key][id] == "" && !quiet && m.script.Gates && k.must[id] > m.position(id) &&
				k.quietly[id] != "" && k.quietly[id] == m.taken[key][id]:
				delete(k.must, id)
			case now[key][id] == "" && quiet:
				if delete(k.quietly, id); k.must[id] == 0 {
					k.quietly[id] = m.taken[key][id]
				}
			case shared && before["shared"][id] == version && (before[key] == nil || now[key] == nil):
				// the key comes or goes, and the shared object is unchanged
			case !quiet && before[key][id] != now[key][id]:
				k.must[id] = m.now()
			}
		}
	}
}

func (m *partModel) truth(key string) *partTruth {
	if m.keys[key] == nil {
		m.keys[key] = &partTruth{
			must: map[string]int{}, last: map[string]string{}, replay: map[string]string{}, since: map[string]int{},
			quietly: map[string]string{},
		}
	}
	return m.keys[key]
}

// wanted returns the versions, by field and name, of each key that an object has.
func (m *partModel) wanted() map[string]map[string]string {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	all, shared := map[string]map[string]string{}, map[string]string{}
	for i, resource := range partResources {
		for _, u := range m.Now[resource] {
			keys, every, broken := placeOf(resource, u)
			id, version := modelFields[i]+u.GetName(), versionOf(u)
			switch {
			case broken:
			case every:
				shared[id] = version
			default:
				for _, key := range keys {
					if all[key] == nil {
						all[key] = map[string]string{}
					}
					all[key][id] = version
				}
			}
		}
	}
	for _, key := range all {
		maps.Copy(key, shared)
	}
	all["shared"] = shared
	return all
}

// placeOf returns the keys of an object, and whether all partitions have it, or the key function
// panics.
func placeOf(resource string, u *unstructured.Unstructured) (keys []string, every, broken bool) {
	keys, _, _ = unstructured.NestedStringSlice(u.Object, "spec", "keys")
	broken, _, _ = unstructured.NestedBool(u.Object, "spec", "broken")
	return keys, resource == "cs" || slices.Contains(keys, query.EveryPartition), broken
}

// broken reports whether an object exists whose keys are unknown.
func (m *partModel) broken() bool {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for _, objects := range m.Now {
		for _, u := range objects {
			if broken, _, _ := unstructured.NestedBool(u.Object, "spec", "broken"); broken {
				return true
			}
		}
	}
	return false
}
