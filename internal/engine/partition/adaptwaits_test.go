package partition

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// slow makes the lists of a resource late.
func slow(s *sim.Server, r string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.ListDelay = func(of string) time.Duration {
		if of == r {
			return 10 * time.Second
		}
		return 0
	}
}

// TestAChangeThatCannotStandAloneWaitsForTheOneThatMakesItFit: keys move from one query to
// another.
func TestAChangeThatCannotStandAloneWaitsForTheOneThatMakesItFit(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Create("cs", sim.Thing("n", "k", "a"))
		slow(s, "cs")
		require.NoError(t, p.Replace(t.Context(), keyed("B", "cs")))
		require.NoError(t, p.Replace(t.Context(), sim.Query("A", "as")))
		sim.After(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		turn, err := p.Next(ctx)
		require.NoError(t, err)
		assert.Contains(t, text(turn), "/ n", "both have taken effect")
		turn.Done(nil)
	})
}

// TestTheLastQueryWithKeysThatIsShownIsNotRemoved: another one only waits to be shown.
func TestTheLastQueryWithKeysThatIsShownIsNotRemoved(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Create("cs", sim.Thing("n", "k", "a"))
		s.Create("cs", sim.Thing("m", "k", "b"))
		slow(s, "cs")
		require.NoError(t, p.Replace(t.Context(), keyed("B", "cs")))
		err := p.Remove(t.Context(), "A")
		require.ErrorContains(t, err, "what is to replace another query is not shown yet: no query has a key function")
		sim.After(2 * time.Minute)
		for _, turn := range turns(t, p) {
			assert.NotContains(t, turn, "gone")
		}
		require.NoError(t, p.Remove(t.Context(), "A"))
	})
}
