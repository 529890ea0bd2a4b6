package accumulator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// overwrite writes so many objects that the client's stream gives the writes up, while lists take
// a while.
func overwrite(o sim.Client, first, count int) {
	o.Late(time.Hour)
	o.Mu.Lock()
	o.ListAnswer = func(string) time.Duration { return 10 * second }
	o.Mu.Unlock()
	for i := range count {
		o.Put("as", sim.Thing(fmt.Sprintf("%02d", first+i)), 0)
	}
}

func TestG1AFirstReadingWaitsForTheRelistWhereWritesWereGivenUp(t *testing.T) {
	for _, fields := range []string{"A", "AB", "BA"} {
		t.Run(fields, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true, PendingMax: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("bs", sim.Thing("z"))
				var queries []query.Query
				for _, f := range fields {
					queries = append(queries, sim.Query(string(f), map[rune]string{'A': "as", 'B': "bs"}[f]))
				}
				a := watching(t, streams, collect.Options{}, queries...)
				require.True(t, signalled(a))
				require.NoError(t, a.Ready())
				overwrite(sim.NewClient(s, streams), 0, 6)
				snap := two{A: []*unstructured.Unstructured{sim.Thing("mine")}}
				r := update(t, a, &snap)
				assert.False(t, r.Complete || r.Changed)
				assert.Equal(t, []string{"mine"}, sim.Names(snap.A), "untouched")
				assert.Nil(t, snap.B)
				sim.After(time.Minute)
				require.True(t, signalled(a))
				r = update(t, a, &snap)
				assert.Len(t, snap.A, 6)
				assert.Len(t, r.Differences, 6+len(fields)-1, "nothing was consumed before")
			})
		})
	}
}

func TestG7ARelistThatBringsWhatIsShownChangesNothing(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true, PendingMax: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		o := sim.NewClient(s, streams)
		overwrite(o, 0, 5)
		update(t, a, &snap)
		shown := snap.A
		require.Len(t, shown, 5)
		overwrite(o, 5, 1)
		sim.After(time.Minute)
		synctest.Wait()
		r := update(t, a, &snap)
		require.Len(t, r.Differences, 1, "the sixth")
		for i := range shown {
			assert.Same(t, shown[i], snap.A[i])
		}
	})
}

func TestG1AFirstReadingOfSeveralStreamsWaitsForTheRelistToo(t *testing.T) {
	for _, others := range []int{0, 1} {
		sim.Bubble(t, stream.Config{StreamLists: true, PendingMax: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			for i := range others {
				s.Create("as", sim.In("other", fmt.Sprint("other", i)))
			}
			a := watching(t, streams, collect.Options{}, over("A", "as", "ns", "other"))
			synctest.Wait()
			require.True(t, signalled(a))
			require.NoError(t, a.Ready())
			o := sim.NewClient(s, streams)
			o.Late(time.Hour)
			o.Mu.Lock()
			o.ListAnswer = func(string) time.Duration { return 10 * second }
			o.Mu.Unlock()
			for i := range 6 {
				o.Put("as", sim.Thing(fmt.Sprint(i)), 0)
			}
			var snap one
			r := update(t, a, &snap)
			assert.False(t, r.Complete || r.Changed)
			assert.Nil(t, snap.A)
			sim.After(time.Minute)
			require.True(t, signalled(a))
			r = update(t, a, &snap)
			assert.Len(t, snap.A, 6+others)
			assert.Len(t, r.Differences, 6+others, "nothing was consumed before")
		})
	}
}

// TestG4AQueryThatTakesEffectBeforeTheFirstSnapshotIsUpToDateInIt: an Update has taken its first
// batch, but found that there could be no first snapshot yet.
func TestG4AQueryThatTakesEffectBeforeTheFirstSnapshotIsUpToDateInIt(t *testing.T) {
	for name, edit := range map[string]func(*Accumulator) error{
		"added":    func(a *Accumulator) error { return a.Add(context.Background(), sim.Query("B", "bs")) },
		"replaced": func(a *Accumulator) error { return a.Replace(context.Background(), sim.Query("B", "bs")) },
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true, PendingMax: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("bs", sim.Thing("z"))
				queries := []query.Query{sim.Query("A", "as")}
				if name == "replaced" {
					queries = append(queries, over("B", "bs", "ns"))
				}
				a := watching(t, streams, collect.Options{}, queries...)
				require.True(t, signalled(a))
				require.NoError(t, edit(a))
				sim.After(time.Second)
				o := sim.NewClient(s, streams)
				overwrite(o, 0, 6)
				var snap two
				require.False(t, update(t, a, &snap).Complete)
				o.Put("bs", sim.Thing("own"), 0)
				o.Delete("bs", "z", 0, true)
				sim.After(time.Minute)
				require.True(t, update(t, a, &snap).Complete)
				assert.Equal(t, []string{"own"}, sim.Names(snap.B))
			})
		})
	}
}

// TestG5WhatAStreamHasShownStaysThoughItGivesWritesUpTwiceBeforeItIsTaken: between the two there
// was a list, which nobody took. Another stream has such a list, too, and all objects are decided.
func TestG5WhatAStreamHasShownStaysThoughItGivesWritesUpTwiceBeforeItIsTaken(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true, PendingMax: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.In("ns1", "x"))
		s.Create("as", sim.In("ns2", "y"))
		a := watching(t, streams, collect.Options{}, over("A", "as", "ns1", "ns2"))
		require.True(t, signalled(a))
		var snap one
		require.Equal(t, []string{"+x", "+y"}, told(update(t, a, &snap)))

		s.Late(time.Hour)
		o := sim.NewClient(s, streams)
		write := func(namespace string) {
			for i := range 6 {
				o.Put("as", sim.In(namespace, fmt.Sprint(i)), 0)
			}
			synctest.Wait()
		}
		write("ns1")
		write("ns2")
		require.False(t, givenUp(a), "both have listed again")
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return 10 * second }
		s.Mu.Unlock()
		write("ns1")
		require.True(t, givenUp(a))
		require.Equal(t, []string{"+0", "+1", "+2", "+3", "+4", "+5"}, told(update(t, a, &snap)), "those of ns2")
		require.Len(t, snap.A, 8)

		sim.After(time.Minute)
		require.Equal(t, []string{"+0", "+1", "+2", "+3", "+4", "+5"}, told(update(t, a, &snap)), "those of ns1")
	})
}
