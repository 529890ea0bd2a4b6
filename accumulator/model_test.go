package accumulator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// model is the simulated server, its clients, and what the test knows about them.
type model struct {
	*sim.Server
	script  sim.Script
	streams *streamset.Set
	queries []query.Query
	readers []*modelReader
	gates   sim.Gates
	writing sync.WaitGroup
	begun   int          // goroutines that wait for their time
	landing atomic.Int32 // own writes that the streams take in, one stream after the other
	// latest is the object that was written last. asked is the reader that was last held up, or
	// could have been. Most steps choose these: bugs need several things to happen to one object,
	// and to one reader, before, at, and after a gate.
	latest storedKey
	asked  *modelReader

	truth   sync.Mutex
	written map[storedKey]int // the version of the server after an own write
	synced  int               // the server's version at the call of the latest Sync that returned
	moved   bool              // a version was not served: a Sync waits for none that is not
	prefer  int               // which of the versions discovery says, where both are served
}

type storedKey struct {
	resource string
	object.Key
}

var (
	modelKeys      = []object.Key{{Namespace: "ns1", Name: "a"}, {Namespace: "ns1", Name: "b"}, {Namespace: "ns2", Name: "a"}}
	modelResources = []string{"as", "bs"}
)

// modelStride makes queries of several streams likely: small numbers are drawn more often. It has
// no common factor with the number of queries.
const modelStride = 12

// selected returns a selection by fields.
func selected(by string) object.Selection {
	return object.Selection{Fields: fields.ParseSelectorOrDie(by)}
}

// onFirstNode lets in the objects of one node.
var onFirstNode = &object.Where{Do: func(o object.Object) (bool, error) {
	node, _, err := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "spec", "node")
	return node == "n1", err
}}

// modelQueries returns the queries of readers: with and without selectors, with selectors that
// only the server can judge, of another version of the same stored resource, with alternatives,
// sets of namespaces, and with a filter of the program.
func modelQueries(m *model) []query.Query {
	in := labels.SelectorFromSet(labels.Set{"in": "yes"})
	out := labels.SelectorFromSet(labels.Set{"in": "no"})
	node := fields.OneTermEqualSelector("spec.node", "n1")
	all := []query.Query{{}, {Labels: in}, {Fields: node}, {Namespace: "ns1"}, {Labels: in, Fields: node}, {}, {}, {Labels: in}}
	all = append(all,
		query.Query{AnyOf: []object.Selection{{Labels: in}, {Fields: node}}},
		query.Query{AnyOf: []object.Selection{{Labels: in}, {Labels: out}}},
		query.Query{AnyOf: []object.Selection{{}, {Labels: in}}},
		query.Query{AnyOf: []object.Selection{{Labels: in}, {Labels: labels.SelectorFromSet(labels.Set{"in": "never"})}}},
		query.Query{Namespaces: []string{"ns1", "ns2"}},
		query.Query{Namespaces: []string{"ns2", "ns1"}, AnyOf: []object.Selection{{Fields: node}, {Labels: in}}},
		query.Query{Namespaces: []string{"ns2", "ns1"}, Labels: in},
		query.Query{Spaces: &query.Spaces{Resolve: func(context.Context) (object.Resource, error) {
			r := sim.Resource("namespaces")
			r.Namespaced = false
			return r, nil
		}}},
		query.Query{Namespaces: []string{"ns1"}},
		// Names and namespaces that overlap, and some that do not.
		query.Query{AnyOf: []object.Selection{selected("metadata.namespace=ns1,metadata.name=a"), selected("metadata.namespace=ns2")}},
		query.Query{AnyOf: []object.Selection{selected("metadata.name=a"), selected("metadata.namespace=ns1,metadata.name=b"), {Labels: in, Fields: selected("metadata.namespace=ns1,metadata.name=a").Fields}}},
		query.Query{AnyOf: []object.Selection{selected("metadata.name=a,spec.node=n1"), {Labels: in, Fields: selected("metadata.name=a").Fields}, selected("metadata.name=b")}},
		query.Query{Namespaces: []string{"ns1", "ns2"}, Fields: node, AnyOf: []object.Selection{selected("metadata.name=a"), {Labels: out}, {Labels: in}}},
		query.Query{Namespace: "ns1", AnyOf: []object.Selection{selected("metadata.name=b"), {Fields: node}}},
		query.Query{AnyOf: []object.Selection{{Labels: in}, {Fields: node}, selected("metadata.name=a,spec.node!=n1")}},
		// A filter of the program.
		query.Query{Where: onFirstNode},
		query.Query{Namespaces: []string{"ns1", "ns2"}, Labels: in, Where: onFirstNode},
	)
	for i := range all {
		resource := sim.Resource(modelResources[0])
		switch {
		case i == 5:
			resource.Version = "v2"
		case i == 6, i == 7:
			resource = sim.Resource(modelResources[1])
		}
		if all[i].AnyOf != nil { // without it, only the server can judge
			resource.Field = sim.Field
		}
		all[i].Kind = resource.Version + resource.GroupVersionResource.Resource
		all[i].Resolve = func(context.Context) (object.Resource, error) { return m.inServed(resource), nil }
	}
	return all
}

