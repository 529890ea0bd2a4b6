package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// A change that is not worth a signal is in the next snapshot all the same.
func TestG2G4WhatIsNamedIsShownAsItIsThoughItIsWorthNoSignal(t *testing.T) {
	never := func(old, now object.Object) bool { return false }
	for name, test := range map[string]struct {
		options collect.Options
		signal  object.Signal
	}{"quiet own writes": {options: collect.Options{QuietOwnWrites: true}}, "a signal of its own": {signal: never}} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("a", "refs", "x.missing"))
				s.Create("bs", sim.Thing("x"))
				queries := namingQueries()
				queries[0].Signal = test.signal
				a := watching(t, streams, test.options, queries...)
				require.Equal(t, "a / x", now(t, a))
				signalled(a)
				sim.NewClient(s, streams).Put("bs", sim.Thing("missing"), 0)
				sim.After(time.Minute)
				assert.False(t, signalled(a))
				assert.Equal(t, "a / missing x", now(t, a))
				if test.signal != nil {
					s.Touch("bs", "x", 1)
					sim.After(time.Minute)
					assert.False(t, signalled(a))
					var snap two
					assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
				}
			})
		})
	}
}

// The event of an own write may overtake its answer, and the goroutine that it wakes may not have
// run yet.
func TestG4AnOwnWriteToWhatIsNamedIsInTheNextUpdateThoughNobodyHasBeenWokenByItsEvent(t *testing.T) {
	naming1(t, collect.Options{}, func(t *testing.T, s *sim.Server, streams *streamset.Set, a *Accumulator) {
		synctest.Wait()
		var sub *stream.Listener
		for _, l := range a.collector.Fields()[0].Query.Listeners() {
			if l.Covers(object.Key{Namespace: "ns", Name: "x"}) {
				sub = l
			}
		}
		sub.Stage().Hush() // the goroutine has stopped for a moment
		w := streams.Begin(sim.Resource("bs"), object.Key{Namespace: "ns", Name: "x"})
		answer, ok := s.Do("bs", object.Key{Namespace: "ns", Name: "x"}, "update", 0)
		require.True(t, ok)
		synctest.Wait() // for the event
		require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: answer.Write(object.Key{Namespace: "ns", Name: "x"})}))
		var snap two
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
	})
}
