package accumulator

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/accumulator/stream"
)

func TestG5AnOlderListAfterAReconnectTakesNothingBack(t *testing.T) {
	bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		s.create("as", thing("x"))
		synctest.Wait()
		update(t, a, &snap)
		o := own{s, streams}
		s.delay = func(string) time.Duration { return time.Hour }
		o.put("as", thing("y"), 0)
		update(t, a, &snap)
		require.Len(t, snap.A, 2)
		s.lag = func(_, atLeast int) int { return atLeast } // as old as the server allows
		s.mu.Lock()
		s.oldest = s.rev // resuming is not possible
		s.mu.Unlock()
		for range 5 {
			s.cut()
			after(time.Minute)
			synctest.Wait()
			update(t, a, &snap)
			assert.Equal(t, []string{"x", "y"}, names(snap.A))
		}
	})
}

func TestG5ARestoredClusterStartsANewHistory(t *testing.T) {
	bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("old"))
		backup := s.rev
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		o := own{s, streams}
		for i := range 5 {
			o.put("as", thing(fmt.Sprint(i)), 0)
		}
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 6)
		s.restore(backup)
		s.mu.Lock()
		s.oldest = 1_000_000 // the watch cannot resume in a missing history
		s.mu.Unlock()
		after(time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"old"}, names(snap.A), "shown as it is")
		s.mu.Lock()
		s.oldest = 0
		s.mu.Unlock()
		o.put("as", thing("new"), 0)
		update(t, a, &snap)
		assert.Equal(t, []string{"new", "old"}, names(snap.A), "and coherent again")
	})
}

func TestG5AListThatWasUnderWayWhenWritesWereGivenUpIsNotShown(t *testing.T) {
	bubble(t, stream.Config{PendingMax: 3}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		sub := a.fields[0].parts[0].sub
		position := sub.State().PositionRV
		s.mu.Lock()
		s.delay = func(string) time.Duration { return time.Hour }
		s.listAnswer = func(string) time.Duration { return second }
		s.mu.Unlock()
		o := own{s, streams}
		for i := range 3 {
			o.put("as", thing(fmt.Sprint(i)), 0)
		}
		update(t, a, &snap)
		require.Len(t, snap.A, 3)
		o.put("as", thing("0", "written", "again"), 0) // nobody has read it yet
		o.put("as", thing("past the cap"), 0)
		err := sub.Stage().List(nil, position, position)
		assert.ErrorContains(t, err, "older than the newest own write")
		update(t, a, &snap)
		assert.Len(t, snap.A, 3, "what was shown stays")
		after(10 * second)
		synctest.Wait()
		update(t, a, &snap)
		assert.Len(t, snap.A, 4)
	})
}

func givenUp(a *Accumulator) bool {
	return a.fields[0].parts[0].sub.Stage().Held().GivenUp
}

func TestG4AListThatASyncOvertookIsNotTakenForARestoredServer(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			config.PendingMax = 5
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("x"))
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				o := own{s, streams}
				s.late(time.Hour)
				s.mu.Lock()
				s.listAnswer = func(string) time.Duration { return time.Minute }
				s.mu.Unlock()
				for i := range 6 { // one too many: the stream lists again
					o.put("as", thing(fmt.Sprint(i)), 0)
					require.True(t, o.delete("as", fmt.Sprint(i), 0, true))
				}
				after(10 * second) // the list is on its way
				s.mu.Lock()
				s.listAnswer = nil
				s.mu.Unlock()
				s.create("bs", thing("y")) // moves the server's version
				require.NoError(t, streams.Sync(t.Context()))
				o.put("as", thing("mine"), 0)
				for range 120 {
					after(second)
					synctest.Wait()
					update(t, a, &snap)
					if !givenUp(a) {
						require.Equal(t, []string{"mine", "x"}, names(snap.A))
					}
				}
				assert.Len(t, s.cuts, 1, "G11: the refused list's watch is closed")
			})
		})
	}
}

// Initial events come in the order of keys. One that is newer than an own write says nothing
// about the rest.
func TestG4HalfAListMovesNoPosition(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		s.late(time.Hour)
		own{s, streams}.put("as", thing("x"), 0)
		half := watch.NewFakeWithChanSize(1, false)
		half.Add(s.create("as", thing("a")))
		half.Stop()
		_, err := a.fields[0].parts[0].sub.Stage().Initial(t.Context(), half)
		assert.ErrorContains(t, err, "in the middle")
		var snap one
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, names(snap.A))
		assert.Equal(t, 1, a.Status()[0].Pending)
	})
}

