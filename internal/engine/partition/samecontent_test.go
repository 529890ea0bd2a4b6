package partition

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// relisted lets all streams list, and waits for them.
func relisted(s *sim.Server) {
	s.Relist()
	sim.After(time.Minute)
	synctest.Wait()
}

func TestG6AnObjectGoesToTheKeysThatAListOfTheSameVersionGivesIt(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		q := sim.Query("A", "as")
		q.Key = func(o object.Object) []string { return []string{fmt.Sprint("schema-", sim.SchemaOf(o))} }
		p := partitioned(t, streams, Options{}, q, keyed("B", "bs"))
		defer p.Close()
		require.Equal(t, []string{"schema-0"}, keysOfTurns(t, p, nil))
		relisted(s)
		assert.Empty(t, keysOfTurns(t, p, nil))
		s.Reschema()
		relisted(s)
		gone := map[string]bool{}
		deltas := map[string]int{}
		keys := keysOfTurns(t, p, func(next *Turn) {
			gone[next.Key], deltas[next.Key] = next.Gone, len(next.Differences)
		})
		assert.ElementsMatch(t, []string{"schema-0", "schema-1"}, keys)
		assert.Equal(t, map[string]bool{"schema-0": true, "schema-1": false}, gone)
		assert.Equal(t, map[string]int{"schema-0": 1, "schema-1": 1}, deltas)
	})
}

func TestG6APartitionIsActivatedWhereAListShowsWhatItHasReadOtherwise(t *testing.T) {
	looking(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Touch("as", "x", 1)
		require.Equal(t, []string{"a"}, keysOfTurns(t, p, reading("a", "there")))
		relisted(s)
		assert.Empty(t, keysOfTurns(t, p, nil))
		s.Reschema()
		relisted(s)
		read := 0
		keys := keysOfTurns(t, p, func(next *Turn) {
			for _, d := range next.Differences {
				if d.Query == "L" {
					read++
				}
			}
			reading("a", "there")(next)
		})
		assert.ElementsMatch(t, []string{"a", "b"}, keys, "both own an object that looks otherwise")
		assert.Equal(t, 1, read, "one has read another")
	})
}
