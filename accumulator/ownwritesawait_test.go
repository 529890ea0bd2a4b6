package accumulator

import (
	"context"
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

// TestG4WhatACallFindsAsItIsWantedIsShownByEveryReaderWhenItReturns: an own write becomes known to
// the streams one after the other. A call that reads the first stream meanwhile, and has nothing to
// send, returns when all have it. The run with three servers has found this.
func TestG4WhatACallFindsAsItIsWantedIsShownByEveryReaderWhenItReturns(t *testing.T) {
	var between func()
	commits := 0
	points := func(m stream.Moment) {
		if m.Point != stream.AtCommit {
			return
		}
		if commits++; commits == 2 {
			between()
		}
	}
	sim.Bubble(t, stream.Config{Points: points}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		var all []*Accumulator
		var snap one
		for _, q := range []string{"", "ns"} {
			query := sim.Query("A", "as")
			query.Namespace = q
			a := watching(t, streams, collect.Options{}, query)
			require.True(t, signalled(a))
			update(t, a, &snap)
			all = append(all, a)
		}
		s.Late(time.Hour)
		key, r := object.Key{Namespace: "ns", Name: "x"}, sim.Resource("as")
		found := make(chan error, 1)
		between = func() {
			known, _ := streams.Lookup(r, key, intake.All)
			go func() { found <- streams.Await(t.Context(), r, key, known.GetResourceVersion()) }()
			ended, end := context.WithCancel(t.Context())
			end()
			assert.ErrorIs(t, streams.Await(ended, r, key, known.GetResourceVersion()), context.Canceled)
			sim.After(time.Minute)
			assert.Empty(t, found, "one stream does not have it yet")
		}
		require.NoError(t, streams.Await(t.Context(), r, key, "1000"), "nothing is under way")
		w := streams.Begin(r, key)
		answer, ok := s.Do("as", key, "update", 0)
		require.True(t, ok)
		require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: answer.Write(key)}))
		require.Equal(t, 2, commits)
		synctest.Wait()
		require.NoError(t, <-found)
		for _, a := range all {
			assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
		}

		w = streams.Begin(r, key)
		require.NoError(t, streams.Await(t.Context(), r, key, snap.A[0].GetResourceVersion()), "all have that version")
		go func() { found <- streams.Await(t.Context(), r, key, "1000") }()
		synctest.Wait()
		assert.Empty(t, found)
		w.Abandon()
		assert.NoError(t, <-found)
	})
}
