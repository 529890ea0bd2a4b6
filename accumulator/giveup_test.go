package accumulator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/stream"
)

// overwrite writes so many objects that the client's stream gives the writes up, while lists take
// a while.
func overwrite(o own, first, count int) {
	o.late(time.Hour)
	o.mu.Lock()
	o.listAnswer = func(string) time.Duration { return 10 * second }
	o.mu.Unlock()
	for i := range count {
		o.put("as", thing(fmt.Sprintf("%02d", first+i)), 0)
	}
}

func TestG1AFirstReadingWaitsForTheRelistWhereWritesWereGivenUp(t *testing.T) {
	for _, fields := range []string{"A", "AB", "BA"} {
		t.Run(fields, func(t *testing.T) {
			bubble(t, stream.Config{StreamLists: true, PendingMax: 5}, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("bs", thing("z"))
				var queries []Query
				for _, f := range fields {
					queries = append(queries, simQuery(string(f), map[rune]string{'A': "as", 'B': "bs"}[f]))
				}
				a := watching(t, streams, Options{}, queries...)
				require.True(t, signalled(a))
				require.NoError(t, a.Ready())
				overwrite(own{s, streams}, 0, 6)
				snap := two{A: []*unstructured.Unstructured{thing("mine")}}
				r := update(t, a, &snap)
				assert.False(t, r.Complete || r.Changed)
				assert.Equal(t, []string{"mine"}, names(snap.A), "untouched")
				assert.Nil(t, snap.B)
				after(time.Minute)
				require.True(t, signalled(a))
				r = update(t, a, &snap)
				assert.Len(t, snap.A, 6)
				assert.Len(t, r.Differences, 6+len(fields)-1, "nothing was consumed before")
			})
		})
	}
}

func TestG7ARelistThatBringsWhatIsShownChangesNothing(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true, PendingMax: 5}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		o := own{s, streams}
		overwrite(o, 0, 5)
		update(t, a, &snap)
		shown := snap.A
		require.Len(t, shown, 5)
		overwrite(o, 5, 1)
		after(time.Minute)
		synctest.Wait()
		r := update(t, a, &snap)
		require.Len(t, r.Differences, 1, "the sixth")
		for i := range shown {
			assert.Same(t, shown[i], snap.A[i])
		}
	})
}

// unionOfAll returns a query of two halves.
func unionOfAll() Query {
	q := simQuery("A", "as")
	q.AnyOf = []Selection{
		{Labels: labels.SelectorFromSet(labels.Set{"in": "yes"})},
		{Labels: labels.SelectorFromSet(labels.Set{"in": "no"})},
	}
	return q
}

func TestG1AFirstReadingOfAUnionWaitsForTheRelistToo(t *testing.T) {
	for _, others := range []int{0, 1} {
		bubble(t, stream.Config{StreamLists: true, PendingMax: 5}, func(t *testing.T, s *sim, streams *stream.Set) {
			for i := range others {
				s.create("as", thing(fmt.Sprint("other", i), "in", "no"))
			}
			a := watching(t, streams, Options{}, unionOfAll())
			synctest.Wait()
			require.True(t, signalled(a))
			require.NoError(t, a.Ready())
			o := own{s, streams}
			o.late(time.Hour)
			o.mu.Lock()
			o.listAnswer = func(string) time.Duration { return 10 * second }
			o.mu.Unlock()
			for i := range 6 {
				o.put("as", thing(fmt.Sprint(i), "in", "yes"), 0)
			}
			var snap one
			r := update(t, a, &snap)
			assert.False(t, r.Complete || r.Changed)
			assert.Nil(t, snap.A)
			after(time.Minute)
			require.True(t, signalled(a))
			r = update(t, a, &snap)
			assert.Len(t, snap.A, 6+others)
			assert.Len(t, r.Differences, 6+others, "nothing was consumed before")
		})
	}
}

func TestG4WhatMovedWhileWritesWereGivenUpIsInTheFirstSnapshotOfAUnion(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true, PendingMax: 5}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "in", "yes"))
		a := watching(t, streams, Options{}, unionOfAll())
		synctest.Wait()
		require.True(t, signalled(a))
		o := own{s, streams}
		s.mu.Lock()
		s.listDelay = func(string) time.Duration { return 10 * second }
		s.mu.Unlock()
		lateWatches(s, "in")
		for i := range 6 {
			if i == 3 {
				s.bookmarks() // one watch has seen the former writes
				synctest.Wait()
				s.mu.Lock()
				s.delayOf = func(*simWatch) time.Duration { return time.Minute }
				s.mu.Unlock()
			}
			o.put("as", thing(fmt.Sprint(i), "in", "yes"), 0)
		}
		synctest.Wait()
		require.True(t, givenUp(a))
		s.relabel("x", "in", "no")
		s.relabel("5", "in", "no") // no watch has shown this one
		after(20 * second)
		require.False(t, givenUp(a), "one watch has listed anew, and the other is late")
		var snap one
		update(t, a, &snap)
		assert.Len(t, snap.A, 7, "all were in the query all the time")
		after(2 * time.Hour)
		update(t, a, &snap)
		assert.Len(t, snap.A, 7)
	})
}

func TestG5WhatWasDeletedDoesNotComeBackInAUnionThoughWritesAreGivenUp(t *testing.T) {
	listing := make(chan struct{})
	close(listing)
	var first stream.ID // once the test knows it
	points := func(m stream.Moment) {
		if m.Point == stream.AtList && m.Stream == first {
			<-listing
		}
	}
	bubble(t, stream.Config{PendingMax: 2, Points: points}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "l", "yes"))
		a := watching(t, streams, Options{}, union())
		require.True(t, signalled(a))
		var snap one
		require.Equal(t, []string{"+x"}, told(update(t, a, &snap)))

		s.late(time.Hour)
		o := own{s, streams}
		require.True(t, o.delete("as", "x", 0, false))
		require.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		listing, first = make(chan struct{}), a.fieldsNow()[0].parts[0].sub.Stream()
		for _, name := range []string{"a", "b"} {
			o.put("as", thing(name, "l", "yes"), 0)
		}
		synctest.Wait() // both streams have given up, and the second has listed again
		s.create("as", thing("other"))
		close(listing)
		// the first has listed, too; the second has not reached that list's version
		synctest.Wait()
		assert.Equal(t, []string{"+a", "+b"}, told(update(t, a, &snap)))
		assert.Equal(t, []string{"a", "b"}, names(snap.A))
	})
}
