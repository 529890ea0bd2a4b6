package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// replacedModel is partitions whose queries change while keys are handed out.
type replacedModel struct {
	*sim.Server
	p     *Partitions
	calls int // of Replace
	last  map[string]map[string]string
	was   map[string]bool // whether there was a third field at the last turn of a key
	third bool
}

var (
	replacedSpaces = [][]string{{"ns"}, {"other"}, {"ns", "other"}, {}}
	replacedKeys   = []string{"k", "j"}
)

// TestModelG1G7NoTurnHasSomeOfTheNewAndSomeOfTheOldQueries replaces two queries at a time, by other
// namespaces and other key functions, and adds and removes a third one, while objects come, change
// and go, and lists are late or fail. After each turn it finds out which queries have taken
// effect: all that were replaced by one call, or none. The turn must show what the server has for
// these, and its differences the way there. At rest the newest queries have taken effect, and each
// key has had its turn.
func TestModelG1G7NoTurnHasSomeOfTheNewAndSomeOfTheOldQueries(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		steps := sim.DrawScript(rt).Steps
		var err error
		synctest.Test(t, func(*testing.T) { err = runReplaced(steps, step) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func runReplaced(steps []sim.Step, taken func()) error {
	m := &replacedModel{Server: sim.New(), last: map[string]map[string]string{}, was: map[string]bool{}, third: true}
	streams := streamset.New(stream.Config{Source: sim.Plain(m.Source), StreamLists: true})
	defer streams.Close()
	queries := append(m.queries(sim.Step{}), sim.Query("C", "cs"))
	var err error
	if m.p, err = Start(context.Background(), streams, reflect.TypeFor[three](), queries, Options{}); err != nil {
		return err
	}
	for i, s := range steps {
		if err := m.do(s); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		taken()
	}
	m.Failing(nil)
	m.Mu.Lock()
	m.ListDelay, m.ListAnswer = nil, nil
	m.Mu.Unlock()
	// A signal may have waited all the time. What has been late meanwhile is noticed when it is
	// taken: then the server is asked, and the next signal brings the queries.
	for range 2 {
		sim.After(10 * time.Minute)
		if err := m.turns(); err != nil {
			return err
		}
	}
	return m.rest()
}

// queries returns the queries of the first two fields, which are always replaced together.
func (m *replacedModel) queries(s sim.Step) (all []query.Query) {
	m.calls++
	for i, resource := range partResources[:2] {
		q := sim.Query(modelFields[i], resource)
		q.Namespaces = replacedSpaces[(s.A+i*s.B)%len(replacedSpaces)]
		label := replacedKeys[(s.C+i*s.A)%len(replacedKeys)]
		q.Key = func(o object.Object) []string { return labelled(o, label) }
		q.Kind = fmt.Sprintf("%s #%d", label, m.calls)
		all = append(all, q)
	}
	return all
}

func labelled(o interface{ GetLabels() map[string]string }, label string) []string {
	switch keys := o.GetLabels()[label]; keys {
	case "":
		return nil
	case "every":
		return []string{query.EveryPartition}
	default:
		return strings.Split(keys, ".")
	}
}

func (m *replacedModel) do(s sim.Step) error {
	resource, namespace, name := partResources[s.A%3], []string{"ns", "other"}[s.B%2], partNames[s.C%2]
	switch {
	case s.Op < 45:
		key := object.Key{Namespace: namespace, Name: name}
		if m.Now[resource][key] != nil && s.C%5 == 0 {
			m.Put(resource, key, nil)
			return nil
		}
		keys := []string{"k1", "k2", "k1.k2", "every", ""}
		m.Create(resource, sim.In(namespace, name, "k", keys[s.A/3%5], "j", keys[s.B/2%5]))
	case s.Op < 70:
		return m.turns()
	case s.Op < 80:
		return m.p.Replace(context.Background(), m.queries(s)...)
	case s.Op < 84 && m.third:
		m.third = false
		return m.p.Remove(context.Background(), "C")
	case s.Op < 84:
		m.third = true
		return m.p.Add(context.Background(), sim.Query("C", "cs"))
	case s.Op < 90:
		m.Mu.Lock()
		defer m.Mu.Unlock()
		m.ListDelay = func(of string) time.Duration { return sim.ModelPauses[(s.A+len(of)+int(of[0]))%4] }
		m.ListAnswer = m.ListDelay
	case s.Op < 93:
		var left atomic.Int32
		left.Store(int32(s.B % 4))
		m.Failing(func(_, of string) error {
			if of != resource || left.Add(-1) < 0 {
				return nil
			}
			return errors.New("not now")
		})
	default:
		sim.After(sim.ModelPauses[s.A%4])
	}
	return nil
}

// turns takes all turns that are due. Each is of the present: events are not late here.
func (m *replacedModel) turns() error {
	for {
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
		t, err := m.p.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := m.check(t); err != nil {
			return fmt.Errorf("turn of %s: %w", t.Key, err)
		}
		t.Done(nil)
	}
}

func (m *replacedModel) check(t *Turn) error {
	want, third, err := m.wanted()
	if err != nil {
		return err
	}
	got, snap := map[string]string{}, t.Snapshot.(*three)
	for i := range modelFields {
		for _, u := range snap.field(i) {
			got[idOf(i, u)] = versionOf(u)
		}
	}
	if third != (snap.C != nil) {
		return fmt.Errorf("the third field is %v, and there is such a query: %v", snap.C, third)
	}
	if !maps.Equal(got, want[t.Key]) {
		return fmt.Errorf("it has %v, the server %v", got, want[t.Key])
	}
	replay := maps.Clone(m.last[t.Key])
	if replay == nil {
		replay = map[string]string{}
	}
	for _, d := range t.Differences {
		i := slices.Index(modelFields, d.Query)
		if d.Old != nil {
			if id := idOf(i, d.Old); replay[id] != versionOf(d.Old.(*unstructured.Unstructured)) {
				return fmt.Errorf("G7: a difference starts from %s", sim.Describe(d.Old))
			}
			delete(replay, idOf(i, d.Old))
		}
		if d.New != nil {
			replay[idOf(i, d.New)] = versionOf(d.New.(*unstructured.Unstructured))
		}
	}
	had, known := m.last[t.Key]
	switch {
	case !maps.Equal(replay, got):
		return fmt.Errorf("G7: the differences give %v, the snapshot has %v", replay, got)
	case known && maps.Equal(had, got) && m.was[t.Key] == third:
		return fmt.Errorf("it is handed out for nothing: %v", got)
	}
	m.last[t.Key], m.was[t.Key] = got, third
	if t.Gone {
		delete(m.last, t.Key)
	}
	return nil
}

func idOf(field int, o object.Object) string {
	return modelFields[field] + " " + o.GetNamespace() + "/" + o.GetName()
}

// wanted returns the versions of the objects of each key, by the queries that have taken effect,
// and whether there is a third one. It returns an error if they are of two calls.
func (m *replacedModel) wanted() (all map[string]map[string]string, third bool, err error) {
	all, shared := map[string]map[string]string{}, map[string]string{}
	var calls []string
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for _, f := range m.p.current {
		q, i := f.Query.Query(), slices.Index(modelFields, f.Name)
		label, call, _ := strings.Cut(q.Kind, " ")
		if third = third || i == 2; i < 2 {
			calls = append(calls, call)
		}
		for _, u := range m.Now[partResources[i]] {
			keys := []string{query.EveryPartition}
			if i < 2 && !slices.Contains(q.Namespaces, u.GetNamespace()) {
				continue
			} else if i < 2 {
				keys = labelled(u, label)
			}
			for _, key := range keys {
				to := all[key]
				if key == query.EveryPartition {
					to = shared
				} else if to == nil {
					to = map[string]string{}
					all[key] = to
				}
				to[idOf(i, u)] = versionOf(u)
			}
		}
	}
	if len(calls) != 2 || calls[0] != calls[1] {
		return nil, third, fmt.Errorf("queries of several calls have taken effect: %v", calls)
	}
	for _, key := range all {
		maps.Copy(key, shared)
	}
	return all, third, nil
}

// rest checks that the newest queries have taken effect, and that no turn is missing.
func (m *replacedModel) rest() error {
	want, third, err := m.wanted()
	if err != nil {
		return err
	}
	newest := fmt.Sprintf("#%d", m.calls)
	if got := m.p.current[0].Query.Query().Kind; !strings.HasSuffix(got, newest) || third != m.third {
		return fmt.Errorf("the queries are %s, not %s; a third one: %v, not %v", got, newest, third, m.third)
	}
	for key, objects := range want {
		if !maps.Equal(m.last[key], objects) {
			return fmt.Errorf("the last turn of %s had %v, the server has %v", key, m.last[key], objects)
		}
	}
	for key := range m.last {
		if want[key] == nil {
			return fmt.Errorf("%s had no turn when it was gone", key)
		}
	}
	for _, st := range m.p.Status() {
		if st.Changing || st.State != stream.Synced {
			return fmt.Errorf("at rest: %+v", st)
		}
	}
	return nil
}
