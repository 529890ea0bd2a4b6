package accumulator

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/test/suite/sim"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
)

func TestG5AnOlderListAfterAReconnectTakesNothingBack(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		s.Create("as", sim.Thing("x"))
		synctest.Wait()
		update(t, a, &snap)
		o := sim.NewClient(s, streams)
		s.Delay = func(string) time.Duration { return time.Hour }
		o.Put("as", sim.Thing("y"), 0)
		update(t, a, &snap)
		require.Len(t, snap.A, 2)
		s.Lag = func(_, atLeast int) int { return atLeast } // as old as the server allows
		s.Mu.Lock()
		s.Oldest = s.Rev // resuming is not possible
		s.Mu.Unlock()
		for range 5 {
			s.Cut()
			sim.After(time.Minute)
			synctest.Wait()
			update(t, a, &snap)
			assert.Equal(t, []string{"x", "y"}, sim.Names(snap.A))
		}
	})
}

func TestG5ARestoredClusterStartsANewHistory(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("old"))
		backup := s.Rev
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		o := sim.NewClient(s, streams)
		for i := range 5 {
			o.Put("as", sim.Thing(fmt.Sprint(i)), 0)
		}
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 6)
		s.Restore(backup)
		s.Mu.Lock()
		s.Oldest = 1_000_000 // the watch cannot resume in a missing history
		s.Mu.Unlock()
		sim.After(time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"old"}, sim.Names(snap.A), "shown as it is")
		s.Mu.Lock()
		s.Oldest = 0
		s.Mu.Unlock()
		o.Put("as", sim.Thing("new"), 0)
		update(t, a, &snap)
		assert.Equal(t, []string{"new", "old"}, sim.Names(snap.A), "and coherent again")
	})
}

func TestG5AListThatWasUnderWayWhenWritesWereGivenUpIsNotShown(t *testing.T) {
	sim.Bubble(t, stream.Config{PendingMax: 3}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		sub := listener(a, 0)
		position := sub.State().PositionRV
		s.Mu.Lock()
		s.Delay = func(string) time.Duration { return time.Hour }
		s.ListAnswer = func(string) time.Duration { return second }
		s.Mu.Unlock()
		o := sim.NewClient(s, streams)
		for i := range 3 {
			o.Put("as", sim.Thing(fmt.Sprint(i)), 0)
		}
		update(t, a, &snap)
		require.Len(t, snap.A, 3)
		o.Put("as", sim.Thing("0", "written", "again"), 0) // nobody has read it yet
		o.Put("as", sim.Thing("past the cap"), 0)
		err := sub.Stage().List(nil, position, position)
		assert.ErrorContains(t, err, "older than the newest own write")
		update(t, a, &snap)
		assert.Len(t, snap.A, 3, "what was shown stays")
		sim.After(10 * second)
		synctest.Wait()
		update(t, a, &snap)
		assert.Len(t, snap.A, 4)
	})
}

func givenUp(a *Accumulator) bool {
	return listener(a, 0).Stage().Held().GivenUp
}

func TestG4AListThatASyncOvertookIsNotTakenForARestoredServer(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			config.PendingMax = 5
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				o := sim.NewClient(s, streams)
				s.Late(time.Hour)
				s.Mu.Lock()
				s.ListAnswer = func(string) time.Duration { return time.Minute }
				s.Mu.Unlock()
				for i := range 6 { // one too many: the stream lists again
					o.Put("as", sim.Thing(fmt.Sprint(i)), 0)
					require.True(t, o.Delete("as", fmt.Sprint(i), 0, true))
				}
				sim.After(10 * second) // the list is on its way
				s.Mu.Lock()
				s.ListAnswer = nil
				s.Mu.Unlock()
				s.Create("bs", sim.Thing("y")) // moves the server's version
				require.NoError(t, streams.Sync(t.Context()))
				o.Put("as", sim.Thing("mine"), 0)
				for range 120 {
					sim.After(second)
					synctest.Wait()
					update(t, a, &snap)
					if !givenUp(a) {
						require.Equal(t, []string{"mine", "x"}, sim.Names(snap.A))
					}
				}
				assert.Len(t, s.Cuts, 1, "G11: the refused list's watch is closed")
			})
		})
	}
}

// Initial events come in the order of keys. One that is newer than an own write says nothing
// about the rest.
func TestG4HalfAListMovesNoPosition(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		s.Late(time.Hour)
		sim.NewClient(s, streams).Put("as", sim.Thing("x"), 0)
		half := watch.NewFakeWithChanSize(1, false)
		half.Add(s.Create("as", sim.Thing("a")))
		half.Stop()
		_, err := listener(a, 0).Stage().Initial(t.Context(), half)
		assert.ErrorContains(t, err, "in the middle")
		var snap one
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, sim.Names(snap.A))
		assert.Equal(t, 1, a.Status()[0].Pending)
	})
}

