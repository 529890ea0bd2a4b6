package partition

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestG4AKeyThatIsActivatedWhileAnotherWorkerTakesThingsInHasWhatWasWrittenBefore(t *testing.T) {
	for _, quiet := range []bool{true, false} {
		t.Run(fmt.Sprint("quiet ", quiet), func(t *testing.T) {
			abc(t, Options{}, func(t *testing.T, s *sim.Server, streams *streamset.Set, _ *Partitions) {
				meanwhile := func() {}
				q := keyed("A", "as")
				q.Key = func(o object.Object) []string {
					meanwhile()
					return byLabel(o)
				}
				p := partitioned(t, streams, Options{Options: collect.Options{QuietOwnWrites: quiet}}, q)
				turns(t, p)
				meanwhile = func() {
					meanwhile = func() {}
					sim.NewClient(s, streams).Put("as", s.Relabelled("x", "k", "b"), 0)
					p.Trigger("b")
				}
				s.Create("as", sim.Thing("none of them"))
				next := turn(t, p)
				require.NotNil(t, next)
				next.Done(nil)
				all := append([]string{text(next)}, turns(t, p)...)
				assert.Equal(t, map[bool][]string{true: {"b: x y / "}, false: {"b: x y / ", "a: y / "}}[quiet], all)
			})
		})
	}
}

func TestG4ATurnHasWhatTheTurnOfAnotherKeyWroteThatEndedWhileThingsWereTakenIn(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, streams *streamset.Set, _ *Partitions) {
		meanwhile := func() {}
		q := keyed("A", "as")
		q.Key = func(o object.Object) []string {
			meanwhile()
			return byLabel(o)
		}
		p := partitioned(t, streams, Options{Options: collect.Options{QuietOwnWrites: true}}, q)
		turns(t, p)
		p.Trigger("a")
		held := turn(t, p)
		p.Trigger("b")
		meanwhile = func() {
			meanwhile = func() {}
			sim.NewClient(s, streams).Put("as", s.Relabelled("x", "k", "b"), 0)
			held.Done(nil)
		}
		s.Create("as", sim.Thing("none of them"))
		next := turn(t, p)
		assert.Equal(t, "b: x y / ", text(next))
	})
}

func TestG4AKeyThatGoesOnWithAnObjectOfAnotherFieldIsStillDue(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		p, err := Start(t.Context(), streams, reflect.TypeFor[three](), []query.Query{keyed("A", "as"), keyed("B", "bs"), sim.Query("C", "cs")},
			Options{Options: collect.Options{QuietOwnWrites: true}})
		require.NoError(t, err)
		assert.Nil(t, turn(t, p))
		us := sim.NewClient(s, streams)
		us.Put("as", sim.Thing("x", "k", "a"), 0)
		assert.Nil(t, turn(t, p), "a quiet write")
		s.Create("cs", sim.Thing("c"))
		synctest.Wait()
		require.NoError(t, p.Refresh(t.Context()), "the key is due")
		us.Delete("as", "x", 0, true)
		us.Put("bs", sim.Thing("y", "k", "a"), 0)
		next := turn(t, p)
		require.NotNil(t, next)
		assert.Equal(t, []string{"y"}, sim.Names(next.Snapshot.(*three).B))
		assert.Equal(t, []string{"c"}, sim.Names(next.Snapshot.(*three).C))
	})
}

// For the race detector: the inputs of a turn have changed when it ends.
func TestG11TurnsThatEndWhileKeysAreDebouncedAndThingsAreTakenInDoNotRace(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for _, k := range []string{"a", "b", "c", "d"} {
			s.Create("as", sim.Thing("x"+k, "k", k))
		}
		s.Create("ls", sim.Thing("there"))
		p, err := Start(t.Context(), streams, reflect.TypeFor[referring](), referringQueries(), Options{Options: collect.Options{Pace: collect.Pace{Quiet: time.Millisecond}}})
		require.NoError(t, err)
		var workers sync.WaitGroup
		for range 3 {
			workers.Go(func() {
				for {
					next, err := p.Next(t.Context())
					if err != nil {
						return
					}
					get, _ := lookupOf(next)
					get("there")
					next.Done(nil)
				}
			})
		}
		for i := range 3000 {
			s.Touch("ls", "there", i)
			if i%7 == 0 {
				sim.After(time.Millisecond)
			}
		}
		sim.After(time.Second)
		p.Close()
		workers.Wait()
	})
}

