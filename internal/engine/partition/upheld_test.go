package partition

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// upheld runs calls of Next, and own writes. A gate may hold each of them up, while the script
// goes on: one Next, and any number of own writes.
type upheld struct {
	sim.Client
	p         *Partitions
	resources []string // one for each query
	names     []string
	gates     sim.Gates
	tasks     sync.WaitGroup
	running   *nextCall // that is held up
	writes    []*ownWrite
	written   map[storedKey]int // the server's version after an own write that has returned
}

type storedKey struct {
	resource string
	object.Key
}

// nextCall is a call of Next.
type nextCall struct {
	least map[storedKey]int // the version of each object that a turn must show at least
	held  bool              // a gate has held it up
	turn  *Turn
	err   error
	over  atomic.Bool
}

// ownWrite is an own write that a gate may hold up.
type ownWrite struct {
	storedKey
	rev  int
	over atomic.Bool
}

// nextPoints are the points that Next passes. The ones listed more often are likelier.
var nextPoints = []stream.Point{stream.AtTake, stream.AtTaken, stream.AtTake, stream.AtComplete}

// streamPoints are those that the goroutine of a stream passes.
var streamPoints = []stream.Point{stream.AtWatch, stream.AtList, stream.AtListed}

func (m *upheld) end() {
	m.gates.Open()
	m.tasks.Wait()
	m.Streams.Close()
}

// least returns the version of each object that the partitions must show at least: the position of
// its watch, or an own write.
func (m *upheld) least() map[storedKey]int {
	all := map[storedKey]int{}
	for i, f := range m.p.indexes.fields {
		for _, name := range m.names {
			k := storedKey{m.resources[i], object.Key{Namespace: "ns", Name: name}}
			all[k] = m.written[k]
			for _, l := range f.Query.Listeners() {
				all[k] = max(all[k], sim.Revision(l.State().PositionRV))
			}
		}
	}
	return all
}

// call calls Next, with a gate if one is given. It returns nil if the gate holds Next up, or holds
// up an earlier one.
func (m *upheld) call(gate *sim.Gate) *nextCall {
	if m.running != nil {
		return nil
	}
	synctest.Wait()
	if gate != nil {
		m.gates.Close(*gate)
	}
	c := &nextCall{least: m.least()}
	m.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
		defer cancel()
		c.turn, c.err = m.p.Next(ctx)
		c.over.Store(true)
	})
	sim.After(2 * time.Microsecond)
	synctest.Wait()
	m.gates.Clear(nextPoints)
	if c.over.Load() {
		return c
	}
	c.held, m.running = true, c
	return nil
}

// goOn releases those that have been held up for long enough, one after the other. It returns the
// call of Next that is over, if one was held up.
func (m *upheld) goOn() *nextCall {
	synctest.Wait()
	for m.gates.Next() {
		synctest.Wait()
	}
	m.answered()
	c := m.running
	if c == nil || !c.over.Load() {
		return nil
	}
	m.running = nil
	return c
}

// own writes one object as this client.
func (m *upheld) own(resource, name string, write func()) {
	w := &ownWrite{storedKey: storedKey{resource, object.Key{Namespace: "ns", Name: name}}}
	m.tasks.Go(func() {
		write()
		w.over.Store(true)
	})
	synctest.Wait()
	w.rev = m.now()
	m.writes = append(m.writes, w)
	m.answered()
}

// underWay reports whether an own write of an object is under way.
func (m *upheld) underWay(resource, name string) bool {
	k := storedKey{resource, object.Key{Namespace: "ns", Name: name}}
	return slices.ContainsFunc(m.writes, func(w *ownWrite) bool { return w.storedKey == k && !w.over.Load() })
}

// now returns the version of the server.
func (m *upheld) now() int {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.Rev
}

// answered notes the own writes that have returned.
func (m *upheld) answered() {
	under := m.writes[:0]
	for _, w := range m.writes {
		if w.over.Load() {
			m.written[w.storedKey] = max(m.written[w.storedKey], w.rev)
		} else {
			under = append(under, w)
		}
	}
	m.writes = under
}

// ended ends a turn. A call of Next that is held up must show what is so now.
func (m *upheld) ended(t *Turn, err error) {
	t.Done(err)
	if m.running != nil {
		m.running.least = m.least()
	}
}

// relist cuts the watches. With compact, they have to list again. A gate holds one of them up.
func (m *upheld) relist(s sim.Step, compact bool) {
	m.gates.Close(sim.Gate{Point: streamPoints[s.A%len(streamPoints)], Shard: s.C % sim.Shards, Steps: 1 + s.B%8})
	m.Mu.Lock()
	if m.Oldest = 0; compact {
		m.Oldest = m.Rev + 1
	}
	m.Mu.Unlock()
	m.Cut()
}

// gate returns a gate for Next.
func nextGate(s sim.Step) *sim.Gate {
	return &sim.Gate{Point: nextPoints[s.A%len(nextPoints)], Skip: s.B % 3, Steps: 1 + s.C/3%6}
}

// commitGate closes a gate for the next own write of an object.
func (m *upheld) commitGate(name string, s sim.Step) {
	points := []stream.Point{stream.AtCommit, stream.AtLand}
	m.gates.Close(sim.Gate{Point: points[s.C/3%2], Key: object.Key{Namespace: "ns", Name: name}, Steps: 1 + s.A%8})
}

// versionOf identifies one version of an object.
func versionOf(o *unstructured.Unstructured) string {
	return string(o.GetUID()) + "@" + o.GetResourceVersion()
}

// residue returns an error if a change is hushed that is none for its partition.
func (s *scheduler) residue() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, h := range s.hushed {
		for key, by := range h {
			for part := range by {
				if _, dirty := part.shares[i].dirty[key]; !dirty || s.parts[part.Key] != part {
					return fmt.Errorf("G6: a change of %s is hushed for %s", key, part.Key)
				}
			}
		}
	}
	return nil
}