// This holds even where the former list was in doubt.
func TestG5AListThatWasOvertakenIsNeverTakenForARestoredServer(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		before := listener(a, 0).State().PositionRV
		s.Create("as", sim.Thing("x"))
		require.True(t, signalled(a))
		err := listener(a, 0).Stage().ListInDoubt(nil, before, before)
		assert.ErrorContains(t, err, "shown meanwhile")
		var snap one
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, sim.Names(snap.A))
	})
}

func TestG7ASettlingListThatBringsWhatIsShownChangesNothing(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "in", "yes"))
		q := sim.Query("A", "as")
		// its watch does not show when x was deleted
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		a := watching(t, streams, collect.Options{}, q)
		o := sim.NewClient(s, streams)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			o.Delete("as", "x", 10*second, false)
		}()
		synctest.Wait()
		s.Create("as", sim.Thing("x", "in", "yes")) // another writer recreated it
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		shown := snap.A[0]
		s.Create("bs", sim.Thing("y")) // moves the server's version
		signalled(a)
		<-answered
		assert.Equal(t, 2, s.Lists["as"]+s.Watches["as"], "the server was asked")
		assert.False(t, signalled(a))
		assert.False(t, update(t, a, &snap).Changed)
		assert.Same(t, shown, snap.A[0])
	})
}

func TestG5ARestartFromAnyListKeepsWhatIsShown(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				for i := range 7 {
					s.Create("as", sim.Thing(fmt.Sprint(i)))
				}
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				var snap one
				require.True(t, signalled(a))
				update(t, a, &snap)
				shown := snap.A
				for range 5 {
					s.Mu.Lock()
					s.Oldest = s.Rev + 1
					s.Lag = func(_, atLeast int) int { return atLeast }
					s.Mu.Unlock()
					s.Create("bs", sim.Thing("y"))
					s.Cut()
					sim.After(time.Minute)
					assert.False(t, signalled(a))
					r := update(t, a, &snap)
					assert.False(t, r.Changed)
				}
				assert.Positive(t, a.Status()[0].Restarts)
				for i := range shown {
					assert.Same(t, shown[i], snap.A[i])
				}
			})
		})
	}
}

func TestG4ARelistIsNoOlderThanTheNewestOwnWrite(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				require.True(t, signalled(a))
				assert.Empty(t, s.Asked, "the first list: the newest state, from no cache")
				s.Late(time.Hour)
				sim.NewClient(s, streams).Put("as", sim.Thing("y"), 0)
				s.Mu.Lock()
				s.Oldest = s.Rev // resuming is not possible
				opened := s.Opened("as")
				s.Mu.Unlock()
				s.Cut()
				sim.After(time.Minute)
				synctest.Wait()
				var snap one
				update(t, a, &snap)
				assert.Equal(t, []string{"x", "y"}, sim.Names(snap.A))
				s.Mu.Lock()
				defer s.Mu.Unlock()
				assert.Empty(t, s.Asked, "the newest state again, whatever caches have")
				assert.Equal(t, 1, s.Opened("as")-opened, "and it was asked for")
			})
		})
	}
}

func TestG2AWatchThatBreaksIsResumedWithoutAList(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				sim.After(time.Minute) // the stream gives up a watch that ends at once
				lists := s.Lists["as"]
				refused := 0
				s.Failing(func(verb, _ string) error {
					if refused++; verb == "watch" && refused < 4 {
						return apierrors.NewInternalError(errors.New("just now"))
					}
					return nil
				})
				s.Cut()
				s.Create("as", sim.Thing("missed"))
				sim.After(time.Minute)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"missed", "x"}, sim.Names(snap.A))
				assert.Equal(t, lists, s.Lists["as"])
				assert.Zero(t, a.Status()[0].Restarts)
			})
		})
	}
}

// The pause before a list grows with lists that did not help, not with the time without a server.
func TestG2AListAfterALongOutageIsMadeAtOnce(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				var snap one
				require.True(t, signalled(a))
				update(t, a, &snap)
				sim.After(time.Minute)
				s.Failing(func(string, string) error { return errors.New("connection refused") })
				s.Cut()
				s.Create("as", sim.Thing("missed"))
				sim.After(5 * time.Minute)
				require.Equal(t, stream.Retrying, a.Status()[0].State)
				s.Mu.Lock()
				s.Oldest = s.Rev // like a server that has just started
				s.Mu.Unlock()
				back := make(chan struct{})
				s.Failing(func(verb, _ string) error {
					if verb == "watch" {
						select {
						case <-back:
						default:
							close(back)
						}
					}
					return nil
				})
				<-back
				sim.After(second)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"missed", "x"}, sim.Names(snap.A))
			})
		})
	}
}
