package accumulator

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/accumulator/stream"
)

func TestG4AKeyThatIsActivatedWhileAnotherWorkerTakesThingsInHasWhatWasWrittenBefore(t *testing.T) {
	for _, quiet := range []bool{true, false} {
		t.Run(fmt.Sprint("quiet ", quiet), func(t *testing.T) {
			abc(t, PartitionOptions{}, func(t *testing.T, s *sim, streams *stream.Set, _ *Partitions) {
				meanwhile := func() {}
				q := keyed("A", "as")
				q.Key = func(o Object) []string {
					meanwhile()
					return byLabel(o)
				}
				p := partitioned(t, streams, PartitionOptions{Options: Options{QuietOwnWrites: quiet}}, q)
				turns(t, p)
				meanwhile = func() {
					meanwhile = func() {}
					own{s, streams}.put("as", s.relabelled("x", "k", "b"), 0)
					p.Activate("b")
				}
				s.create("as", thing("none of them"))
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
	abc(t, PartitionOptions{}, func(t *testing.T, s *sim, streams *stream.Set, _ *Partitions) {
		meanwhile := func() {}
		q := keyed("A", "as")
		q.Key = func(o Object) []string {
			meanwhile()
			return byLabel(o)
		}
		p := partitioned(t, streams, PartitionOptions{Options: Options{QuietOwnWrites: true}}, q)
		turns(t, p)
		p.Activate("a")
		held := turn(t, p)
		p.Activate("b")
		meanwhile = func() {
			meanwhile = func() {}
			own{s, streams}.put("as", s.relabelled("x", "k", "b"), 0)
			held.Done(nil)
		}
		s.create("as", thing("none of them"))
		next := turn(t, p)
		assert.Equal(t, "b: x y / ", text(next))
	})
}

func TestG4AKeyThatGoesOnWithAnObjectOfAnotherFieldIsStillDue(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		p, err := Partition(t.Context(), streams, reflect.TypeFor[three](), []Query{keyed("A", "as"), keyed("B", "bs"), simQuery("C", "cs")},
			PartitionOptions{Options: Options{QuietOwnWrites: true}})
		require.NoError(t, err)
		assert.Nil(t, turn(t, p))
		us := own{s, streams}
		us.put("as", thing("x", "k", "a"), 0)
		assert.Nil(t, turn(t, p), "a quiet write")
		s.create("cs", thing("c"))
		synctest.Wait()
		require.NoError(t, p.Refresh(t.Context()), "the key is due")
		us.delete("as", "x", 0, true)
		us.put("bs", thing("y", "k", "a"), 0)
		next := turn(t, p)
		require.NotNil(t, next)
		assert.Equal(t, []string{"y"}, names(next.Snapshot.(*three).B))
		assert.Equal(t, []string{"c"}, names(next.Snapshot.(*three).C))
	})
}

// For the race detector: the inputs of a turn have changed when it ends.
func TestG11TurnsThatEndWhileKeysAreDebouncedAndThingsAreTakenInDoNotRace(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		for _, k := range []string{"a", "b", "c", "d"} {
			s.create("as", thing("x"+k, "k", k))
		}
		s.create("ls", thing("there"))
		p, err := Partition(t.Context(), streams, reflect.TypeFor[referring](), referringQueries(), PartitionOptions{Options: Options{Pace: Pace{Quiet: time.Millisecond}}})
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
			s.touch("ls", "there", i)
			if i%7 == 0 {
				after(time.Millisecond)
			}
		}
		after(time.Second)
		p.Close()
		workers.Wait()
	})
}

// The key's object is worth no signal, and the change of the object for all keys is taken in before
// it: when that is placed, there is no such partition yet.
func TestG2AKeyThatComesQuietlyHasATurnForWhatHasChangedForAll(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		p := partitioned(t, streams, PartitionOptions{Options: Options{QuietOwnWrites: true}},
			simQuery("A", "as"), keyed("B", "bs"))
		require.Nil(t, turn(t, p))
		own{s, streams}.put("bs", thing("y", "k", "a"), 0)
		s.create("as", thing("c"))
		assert.Equal(t, []string{"a: c / y"}, turns(t, p))
	})
}
