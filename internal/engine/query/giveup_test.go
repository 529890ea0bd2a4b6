package query_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func inNamespace(namespace string) object.Selection {
	return object.Selection{Fields: fields.OneTermEqualSelector("metadata.namespace", namespace)}
}

// TestG2WhatOneStreamHasIsNotLostWhereAnotherOneHasGivenUpOwnWrites: the reader has no snapshot of
// the query then, as after an optional kind was gone. What comes next has everything.
func TestG2WhatOneStreamHasIsNotLostWhereAnotherOneHasGivenUpOwnWrites(t *testing.T) {
	sim.Bubble(t, stream.Config{PendingMax: 1}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.In("ns", "x"))
		s.Create("as", sim.In("other", "y"))
		q := sim.Query("A", "as")
		q.AnyOf = []object.Selection{inNamespace("ns"), inNamespace("other")}
		found, err := query.FindKind(context.Background(), q)
		require.NoError(t, err)
		h := query.Host{Streams: streams, Ready: func() bool { return false }, Past: &query.Past{},
			Wake: func() {}, Attend: func() {}, Follow: func() {}}
		r := query.New(h, found, h.Wake, false)
		require.NoError(t, r.Connect())
		defer r.Close()
		synctest.Wait()
		require.Equal(t, 2, streams.Len())
		require.Len(t, r.Take(false).Changes, 2)

		s.Create("as", sim.In("ns", "z"))
		synctest.Wait()
		s.Mu.Lock()
		s.Delay = func(string) time.Duration { return time.Hour }
		s.ListAnswer = func(string) time.Duration { return time.Minute }
		s.Mu.Unlock()
		for _, name := range []string{"own-1", "own-2"} { // one more than may be pending
			key := object.Key{Namespace: "other", Name: name}
			w := streams.Begin(sim.Resource("as"), key)
			answer, ok := s.Do("as", key, "update", 0)
			require.True(t, ok)
			require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: answer.Write(key)}))
		}
		require.False(t, r.Take(false).OK(), "a stream has given up own writes")
		sim.After(2 * time.Minute)
		var names []string
		for _, c := range r.Take(false).Changes {
			names = append(names, c.Key.Name)
		}
		assert.ElementsMatch(t, []string{"x", "z", "y", "own-1", "own-2"}, names)
	})
}