// TestModelG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming mixes own and foreign writers, watches
// that are late and break, lists from old caches, failing requests, and readers that come and go,
// in every order that chance makes. After every Update it compares the snapshot with the server's
// history.
//
// It takes 5,000 steps (2,000 under the race detector), or as many as the flag -steps says
// (package rounds). A step with nothing to do does not count. Reproduce a failure with
// -rapid.seed or -rapid.failfile, as rapid says.
func TestModelG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		s := sim.DrawScript(rt)
		var err error
		synctest.Test(t, func(*testing.T) { err = runScript(s, step) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func runScript(s sim.Script, taken func()) error { return runScriptOn(s, taken, modelQueries) }

// savedQueries are those that there were when scripts were saved as tests.
func savedQueries(m *model) []query.Query { return modelQueries(m)[:17] }

// runSaved runs a script that was saved.
func runSaved(s sim.Script) error { return runScriptOn(s, func() {}, savedQueries) }

func runScriptOn(s sim.Script, taken func(), queries func(*model) []query.Query) error {
	m := &model{Server: sim.New(), script: s, written: map[storedKey]int{}}
	m.queries = queries(m)
	m.DelayOf = m.latency(0, 0)
	if s.LastStates {
		m.LastState = func(e sim.Event) bool { return e.Rev%2 == 0 }
	}
	for _, name := range []string{"ns1", "ns2"} {
		m.Create("namespaces", sim.In("", name))
	}
	m.streams = streamset.New(stream.Config{
		Source: sim.Plain(m.Source), StreamLists: s.Stream, PageSize: int64(s.Page), PendingMax: s.PendingMax, Grace: s.Grace, Share: s.Share,
		Points: m.gates.Reached, ObjectsMax: 1000,
	})
	defer m.streams.Close()
	defer m.writing.Wait()
	defer m.gates.Open()
	if err := m.join(s.First...); err != nil {
		return err
	}
	for i, step := range s.Steps {
		m.gates.Step()
		err := m.goOn()
		done := false
		if err == nil {
			done, err = m.do(step)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if done {
			taken()
		}
	}
	return m.settle()
}

// do takes one step, and reports whether there was something to do. Of the numbers, the first
// ones are likelier the wider their range.
func (m *model) do(s sim.Step) (done bool, err error) {
	resource, key, verb := modelResources[s.A%4/3], modelKeys[s.B%len(modelKeys)], sim.Verbs[s.C%len(sim.Verbs)]
	reader := m.readers[s.A%len(m.readers)]
	if s.B/3%4 != 0 && m.latest.resource != "" { // once more
		resource, key = m.latest.resource, m.latest.Key
	}
	if s.B/3%4 != 0 && slices.Contains(m.readers, m.asked) {
		reader = m.asked
	}
	if s.C/8%3 == 0 {
		verb = "delete"
	}
	if s.Op < 36 {
		m.latest = storedKey{resource, key}
	}
	switch {
	case s.Op < 15:
		if _, done = m.Server.Do(resource, key, verb, s.A+s.B+s.C); s.C/4%2 == 0 {
			m.rest()
		}
		return done, nil
	case s.Op < 36:
		return m.own(resource, key, verb, s), nil
	case s.Op < 57:
		return m.update(reader, key, s)
	case s.Op < 60:
		return true, m.replace(reader, s)
	case s.Op < 65:
		p := sim.OtherPoints[s.A%len(sim.OtherPoints)]
		m.gates.Close(sim.Gate{Point: p, Key: key, Shard: s.B % sim.Shards, Skip: s.B / sim.Shards % 2, Steps: 1 + s.C%8})
	case s.Op < 75:
		pause := sim.ModelPauses[s.A%len(sim.ModelPauses)]
		sim.After(pause)
		return pause > 0, nil
	case s.Op < 80:
		m.slow(s)
	case s.Op < 83:
		if s.C%2 == 0 {
			m.Cut()
		} else {
			m.moving(s.A%2 == 0)
		}
	case s.Op < 86:
		m.Bookmarks()
	case s.Op < 89:
		m.failing(s)
	case s.Op < 92:
		m.old(s)
	case s.Op < 94:
		m.syncing()
	case s.Op < 97:
		if len(m.readers) >= 6 {
			return false, nil
		}
		return true, m.join(s.A, s.B, s.C)
	case s.Op >= 106:
		return m.serve(s.A), nil
	case s.Op >= 103:
		m.Reschema()
		if s.A%2 == 0 {
			m.Relist()
		}
	case s.Op >= 100:
		return true, m.removeAndAdd(reader, s)
	default:
		if len(m.readers) == 1 {
			return false, nil
		}
		i := s.A % len(m.readers)
		if m.readers[i].running != nil {
			return false, nil
		}
		m.readers[i].a.Close()
		m.readers = append(m.readers[:i], m.readers[i+1:]...)
	}
	return true, nil
}

// own writes as this client. The answer comes at once or later, or never. It reports whether the
// server did anything.
func (m *model) own(resource string, key object.Key, verb string, s sim.Step) bool {
	w := m.streams.Begin(m.inServed(sim.Resource(resource)), key)
	a, ok := m.Server.Do(resource, key, verb, s.A+s.B+s.C)
	if !ok || s.A == 0 { // refused, or the connection is lost
		w.Abandon()
		return ok
	}
	answered := func() {
		m.landing.Add(1)
		defer m.landing.Add(-1)
		out := intake.Outcome{Write: a.Write(key)}
		if verb == "delete" && (s.A+s.B+s.C)%5 == 0 { // nobody can read the answer
			out = intake.Outcome{Write: coherence.Write{Key: key}, Unknown: true}
		}
		if w.Commit(context.Background(), out) != nil {
			return // not settled: the watch will show it
		}
		m.truth.Lock()
		defer m.truth.Unlock()
		k := storedKey{resource, key}
		m.written[k] = max(m.written[k], a.Rev)
	}
	m.later(sim.ModelPauses[s.B/3%4], answered)
	return true
}

// later starts a goroutine that does something after a pause. No two of them have the same time.
func (m *model) later(pause time.Duration, do func()) {
	if m.begun++; pause > 0 {
		pause += time.Duration(m.begun%1000) * time.Microsecond
	}
	m.writing.Go(func() {
		sim.After(pause)
		do()
	})
	synctest.Wait()
}

// rest waits until everything that is not late has arrived.
func (m *model) rest() {
	sim.After(2 * time.Millisecond)
	synctest.Wait()
}

// goOn releases the goroutines that have been held up for long enough, one after the other, and
// checks the readers.
func (m *model) goOn() error {
	synctest.Wait()
	for m.gates.Next() {
		synctest.Wait()
	}
	for i, r := range m.readers {
		if r.running == nil || !r.running.over.Load() {
			continue
		}
		c := r.running
		r.running = nil
		if err := r.updated(c); err != nil {
			return fmt.Errorf("an Update of reader %d that was held up: %w", i, err)
		}
	}
	return nil
}

func (m *model) syncing() {
	m.Mu.Lock()
	now := m.Rev
	m.Mu.Unlock()
	m.later(0, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		if m.streams.Sync(ctx) == nil {
			m.truth.Lock()
			defer m.truth.Unlock()
			if !m.moved {
				m.synced = max(m.synced, now)
			}
		}
	})
}

// join starts a reader of some queries.
func (m *model) join(which ...int) error {
	r := &modelReader{model: m}
	for i, n := range which {
		q := m.queries[n*modelStride%len(m.queries)]
		q.Name = modelFields[i]
		resource, _ := q.Resolve(context.Background())
		r.queries = append(r.queries, q)
		r.slots = append(r.slots, newSlot(resource, q))
	}
	var err error
	r.a, err = New(context.Background(), m.streams, r.queries, collect.Options{Noted: &r.notes.flag})
	m.readers = append(m.readers, r)
	return err
}

// settle waits until all goroutines are idle, and looks for what is left.
func (m *model) settle() error {
	m.Mu.Lock()
	m.Fail, m.Lag, m.DelayOf, m.ListDelay, m.ListAnswer, m.Oldest = nil, nil, m.latency(0, 0), nil, nil, 0
	m.Mu.Unlock()
	m.gates.Open()
	m.writing.Wait()
	if err := m.goOn(); err != nil {
		return err
	}
	for i := range 3 {
		sim.After(5 * time.Minute)
		m.Create("others", sim.Thing(fmt.Sprint(i))) // there is always some write in a cluster
		m.Bookmarks()
	}
	for i, r := range m.readers {
		m.rest()
		if err := r.update(); err != nil {
			return fmt.Errorf("at rest: %w", err)
		}
		if len(r.waiting) > 0 { // what was read just now may be newer than what waits: the server is asked
			sim.After(time.Minute)
			m.rest()
			if err := r.update(); err != nil {
				return fmt.Errorf("at rest: %w", err)
			}
		}
		if err := r.atRest(); err != nil {
			return fmt.Errorf("G6: reader %d: %w", i, err)
		}
	}
	if err := m.reschemed(); err != nil {
		return fmt.Errorf("G6: after another list: %w", err)
	}
	if counted, stored := m.streams.Taken(), m.streams.Stored(); counted != stored {
		return fmt.Errorf("G3: %d objects are stored, and %d are counted", stored, counted)
	}
	return nil
}
