package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// sharedModel is partitions by namespace whose share changes while keys are handed out. The third
// query belongs to every partition.
type sharedModel struct {
	sim.Client
	p       *Partitions
	sharing atomic.Bool // a call of Share is under way
	wanted  shardrange.Ranges
	wrong   atomic.Pointer[error]
	last    map[string]map[string]string // what the last turn of each key had
}

var modelSpaces = []string{"n0", "n1", "n2", "n3"}

// TestModelG1G4G7APartitionOfAShareIsThatOfTheServerWhileSharesChange: objects come, change and
// go, by own writes and by others', lists are late or fail, and the share grows and shrinks. At
// each turn the partition has what the server has of its namespace, of both queries, if the share
// has it, and nothing else; and its differences lead there. At rest each key of the share has had
// its turn.
func TestModelG1G4G7APartitionOfAShareIsThatOfTheServerWhileSharesChange(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		steps := sim.DrawScript(rt).Steps
		var err error
		synctest.Test(t, func(*testing.T) { err = runShared(steps, step) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func runShared(steps []sim.Step, taken func()) error {
	server := sim.New()
	streams := streamset.New(stream.Config{Source: sim.Plain(server.Source), StreamLists: len(steps)%2 == 0, Share: true})
	defer streams.Close()
	m := &sharedModel{Client: sim.NewClient(server, streams), last: map[string]map[string]string{}}
	switch len(steps) % 3 {
	case 1:
		m.Shards = func(asked string) string { return asked }
	case 2:
		m.Shards = func(string) string { return "" }
	}
	queries := []query.Query{spaced("A", "as"), spaced("B", "bs"), sim.Query("C", "cs")}
	var err error
	m.p, err = Start(context.Background(), streams, reflect.TypeFor[three](), queries, Options{Sharing: byNamespaces()})
	if err != nil {
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
	sim.After(10 * time.Minute)
	if err := m.turns(); err != nil {
		return err
	}
	return m.rest()
}

func (m *sharedModel) do(s sim.Step) error {
	resource, namespace := partResources[s.A%3], modelSpaces[s.B%4]
	key := object.Key{Namespace: namespace, Name: partNames[s.C%2]}
	switch {
	case s.Op < 20 && m.Now[resource][key] != nil && s.C%3 == 0:
		m.Server.Put(resource, key, nil)
	case s.Op < 20:
		m.Create(resource, sim.In(namespace, key.Name))
	case s.Op < 40: // an own write, whose answer may take its time
		answer := sim.ModelPauses[s.C%4]
		if s.C%2 == 0 {
			m.Put(resource, sim.In(namespace, key.Name), 0)
		} else {
			go m.Put(resource, sim.In(namespace, key.Name), answer)
			synctest.Wait()
		}
	case s.Op < 62:
		return m.turns()
	case s.Op < 80:
		m.share(s.A*7 + s.B*3 + s.C)
	case s.Op < 86:
		m.Mu.Lock()
		defer m.Mu.Unlock()
		m.ListDelay = func(of string) time.Duration { return sim.ModelPauses[(s.A+len(of)+int(of[0]))%4] }
		m.ListAnswer = m.ListDelay
	case s.Op < 90:
		var left atomic.Int32
		left.Store(int32(s.B % 4))
		// A watch that fails leaves what it had shown, so a turn would lack what has come since.
		m.Failing(func(verb, of string) error {
			if verb != "list" || of != resource || left.Add(-1) < 0 {
				return nil
			}
			return errors.New("not now")
		})
	default:
		sim.After(sim.ModelPauses[s.A%4])
	}
	return nil
}

// share begins a call of Share for some of the namespaces, if none is under way.
func (m *sharedModel) share(which int) {
	if m.sharing.Swap(true) {
		return
	}
	var names []string
	for i, name := range modelSpaces {
		if which>>i&1 == 1 {
			names = append(names, name)
		}
	}
	m.wanted = spacesOf(names...)
	if which%11 == 0 {
		m.wanted = shardrange.All()
	}
	go func() {
		if err := m.p.Share(context.Background(), m.wanted); err != nil && !errors.Is(err, stream.ErrClosed) {
			m.wrong.Store(&err)
		}
		m.sharing.Store(false)
	}()
}

// turns takes all turns that are due.
func (m *sharedModel) turns() error {
	for {
		synctest.Wait()
		if err := m.wrong.Load(); err != nil {
			return *err
		}
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

// truth is what the server has of a key that the share has.
func (m *sharedModel) truth(key string) (map[string]string, error) {
	var ranges []shardrange.Shard
	for _, f := range m.p.current {
		if q := f.Query.Query(); q.Key != nil {
			ranges = append(ranges, q.Shard)
		}
	}
	if len(ranges) != 2 || !ranges[0].Covers(ranges[1]) || !ranges[1].Covers(ranges[0]) {
		return nil, fmt.Errorf("queries of several shares have taken effect: %v", ranges)
	}
	all, own := map[string]string{}, false
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for i, resource := range partResources[:2] {
		for _, u := range m.Now[resource] {
			if u.GetNamespace() == key && ranges[0].Has(key, "") {
				all[idOf(i, u)], own = versionOf(u), true
			}
		}
	}
	for _, u := range m.Now[partResources[2]] {
		if own {
			all[idOf(2, u)] = versionOf(u)
		}
	}
	return all, nil
}

func (m *sharedModel) check(t *Turn) error {
	want, err := m.truth(t.Key)
	if err != nil {
		return err
	}
	got, snap := map[string]string{}, t.Snapshot.(*three)
	for i := range modelFields {
		for _, u := range snap.field(i) {
			got[idOf(i, u)] = versionOf(u)
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("it has %v, the server %v", got, want)
	}
	replay := maps.Clone(m.last[t.Key])
	if replay == nil {
		replay = map[string]string{}
	}
	for _, d := range t.Differences {
		i := slices.Index(modelFields, d.Query)
		if d.Old != nil {
			delete(replay, idOf(i, d.Old))
		}
		if d.New != nil {
			replay[idOf(i, d.New)] = versionOf(d.New.(*unstructured.Unstructured))
		}
	}
	if !maps.Equal(replay, got) {
		return fmt.Errorf("G7: the differences give %v, the snapshot has %v", replay, got)
	}
	m.last[t.Key] = got
	if t.Gone {
		delete(m.last, t.Key)
	}
	return nil
}

// rest checks that the share that was wanted last has taken effect, that each of its keys has had
// its turn, and that nothing else is held.
func (m *sharedModel) rest() error {
	if m.sharing.Load() {
		return errors.New("a call of Share has not returned")
	}
	held := 0
	for _, namespace := range modelSpaces {
		want, err := m.truth(namespace)
		if err != nil {
			return err
		}
		had := m.last[namespace]
		if !maps.Equal(had, want) && (len(had) > 0 || len(want) > 0) {
			return fmt.Errorf("the last turn of %s had %v, the server has %v", namespace, had, want)
		}
		for id := range want {
			if id[0] != 'C' {
				held++
			}
		}
	}
	for _, st := range m.p.Status() {
		if st.Changing || st.State != stream.Synced {
			return fmt.Errorf("at rest: %+v", st)
		}
		if st.Name != "C" {
			held -= st.Objects
		}
	}
	if held != 0 {
		return fmt.Errorf("%d more objects are held than are in the share", -held)
	}
	return nil
}
