package accumulator

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// staged does something when a point is reached the next time.
type staged struct {
	stream.Point
	do func()
}

// reached is the value of Config.points. The goroutine that reaches the point goes on once all
// others are idle.
func (s *staged) reached(m stream.Moment) {
	if s.do == nil || m.Point != s.Point {
		return
	}
	do := s.do
	s.do = nil
	do()
	synctest.Wait()
}

// on sets what is done at a point.
func (s *staged) on(p stream.Point, do func()) { s.Point, s.do = p, do }

// A pod of a StatefulSet is replaced under its name while a reader takes the streams of a query.
func TestG2G6WhatComesWhileStreamsAreTakenAndGoesBeforeTheNextUpdateDoesNotStay(t *testing.T) {
	namespaces := sim.Query("A", "as")
	namespaces.Namespaces = []string{"ns", "other"}
	for name, q := range map[string]query.Query{"several namespaces": namespaces, "selected namespaces": spaceQuery("A", "as", "team=a")} {
		for _, p := range []stream.Point{stream.AtTake, stream.AtTaken} {
			t.Run(name+"/"+string(p), func(t *testing.T) {
				var stage staged
				sim.Bubble(t, stream.Config{Points: stage.reached}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
					s.Create("namespaces", sim.In("", "ns", "team", "a"))
					s.Create("as", sim.Thing("x", "l", "yes"))
					a := watching(t, streams, collect.Options{}, q)
					require.True(t, signalled(a))
					var snap one
					require.Equal(t, []string{"+x"}, told(update(t, a, &snap)))

					s.Remove("as", "x")
					require.True(t, signalled(a))
					stage.on(p, func() { s.Create("as", sim.Thing("x", "l", "yes")) })
					update(t, a, &snap)
					require.Nil(t, stage.do, "the point was reached")
					s.Remove("as", "x")
					assert.True(t, signalled(a))
					update(t, a, &snap)
					assert.Empty(t, snap.A)
				})
			})
		}
	}
}
