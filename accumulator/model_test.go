package accumulator

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/suite/rounds"
)

// step is one action of a script. The meaning of its parameters depends on the action.
type step struct{ Op, A, B, C int }

// script is everything that chance decides. It is drawn before the bubble starts.
type script struct {
	Stream     bool
	Page       int
	PendingMax int
	Grace      time.Duration
	First      []int // the queries of the first reader
	Steps      []step
}

func drawScript(t *rapid.T) script {
	small := rapid.IntRange(0, 59)
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{rapid.IntRange(0, 99).Draw(t, "op"), small.Draw(t, "a"), small.Draw(t, "b"), small.Draw(t, "c")}
	}), 20, 300)
	return script{
		Stream:     rapid.Bool().Draw(t, "stream"),
		Page:       rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "page"),
		PendingMax: rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "pending"),
		Grace:      rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "grace"),
		First:      rapid.SliceOfN(small, 2, 3).Draw(t, "first"),
		Steps:      steps.Draw(t, "steps"),
	}
}

// model is the simulated server, its clients, and what the test knows about them.
type model struct {
	*sim
	script  script
	streams *stream.Set
	queries []Query
	readers []*modelReader
	gates   gates
	writing sync.WaitGroup
	begun   int // goroutines that wait for their time
	// latest is the object that was written last. asked is the reader that was last held up, or
	// could have been. Most steps choose these: bugs need several things to happen to one object,
	// and to one reader, before, at, and after a gate.
	latest storedKey
	asked  *modelReader

	truth   sync.Mutex
	written map[storedKey]int // the version of the server after an own write
	synced  int               // the server's version at the call of the latest Sync that returned
}

type storedKey struct {
	resource string
	Key
}

var (
	modelKeys      = []Key{{Namespace: "ns1", Name: "a"}, {Namespace: "ns1", Name: "b"}, {Namespace: "ns2", Name: "a"}}
	modelResources = []string{"as", "bs"}
	modelPauses    = []time.Duration{0, 10 * time.Millisecond, time.Second, 20 * time.Second, 3 * time.Minute}
)

// modelStride makes queries of several streams likely: small numbers are drawn more often. It has
// no common factor with the number of queries.
const modelStride = 12

// modelQueries returns the queries of readers: with and without selectors, with selectors that
// only the server can judge, of another version of the same stored resource, unions, and sets of
// namespaces.
func modelQueries() []Query {
	in := labels.SelectorFromSet(labels.Set{"in": "yes"})
	out := labels.SelectorFromSet(labels.Set{"in": "no"})
	node := fields.OneTermEqualSelector("spec.node", "n1")
	all := []Query{{}, {Labels: in}, {Fields: node}, {Namespace: "ns1"}, {Labels: in, Fields: node}, {}, {}, {Labels: in}}
	all = append(all,
		Query{AnyOf: []Selection{{Labels: in}, {Fields: node}}},
		Query{AnyOf: []Selection{{Labels: in}, {Labels: out}}},
		Query{AnyOf: []Selection{{}, {Labels: in}}},
		Query{AnyOf: []Selection{{Labels: in}, {Labels: labels.SelectorFromSet(labels.Set{"in": "never"})}}},
		Query{Namespaces: []string{"ns1", "ns2"}},
		Query{Namespaces: []string{"ns2", "ns1"}, AnyOf: []Selection{{Fields: node}, {Labels: in}}},
		Query{Namespaces: []string{"ns2", "ns1"}, Labels: in},
		Query{Spaces: &Spaces{Resolve: func(context.Context) (Resource, error) {
			r := simResource("namespaces")
			r.Namespaced = false
			return r, nil
		}}},
		Query{Namespaces: []string{"ns1"}},
	)
	for i := range all {
		resource := simResource(modelResources[0])
		switch {
		case i == 5:
			resource.Version = "v2"
		case i == 6, i == 7:
			resource = simResource(modelResources[1])
		}
		all[i].Kind = resource.Version + resource.GroupVersionResource.Resource
		all[i].Resolve = func(context.Context) (Resource, error) { return resource, nil }
	}
	return all
}

