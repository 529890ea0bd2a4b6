package accumulator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// watchesOf returns the watches that are open.
func watchesOf(s *sim.Server) map[*sim.Watch]struct{} {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return maps.Clone(s.Cuts)
}

// moving starts to move the streams, and returns what says how that ended.
func moving(ctx context.Context, streams *streamset.Set, to streamset.Exchange) <-chan error {
	moved := make(chan error, 1)
	go func() { moved <- streams.Move(ctx, to) }()
	return moved
}

func TestG5WhatBothWatchesBringAtAnExchangeIsShownOnce(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("a"))
				s.Create("as", sim.Thing("b"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
				var snap two
				synctest.Wait()
				update(t, a, &snap)
				lists, asked := s.Opened("as"), s.Requested("as")
				old := watchesOf(s)
				s.Mu.Lock()
				s.DelayOf = func(w *sim.Watch) time.Duration { // the next watch is late
					if _, is := old[w]; is {
						return 0
					}
					return time.Minute
				}
				s.Mu.Unlock()
				s.Failing(func(verb, resource string) error { // so is the trial of the other kind
					if verb == "watch" && resource == "bs" {
						sim.After(10 * time.Second)
					}
					return nil
				})
				var times atomic.Int64
				moved := moving(t.Context(), streams, streamset.Exchange{Do: func() { times.Add(1) }})
				synctest.Wait()
				assert.Equal(t, 3, s.Watching(), "the first kind's next watch is open, and its present one")
				s.Remove("as", "a")
				s.Create("as", sim.Thing("b", "n", "1"))
				s.Create("as", sim.Thing("c"))
				synctest.Wait()
				assert.True(t, update(t, a, &snap).Changed, "a trial holds nothing up")
				assert.Equal(t, []string{"b", "c"}, sim.Names(snap.A))
				assert.Zero(t, times.Load())
				require.NoError(t, <-moved)
				synctest.Wait()
				assert.Equal(t, 2, s.Watching(), "the old ones have ended")
				assert.Equal(t, asked+1, s.Requested("as"), "the watch of the trial is read")
				for range 10 {
					sim.After(30 * time.Second)
					synctest.Wait()
					assert.False(t, update(t, a, &snap).Changed, "old news")
					assert.Equal(t, []string{"b", "c"}, sim.Names(snap.A))
				}
				s.Create("as", sim.Thing("d"))
				sim.After(2 * time.Minute)
				update(t, a, &snap)
				assert.Equal(t, []string{"b", "c", "d"}, sim.Names(snap.A))
				assert.Equal(t, lists, s.Opened("as"), "no second list")
				assert.EqualValues(t, 1, times.Load())
			})
		})
	}
}

func TestG8ABookmarkOfAWatchThatBeganBehindTheOneBeforeIsNoFailure(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
		var snap two
		synctest.Wait()
		update(t, a, &snap)
		old := watchesOf(s)
		s.Mu.Lock()
		s.DelayOf = func(w *sim.Watch) time.Duration { // the next watch is late
			if _, is := old[w]; is {
				return 0
			}
			return time.Minute
		}
		s.Mu.Unlock()
		s.Failing(func(verb, resource string) error { // so is the trial of the other kind
			if verb == "watch" && resource == "bs" {
				sim.After(10 * time.Second)
			}
			return nil
		})
		moved := moving(t.Context(), streams, streamset.Exchange{Do: func() {}})
		synctest.Wait()
		s.Bookmarks() // the next watch brings it in a minute
		synctest.Wait()
		s.Create("as", sim.Thing("a"))
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"a"}, sim.Names(snap.A), "the present watch is ahead")
		require.NoError(t, <-moved)
		sim.After(70 * time.Second)
		synctest.Wait()
		assert.Empty(t, a.Status()[0].Error)
	})
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "bs"}, "", errors.New("no"))

func TestAStreamThatIsRefusedOverAnotherConnectionKeepsAllOnTheOldOne(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
		var snap two
		synctest.Wait()
		update(t, a, &snap)
		old := watchesOf(s)
		for _, refusal := range []error{forbidden, apierrors.NewUnauthorized("no"), apierrors.NewInternalError(errors.New("no")), errors.New("no")} {
			s.Failing(func(verb, resource string) error {
				if verb == "watch" && resource == "bs" {
					return refusal
				}
				return nil
			})
			err := streams.Move(t.Context(), streamset.Exchange{Do: func() { assert.Fail(t, "exchanged") }})
			assert.ErrorIs(t, err, refusal)
			assert.ErrorContains(t, err, "watch v1/bs: ")
		}
		s.Failing(func(string, string) error { return apierrors.NewTooManyRequests("later", 1) })
		began := time.Now()
		err := streams.Move(t.Context(), streamset.Exchange{Do: func() { assert.Fail(t, "exchanged") }})
		assert.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		assert.NotZero(t, time.Since(began), "it is tried again when the server says")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Failing(func(string, string) error { sim.After(time.Minute); return nil })
		assert.ErrorIs(t, streams.Move(ctx, streamset.Exchange{Do: func() { assert.Fail(t, "exchanged") }}), context.DeadlineExceeded)
		s.Failing(nil)
		synctest.Wait()
		assert.Equal(t, old, watchesOf(s), "nothing of the trials is left, and what was open still is")
	})
}

