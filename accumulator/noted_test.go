package accumulator

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// notes checks what an accumulator has noted for its reader: an Update without it changes nothing.
type notes struct {
	flag   atomic.Bool
	before bool // the Update that runs, or ran last, was asked for
	target reflect.Type
}

// begin is called before each Update.
func (n *notes) begin() { n.before = n.flag.Swap(false) }

// errNotNoted says that a reader that asks only after a note would have missed something.
var errNotNoted = errors.New("G2, G4: a change that was not noted")

// check compares the result of an Update with what was noted before it, or while it ran.
func (n *notes) check(r Result) error {
	if (r.Changed || len(r.Differences) > 0) && !n.before && !n.flag.Load() {
		return errNotNoted
	}
	return nil
}

// noted has the notes of the accumulators that tests watch.
var noted sync.Map

// notesOf are those of an accumulator that [watching] has made.
func notesOf(a *Accumulator) *notes {
	n, _ := noted.Load(a)
	return n.(*notes)
}

// quiet makes an Update, and reports whether the accumulator is at rest after it.
func quiet(t *testing.T, a *Accumulator, into any) bool {
	t.Helper()
	synctest.Wait()
	update(t, a, into)
	return !notesOf(a).flag.Load()
}

// readTwo watches two queries, and reads what there is.
func readTwo(t *testing.T, streams *streamset.Set, o collect.Options, queries ...query.Query) (*Accumulator, *two) {
	t.Helper()
	a, snap := watching(t, streams, o, queries...), &two{}
	synctest.Wait()
	update(t, a, snap)
	return a, snap
}

// unionQuery has the objects with one label or another.
func unionQuery() query.Query {
	q := sim.Query("A", "as")
	for _, app := range []string{"x", "y"} {
		q.AnyOf = append(q.AnyOf, object.Selection{Labels: labels.SelectorFromSet(labels.Set{"app": app})})
	}
	return q
}

func TestNothingIsNotedWhileNothingChanges(t *testing.T) {
	spread := sim.Query("A", "as")
	spread.Namespaces = []string{"ns", "other"}
	for name, queries := range map[string][]query.Query{
		"two kinds": {sim.Query("A", "as"), sim.Query("B", "bs")}, "alternatives": {unionQuery()},
		"namespaces": {spread}, "references": namingQueries(),
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x", "app", "x", "refs", "y"))
				s.Create("bs", sim.Thing("y"))
				a, snap := readTwo(t, streams, collect.Options{}, queries...)
				require.True(t, quiet(t, a, snap))
				for range 10 {
					sim.After(5 * time.Minute)
					s.Bookmarks()
					synctest.Wait()
					assert.False(t, notesOf(a).flag.Load())
				}
				s.Create("as", sim.Thing("z", "app", "x"))
				s.Create("bs", sim.Thing("y"))
				synctest.Wait()
				assert.True(t, notesOf(a).flag.Load())
				require.True(t, quiet(t, a, snap))
			})
		})
	}
}

// Its kind is looked for all the time, and each look is noted.
func TestAQueryWhoseKindIsNotServedIsAtRest(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
		absent := sim.Query("A", "none")
		absent.Optional = true
		absent.Resolve = func(context.Context) (object.Resource, error) { return object.Resource{}, query.ErrNotServed }
		a, snap := readTwo(t, streams, collect.Options{}, absent, sim.Query("B", "bs"))
		assert.True(t, quiet(t, a, snap))
	})
}

// Such a change is in the next snapshot all the same.
func TestG2WhatIsWorthNoSignalIsNoted(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Signal = func(object.Object, object.Object) bool { return false }
		a, snap := readTwo(t, streams, collect.Options{QuietOwnWrites: true}, q, sim.Query("B", "bs"))
		signalled(a)
		require.True(t, quiet(t, a, snap))
		s.Create("as", sim.Thing("x"))
		require.False(t, signalled(a))
		require.True(t, notesOf(a).flag.Load())
		require.True(t, quiet(t, a, snap))
		assert.Len(t, snap.A, 1)
		sim.NewClient(s, streams).Put("bs", sim.Thing("y"), time.Hour)
		require.False(t, signalled(a))
		require.True(t, notesOf(a).flag.Load(), "an own write that is quiet")
		update(t, a, snap)
		assert.Len(t, snap.B, 1)
	})
}

func TestG2ANewJudgementIsNoted(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
		a, snap := readTwo(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, quiet(t, a, snap))
		a.Rejudge()
		assert.True(t, notesOf(a).flag.Load())
	})
}

// After an error nothing is consumed, and after the end there is the error.
func TestG2AnUpdateThatFailsIsNoted(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
		a, snap := readTwo(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, quiet(t, a, snap))
		ended, end := context.WithCancel(t.Context())
		end()
		_, err := a.Update(ended, snap, nil)
		require.Error(t, err)
		assert.True(t, notesOf(a).flag.Load())
		require.True(t, quiet(t, a, snap))
		a.Close()
		assert.True(t, notesOf(a).flag.Load(), "the end")
	})
}

// A decision on an object comes with a position, a deadline or a query that others wait for: none
// of them is a change of an object.
func TestG6WhatWaitsIsAskedFor(t *testing.T) {
	t.Run("an object that names others", func(t *testing.T) {
		sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			a, snap := readTwo(t, streams, collect.Options{}, namingQueries()...)
			require.True(t, quiet(t, a, snap))
			s.ListDelay = func(string) time.Duration { return 5 * time.Minute }
			s.Create("as", sim.Thing("x", "refs", "y"))
			assert.False(t, quiet(t, a, snap))
			assert.Empty(t, snap.A)
			sim.After(refs.Patience + time.Second)
			update(t, a, snap)
			assert.Len(t, snap.A, 1)
		})
	})
	t.Run("a query that is replaced", func(t *testing.T) {
		sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			s.Create("as", sim.Thing("x", "app", "x"))
			a, snap := readTwo(t, streams, collect.Options{}, sim.Query("A", "as"))
			require.True(t, quiet(t, a, snap))
			s.ListDelay = func(string) time.Duration { return time.Minute }
			require.NoError(t, a.Replace(t.Context(), unionQuery()))
			assert.False(t, quiet(t, a, snap))
			sim.After(time.Hour)
			update(t, a, snap) // it takes the place of the old one
			assert.True(t, quiet(t, a, snap))
		})
	})
}
