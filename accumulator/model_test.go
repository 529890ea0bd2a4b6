package accumulator

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/kates-go/kates/internal/rounds"
)

// step is one thing that happens in a script. What the parameters mean depends on it.
type step struct{ Op, A, B, C int }

// script is all that chance decides, drawn before the bubble starts.
type script struct {
	Stream     bool
	Page       int
	PendingMax int
	Grace      time.Duration
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
		Steps:      steps.Draw(t, "steps"),
	}
}

// model is the simulated server, its clients, and what must be true of them.
type model struct {
	*sim
	script  script
	streams *stream.Set
	queries []Query
	readers []*modelReader
	writing sync.WaitGroup

	truth   sync.Mutex
	written map[storedKey]int // the version that an own write made true
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

// modelQueries are what readers ask for: with and without selectors, ones that only the
// server can judge, another version of the same stored resource, unions, and sets of namespaces.
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

// TestG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming lets own and foreign writers, watches that
// are late and break, lists from old caches, failing requests and readers that come and go meet in
// every order that chance makes. After every Update the snapshot is compared with the server's
// history.
//
// It takes 200,000 steps (20,000 under the race detector), or as many as the flag -steps says
// (package rounds): one with nothing to do does not count. A failure is reproduced with -rapid.seed or -rapid.failfile, as rapid says.
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
	m.streams = stream.New(stream.Config{
		Source: plain(m.source), StreamLists: s.Stream, PageSize: int64(s.Page), PendingMax: s.PendingMax, Grace: s.Grace,
	})
	defer m.streams.Close()
	defer m.writing.Wait()
	if err := m.join(0, 1); err != nil {
		return err
	}
	for i, step := range s.Steps {
		done, err := m.do(step)
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if done {
			taken()
		}
	}
	return m.settle()
}

// do takes one step, and reports whether there was something to do. The first numbers are the
// likelier the wider their range.
func (m *model) do(s step) (done bool, err error) {
	resource, key, verb := modelResources[s.A%4/3], modelKeys[s.B%len(modelKeys)], verbs[s.C%len(verbs)]
	switch {
	case s.Op < 15:
		_, done = m.sim.do(resource, key, verb, s.A+s.B+s.C)
		return done, nil
	case s.Op < 45:
		return m.own(resource, key, verb, s), nil
	case s.Op < 65:
		return true, m.update(m.readers[s.A%len(m.readers)], s.B%3 == 0)
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
		m.readers[i].a.Close()
		m.readers = append(m.readers[:i], m.readers[i+1:]...)
	}
	return true, nil
}

// own writes as this client, answered at once or later, or never. It reports whether the server
// did anything.
func (m *model) own(resource string, key Key, verb string, s step) bool {
	w := m.streams.Begin(simResource(resource), key)
	a, ok := m.sim.do(resource, key, verb, s.A+s.B+s.C)
	if !ok || s.A == 0 { // refused, or the connection is lost
		w.Abandon()
		return ok
	}
	answered := func() {
		if w.Commit(context.Background(), stream.Outcome{Write: a.write(key)}) != nil {
			return // not settled: the watch will tell
		}
		m.truth.Lock()
		defer m.truth.Unlock()
		k := storedKey{resource, key}
		m.written[k] = max(m.written[k], a.rev)
	}
	pause := modelPauses[s.B/3%4]
	if pause == 0 {
		answered()
		return true
	}
	m.writing.Go(func() {
		after(pause)
		answered()
	})
	return true
}

// slow delays watches, each in its own way.
func (m *model) slow(s step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delayOf = func(w *simWatch) time.Duration {
		n := len(w.filter.labels.String()) + 3*len(w.filter.fields.String()) + 5*len(w.source.resource) + len(w.filter.namespace)
		return modelPauses[(s.A+n*s.B)%len(modelPauses)]
	}
	m.listDelay = func(string) time.Duration { return modelPauses[s.C%4] }
	m.listAnswer = func(string) time.Duration { return modelPauses[s.C/4%4] }
}

// failing lets the next few requests fail.
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

// old compacts the history, and lets lists be as old as they may.
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
	m.writing.Go(func() {
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
		q := m.queries[n%len(m.queries)]
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

// settle lets all come to rest, and looks for what is left.
func (m *model) settle() error {
	m.mu.Lock()
	m.fail, m.lag, m.delayOf, m.listDelay, m.listAnswer, m.oldest = nil, nil, nil, nil, nil, 0
	m.mu.Unlock()
	m.writing.Wait()
	for i := range 3 {
		after(5 * time.Minute)
		m.create("others", thing(fmt.Sprint(i))) // a cluster is never quite quiet
		m.bookmarks()
	}
	for i, r := range m.readers {
		if err := m.update(r, false); err != nil {
			return fmt.Errorf("at rest: %w", err)
		}
		if err := r.atRest(); err != nil {
			return fmt.Errorf("G6: reader %d: %w", i, err)
		}
	}
	return nil
}
