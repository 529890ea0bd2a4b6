package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/accumulator/stream"
)

// A change that is not worth a signal is in the next snapshot all the same.
func TestG2G4WhatIsNamedIsShownAsItIsThoughItIsWorthNoSignal(t *testing.T) {
	never := func(old, now Object) bool { return false }
	for name, test := range map[string]struct {
		options Options
		signal  Signal
	}{"quiet own writes": {options: Options{QuietOwnWrites: true}}, "a signal of its own": {signal: never}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("a", "refs", "x.missing"))
				s.create("bs", thing("x"))
				queries := namingQueries()
				queries[0].Signal = test.signal
				a := watching(t, streams, test.options, queries...)
				require.Equal(t, "a / x", now(t, a))
				signalled(a)
				own{s, streams}.put("bs", thing("missing"), 0)
				after(time.Minute)
				assert.False(t, signalled(a))
				assert.Equal(t, "a / missing x", now(t, a))
				if test.signal != nil {
					s.touch("bs", "x", 1)
					after(time.Minute)
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
	naming1(t, Options{}, func(t *testing.T, s *sim, streams *stream.Set, a *Accumulator) {
		synctest.Wait()
		var sub *stream.Listener
		for _, p := range a.fieldsNow()[0].parts {
			if p.sub.Covers(Key{Namespace: "ns", Name: "x"}) {
				sub = p.sub
			}
		}
		sub.Stage().Hush() // the goroutine has stopped for a moment
		w := streams.Begin(simResource("bs"), Key{Namespace: "ns", Name: "x"})
		answer, ok := s.do("bs", Key{Namespace: "ns", Name: "x"}, "update", 0)
		require.True(t, ok)
		synctest.Wait() // for the event
		require.NoError(t, w.Commit(t.Context(), stream.Outcome{Write: answer.write(Key{Namespace: "ns", Name: "x"})}))
		var snap two
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
	})
}