// This holds even where the former list was in doubt.
func TestG5AListThatWasOvertakenIsNeverTakenForARestoredServer(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		before := a.fields[0].parts[0].sub.State().PositionRV
		s.create("as", thing("x"))
		require.True(t, signalled(a))
		err := a.fields[0].parts[0].sub.Stage().ListInDoubt(nil, before, before)
		assert.ErrorContains(t, err, "shown meanwhile")
		var snap one
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, names(snap.A))
	})
}

func TestG7ASettlingListThatBringsWhatIsShownChangesNothing(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "in", "yes"))
		q := simQuery("A", "as")
		// its watch does not show when x was deleted
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		a := watching(t, streams, Options{}, q)
		o := own{s, streams}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			o.delete("as", "x", 10*second, false)
		}()
		synctest.Wait()
		s.create("as", thing("x", "in", "yes")) // another writer recreated it
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		shown := snap.A[0]
		s.create("bs", thing("y")) // moves the server's version
		signalled(a)
		<-answered
		assert.Equal(t, 2, s.lists["as"]+s.watches["as"], "the server was asked")
		assert.False(t, signalled(a))
		assert.False(t, update(t, a, &snap).Changed)
		assert.Same(t, shown, snap.A[0])
	})
}

func TestG5ARestartFromAnyListKeepsWhatIsShown(t *testing.T) {
	all := maps.Clone(ways)
	all["of a fake, which has no versions"] = stream.Config{ByContent: true}
	for name, config := range all {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				for i := range 7 {
					s.create("as", thing(fmt.Sprint(i)))
				}
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				var snap one
				require.True(t, signalled(a))
				update(t, a, &snap)
				shown := snap.A
				for range 5 {
					s.mu.Lock()
					s.oldest = s.rev + 1
					s.lag = func(_, atLeast int) int { return atLeast }
					s.mu.Unlock()
					s.create("bs", thing("y"))
					s.cut()
					after(time.Minute)
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
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("x"))
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				require.True(t, signalled(a))
				assert.Empty(t, s.asked, "the first list: the newest state, from no cache")
				s.late(time.Hour)
				own{s, streams}.put("as", thing("y"), 0)
				s.mu.Lock()
				s.oldest = s.rev // resuming is not possible
				opened := s.opened("as")
				s.mu.Unlock()
				s.cut()
				after(time.Minute)
				synctest.Wait()
				var snap one
				update(t, a, &snap)
				assert.Equal(t, []string{"x", "y"}, names(snap.A))
				s.mu.Lock()
				defer s.mu.Unlock()
				assert.Empty(t, s.asked, "the newest state again, whatever caches have")
				assert.Equal(t, 1, s.opened("as")-opened, "and it was asked for")
			})
		})
	}
}

func TestG2AWatchThatBreaksIsResumedWithoutAList(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("x"))
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				after(time.Minute) // the stream gives up a watch that ends at once
				lists := s.lists["as"]
				refused := 0
				s.failing(func(verb, _ string) error {
					if refused++; verb == "watch" && refused < 4 {
						return apierrors.NewInternalError(errors.New("just now"))
					}
					return nil
				})
				s.cut()
				s.create("as", thing("missed"))
				after(time.Minute)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"missed", "x"}, names(snap.A))
				assert.Equal(t, lists, s.lists["as"])
				assert.Zero(t, a.Status()[0].Restarts)
			})
		})
	}
}

// The pause before a list grows with lists that did not help, not with the time without a server.
func TestG2AListAfterALongOutageIsMadeAtOnce(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("x"))
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				var snap one
				require.True(t, signalled(a))
				update(t, a, &snap)
				after(time.Minute)
				s.failing(func(string, string) error { return errors.New("connection refused") })
				s.cut()
				s.create("as", thing("missed"))
				after(5 * time.Minute)
				require.Equal(t, Retrying, a.Status()[0].State)
				s.mu.Lock()
				s.oldest = s.rev // like a server that has just started
				s.mu.Unlock()
				back := make(chan struct{})
				s.failing(func(verb, _ string) error {
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
				after(second)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"missed", "x"}, names(snap.A))
			})
		})
	}
}