// TestG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming mixes own and foreign writers, watches that
// are late and break, lists from old caches, failing requests, and readers that come and go, in
// every order that chance makes. After every Update it compares the snapshot with the server's
// history.
//
// It takes 200,000 steps (20,000 under the race detector), or as many as the flag -steps says
// (package rounds). A step with nothing to do does not count. Reproduce a failure with
// -rapid.seed or -rapid.failfile, as rapid says.
func TestG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		s := drawScript(rt)
		var err error
		synctest.Test(t, func(*testing.T) { err = runScript(s, step) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func runScript(s script, taken func()) error {
	m := &model{sim: newSim(), script: s, queries: modelQueries(), written: map[storedKey]int{}}
	m.delayOf = m.latency(0, 0)
	for _, name := range []string{"ns1", "ns2"} {
		m.create("namespaces", in("", name))
	}
	m.streams = stream.New(stream.Config{
		Source: plain(m.source), StreamLists: s.Stream, PageSize: int64(s.Page), PendingMax: s.PendingMax, Grace: s.Grace,
		Points: m.gates.reached,
	})
	defer m.streams.Close()
	defer m.writing.Wait()
	defer m.gates.open()
	if err := m.join(s.First...); err != nil {
		return err
	}
	for i, step := range s.Steps {
		m.gates.step()
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
func (m *model) do(s step) (done bool, err error) {
	resource, key, verb := modelResources[s.A%4/3], modelKeys[s.B%len(modelKeys)], verbs[s.C%len(verbs)]
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
		if _, done = m.sim.do(resource, key, verb, s.A+s.B+s.C); s.C/4%2 == 0 {
			m.rest()
		}
		return done, nil
	case s.Op < 36:
		return m.own(resource, key, verb, s), nil
	case s.Op < 60:
		return m.update(reader, key, s)
	case s.Op < 65:
		p := otherPoints[s.A%len(otherPoints)]
		m.gates.close(gate{Point: p, key: key, shard: s.B % shards, skip: s.B / shards % 2, steps: 1 + s.C%8})
	case s.Op < 75:
		pause := modelPauses[s.A%len(modelPauses)]
		after(pause)
		return pause > 0, nil
	case s.Op < 80:
		m.slow(s)
	case s.Op < 83:
		m.cut()
	case s.Op < 86:
		m.bookmarks()
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
func (m *model) own(resource string, key Key, verb string, s step) bool {
	w := m.streams.Begin(simResource(resource), key)
	a, ok := m.sim.do(resource, key, verb, s.A+s.B+s.C)
	if !ok || s.A == 0 { // refused, or the connection is lost
		w.Abandon()
		return ok
	}
	answered := func() {
		if w.Commit(context.Background(), stream.Outcome{Write: a.write(key)}) != nil {
			return // not settled: the watch will show it
		}
		m.truth.Lock()
		defer m.truth.Unlock()
		k := storedKey{resource, key}
		m.written[k] = max(m.written[k], a.rev)
	}
	m.later(modelPauses[s.B/3%4], answered)
	return true
}

// later starts a goroutine that does something after a pause. No two of them have the same time.
func (m *model) later(pause time.Duration, do func()) {
	if m.begun++; pause > 0 {
		pause += time.Duration(m.begun%1000) * time.Microsecond
	}
	m.writing.Go(func() {
		after(pause)
		do()
	})
	synctest.Wait()
}

// latency returns the time that an event needs to a watch. Each event has another one, so that
// events arrive one at a time, and always in the same order. Nothing arrives before the script
// lets time pass.
func (m *model) latency(a, b int) func(*simWatch) time.Duration {
	return func(w *simWatch) time.Duration {
		labels, fields := w.filter.labels.String(), w.filter.fields.String()
		n := len(labels) + 3*len(fields) + 5*len(w.source.resource) + len(w.filter.namespace)
		h := fnv.New32a()
		_, _ = h.Write([]byte(w.source.resource + " " + w.filter.namespace + " " + labels + " " + fields))
		return modelPauses[(a+n*b)%len(modelPauses)] + time.Microsecond + time.Duration(h.Sum32()%997)
	}
}

// rest waits until everything that is not late has arrived.
func (m *model) rest() {
	after(2 * time.Millisecond)
	synctest.Wait()
}

// goOn releases the goroutines that have been held up for long enough, one after the other, and
// checks the readers.
func (m *model) goOn() error {
	synctest.Wait()
	for m.gates.next() {
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

// slow delays watches, each by a time of its own.
func (m *model) slow(s step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delayOf = m.latency(s.A, s.B)
	m.listDelay = func(string) time.Duration { return modelPauses[s.C%4] }
	m.listAnswer = func(string) time.Duration { return modelPauses[s.C/4%4] }
}

// failing makes the next few requests fail.
func (m *model) failing(s step) {
	things := schema.GroupResource{Resource: "things"}
	err := []error{
		apierrors.NewForbidden(things, "", errors.New("no")), apierrors.NewNotFound(things, ""),
		apierrors.NewTooManyRequests("busy", 1), apierrors.NewInternalError(errors.New("no")),
		apierrors.NewTimeoutError("late", 1), apierrors.NewResourceExpired("expired"), errors.New("connection refused"),
	}[s.A%7]
	left := s.B % 8
	m.mu.Lock()
	defer m.mu.Unlock()
	var lock sync.Mutex
	m.fail = func(string, string) error {
		lock.Lock()
		defer lock.Unlock()
		if left--; left < 0 {
			return nil
		}
		return err
	}
}

// old compacts the history, and makes lists as old as they may be.
func (m *model) old(s step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.A%2 == 0 {
		m.oldest = m.rev + 1
		for w := range m.cuts {
			w.stopLocked()
		}
	}
	m.lag = func(newest, atLeast int) int { return atLeast + (newest-atLeast)*(s.B%3)/2 }
}

func (m *model) syncing() {
	m.mu.Lock()
	now := m.rev
	m.mu.Unlock()
	m.later(0, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		if m.streams.Sync(ctx) == nil {
			m.truth.Lock()
			defer m.truth.Unlock()
			m.synced = max(m.synced, now)
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
	r.a, err = New(context.Background(), m.streams, r.queries, Options{})
	m.readers = append(m.readers, r)
	return err
}

// settle waits until all goroutines are idle, and looks for what is left.
func (m *model) settle() error {
	m.mu.Lock()
	m.fail, m.lag, m.delayOf, m.listDelay, m.listAnswer, m.oldest = nil, nil, m.latency(0, 0), nil, nil, 0
	m.mu.Unlock()
	m.gates.open()
	m.writing.Wait()
	if err := m.goOn(); err != nil {
		return err
	}
	for i := range 3 {
		after(5 * time.Minute)
		m.create("others", thing(fmt.Sprint(i))) // there is always some write in a cluster
		m.bookmarks()
	}
	for i, r := range m.readers {
		m.rest()
		if err := r.update(); err != nil {
			return fmt.Errorf("at rest: %w", err)
		}
		if err := r.atRest(); err != nil {
			return fmt.Errorf("G6: reader %d: %w", i, err)
		}
	}
	return nil
}