func TestAStreamThatFailsAlreadyMayFailInTheSameWayElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		now, there error
		moves      bool
	}{
		"the same refusal":        {forbidden, forbidden, true},
		"another refusal":         {forbidden, apierrors.NewInternalError(errors.New("no")), false},
		"the same failure":        {apierrors.NewServiceUnavailable("a"), apierrors.NewServiceUnavailable("b"), true},
		"refused credentials":     {apierrors.NewUnauthorized("no"), apierrors.NewUnauthorized("no"), false},
		"the network, both times": {errors.New("a"), errors.New("a"), false},
		"healed":                  {forbidden, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{PageSize: 5, KindPoll: time.Hour}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				fail := func(err error) func(_, resource string) error {
					return func(_, resource string) error {
						if resource == "bs" {
							return err
						}
						return nil
					}
				}
				s.Create("bs", sim.Thing("b"))
				s.Failing(fail(c.now))
				optional := sim.Query("B", "bs")
				optional.Optional = true
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), optional)
				sim.After(time.Minute) // pauses are long by now
				s.Failing(fail(c.there))
				times := 0
				err := streams.Move(t.Context(), streamset.Exchange{Do: func() { times++ }})
				assert.Equal(t, c.moves, err == nil, "%v", err)
				assert.Equal(t, c.moves, times == 1)
				if c.there == nil {
					synctest.Wait()
					var snap two
					update(t, a, &snap)
					assert.Len(t, snap.B, 1, "without a pause")
				}
			})
		})
	}
}

func TestNoStreamThatBeginsDuringATrialGoesUntried(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		s.Failing(func(verb, resource string) error {
			if resource == "as" && verb == "watch" {
				sim.After(10 * time.Second)
			}
			return nil
		})
		times := 0
		moved := moving(t.Context(), streams, streamset.Exchange{Do: func() { times++ }})
		synctest.Wait()
		watching(t, streams, collect.Options{}, sim.Query("B", "bs"))
		synctest.Wait()
		s.Failing(func(_, resource string) error {
			if resource == "bs" {
				return forbidden
			}
			return nil
		})
		require.ErrorIs(t, <-moved, forbidden)
		assert.Zero(t, times)
	})
}

func TestG5AClusterThatIsRestoredElsewhereIsFoundAtTheExchange(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("old"))
		backup := s.Rev
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		for i := range 5 {
			s.Create("as", sim.Thing(fmt.Sprint(i)))
		}
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 6)
		s.Rewind(backup) // a watch at the position would be deaf
		require.NoError(t, streams.Move(t.Context(), streamset.Exchange{Do: func() {}, Elsewhere: true}))
		sim.After(10 * time.Second)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"old"}, sim.Names(snap.A))
	})
}

func TestAWatchThatWasHandedOverIsNotUsedAfterAListOfANewHistory(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("old"))
		backup := s.Rev
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
		for i := range 5 {
			s.Create("as", sim.Thing(fmt.Sprint(i)))
		}
		var snap two
		synctest.Wait()
		update(t, a, &snap)
		s.Failing(func(verb, resource string) error {
			if verb == "watch" && resource == "bs" {
				sim.After(20 * time.Second)
			}
			return nil
		})
		old := watchesOf(s)
		moved := moving(t.Context(), streams, streamset.Exchange{Do: func() {}})
		synctest.Wait() // the watch of the first kind is open
		s.Rewind(backup)
		s.Mu.Lock()
		for w := range old {
			w.StopLocked()
		}
		s.Mu.Unlock()
		require.NoError(t, <-moved)
		for i := range 10 { // the new history passes the position of the former one
			s.Create("as", sim.Thing(fmt.Sprint("new", i)))
		}
		sim.After(time.Minute)
		update(t, a, &snap)
		assert.Len(t, snap.A, 11)
	})
}

func TestG11CloseEndsATrialAndNothingOfItIsLeft(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
		synctest.Wait()
		s.Failing(func(verb, resource string) error {
			if verb == "watch" && resource == "bs" {
				sim.After(time.Hour)
			}
			return nil
		})
		ctx, cancel := streams.Bound(t.Context())
		defer cancel()
		moved := moving(ctx, streams, streamset.Exchange{Do: func() { assert.Fail(t, "exchanged") }})
		synctest.Wait()
		streams.Close()
		assert.Error(t, <-moved)
		assert.Zero(t, s.Watching())
		assert.ErrorIs(t, streams.Move(t.Context(), streamset.Exchange{Do: func() {}}), stream.ErrClosed)
	})
}

func TestAWatchThatWasOpenedBeforeTheExchangeEndsWhenTheNextIsOpen(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		s.ListAnswer = func(string) time.Duration { return 10 * time.Second } // the first list is under way
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		require.NoError(t, streams.Move(t.Context(), streamset.Exchange{Do: func() {}}))
		old := watchesOf(s)
		require.Len(t, old, 1)
		s.Failing(func(string, string) error { sim.After(5 * time.Second); return nil })
		for end := time.Now().Add(time.Minute); time.Now().Before(end); sim.After(time.Second) {
			synctest.Wait()
			assert.NotZero(t, s.Watching())
		}
		assert.NotEqual(t, old, watchesOf(s))
		assert.Equal(t, 1, s.Watching())
		var snap one
		update(t, a, &snap)
		assert.Len(t, snap.A, 1)
		assert.Equal(t, 1, s.Opened("as"), "no second list")
	})
}