// The key's object is worth no signal, and the change of the object for all keys is taken in
// before it: when that is placed, there is no such partition yet.
func TestG2AKeyThatComesQuietlyHasATurnForWhatHasChangedForAll(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		p := partitioned(t, streams, Options{Options: collect.Options{QuietOwnWrites: true}},
			sim.Query("A", "as"), keyed("B", "bs"))
		require.Nil(t, turn(t, p))
		sim.NewClient(s, streams).Put("bs", sim.Thing("y", "k", "a"), 0)
		s.Create("as", sim.Thing("c"))
		assert.Equal(t, []string{"a: c / y"}, turns(t, p))
	})
}

// The key's object is worth no signal. It comes when its field has been taken. The change for all
// keys comes after it, and is taken with the fields that follow.
func TestG2AKeyThatComesQuietlyWhileThingsAreTakenHasATurnForWhatChangesForAllAfterIt(t *testing.T) {
	taken, meanwhile := 0, func() {}
	config := stream.Config{StreamLists: true, Points: func(m stream.Moment) {
		if m.Point == stream.AtTake {
			if taken++; taken == 2 {
				meanwhile()
				synctest.Wait()
			}
		}
	}}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		p := partitioned(t, streams, Options{Options: collect.Options{QuietOwnWrites: true}}, keyed("A", "as"), sim.Query("B", "bs"))
		require.Nil(t, turn(t, p))
		meanwhile = func() {
			sim.NewClient(s, streams).Put("as", sim.Thing("y", "k", "a"), 0)
			s.Create("bs", sim.Thing("c"))
		}
		taken = 0
		s.Create("as", sim.Thing("none of them"))
		assert.Equal(t, []string{"a: y / c"}, turns(t, p))
		assert.Empty(t, turns(t, p))
	})
}

// The change for all keys comes while an own write of its object is under way. Whether it is worth
// a signal is known when that is answered.
func TestG2AKeyThatCameQuietlyHasATurnForWhatTurnsOutToBeWorthIt(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		p := partitioned(t, streams, Options{Options: collect.Options{QuietOwnWrites: true}}, keyed("A", "as"), sim.Query("B", "bs"))
		require.Nil(t, turn(t, p))
		sim.NewClient(s, streams).Put("as", sim.Thing("y", "k", "a"), 0)
		require.Nil(t, turn(t, p))
		w := streams.Begin(sim.Resource("bs"), object.Key{Namespace: "ns", Name: "c"})
		s.Create("bs", sim.Thing("c"))
		require.Nil(t, turn(t, p))
		require.NoError(t, p.Refresh(t.Context()))
		w.Abandon()
		assert.Equal(t, []string{"a: y / c"}, turns(t, p))
	})
}

// When the change turns out to be worth a signal, the object is no longer there, or belongs to one
// key alone.
func TestG2AKeyThatCameQuietlyHasATurnForADeletionThatTurnsOutToBeWorthIt(t *testing.T) {
	for name, c := range map[string]struct {
		query  query.Query
		change func(*sim.Server)
		want   []string
	}{
		"deleted":            {sim.Query("B", "bs"), func(s *sim.Server) { s.Remove("bs", "c") }, []string{"a: y / "}},
		"deleted, by label":  {keyed("B", "bs"), func(s *sim.Server) { s.Remove("bs", "c") }, []string{"a: y / "}},
		"given a single key": {keyed("B", "bs"), func(s *sim.Server) { s.Create("bs", sim.Thing("c", "k", "b")) }, []string{"a: y / ", "b:  / c"}},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("bs", sim.Thing("c", "k", "every"))
				p := partitioned(t, streams, Options{Options: collect.Options{QuietOwnWrites: true}}, keyed("A", "as"), c.query)
				require.Nil(t, turn(t, p))
				sim.NewClient(s, streams).Put("as", sim.Thing("y", "k", "a"), 0)
				require.Nil(t, turn(t, p))
				w := streams.Begin(sim.Resource("bs"), object.Key{Namespace: "ns", Name: "c"})
				c.change(s)
				require.Nil(t, turn(t, p))
				require.NoError(t, p.Refresh(t.Context()))
				w.Abandon()
				assert.Equal(t, c.want, turns(t, p))
			})
		})
	}
}
