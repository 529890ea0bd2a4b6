package accumulator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestG1NoSignalBeforeEveryQueryHasItsWholeList(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				for i := range 10 {
					s.Create("as", sim.Thing(fmt.Sprint(i)))
				}
				var slow atomic.Bool
				slow.Store(true)
				s.Failing(func(_, resource string) error {
					if resource == "bs" && slow.Load() {
						return apierrors.NewInternalError(errors.New("not yet"))
					}
					return nil
				})
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
				sim.After(60 * second)
				assert.False(t, signalled(a))
				snap := two{A: []*unstructured.Unstructured{sim.Thing("mine")}}
				r := update(t, a, &snap)
				assert.False(t, r.Changed || r.Complete)
				assert.Equal(t, []string{"mine"}, sim.Names(snap.A), "the target is untouched")
				assert.ErrorContains(t, a.Ready(), `query "B"`)
				slow.Store(false)
				sim.After(60 * second)
				assert.True(t, signalled(a), "an empty kind counts")
				assert.True(t, update(t, a, &snap).Changed)
				assert.Len(t, snap.A, 10)
				assert.NotNil(t, snap.B)
				assert.Empty(t, snap.B)
				assert.NoError(t, a.Ready())
			})
		})
	}
}

func TestG1AllPagesCount(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 3}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for i := range 20 {
			s.Create("as", sim.Thing(fmt.Sprintf("%02d", i)))
		}
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		assert.Len(t, snap.A, 20)
		assert.Equal(t, 6, s.Pages, "pages after the first")
	})
}

func TestG2ASlowReaderStopsNothingAndGetsTheLatest(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		fast := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap, quick one
		synctest.Wait()
		update(t, a, &snap)
		for i := range 1000 {
			s.Touch("as", "x", i)
			synctest.Wait()
			update(t, fast, &quick)
			n, _, _ := unstructured.NestedInt64(quick.A[0].Object, "spec", "n")
			require.EqualValues(t, i, n, "the other reader is not held up")
		}
		r := update(t, a, &snap)
		require.Len(t, r.Differences, 1)
		n, _, _ := unstructured.NestedInt64(snap.A[0].Object, "spec", "n")
		assert.EqualValues(t, 999, n)
	})
}

func TestG3WhatIsHeldDependsOnObjectsNotOnEvents(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		for i := range 3000 {
			s.Touch("as", "x", i)
			s.Create("as", sim.Thing(fmt.Sprint("passing-", i)))
			s.Remove("as", fmt.Sprint("passing-", i))
		}
		synctest.Wait()
		sub := listener(a, 0)
		assert.Equal(t, 1, sub.Stage().Held().Dirty, "one object, one key; what came and went is nothing")
		assert.Equal(t, 1, sub.Stage().Held().Objects)
		assert.Len(t, a.Changed(), 1, "one signal at most")
		assert.Len(t, update(t, a, &snap).Differences, 1)
	})
}

func TestG3PastTheCapPendingWritesAreGivenUpForARelist(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true, PendingMax: 10}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		o := sim.NewClient(s, streams)
		o.Put("as", sim.Thing("first"), 0)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Delay = func(string) time.Duration { return time.Hour }
		s.ListDelay = func(string) time.Duration { return second }
		shown := 0
		for i := range 25 {
			o.Put("as", sim.Thing(fmt.Sprint(i)), 0)
			update(t, a, &snap)
			assert.GreaterOrEqual(t, len(snap.A), shown, "G5: nothing is taken back meanwhile")
			shown = len(snap.A)
			assert.LessOrEqual(t, a.Status()[0].Pending, 11)
		}
		sim.After(10 * second)
		synctest.Wait()
		update(t, a, &snap)
		assert.Len(t, snap.A, 26, "the relist has them all")
		sim.After(50 * time.Hour) // until the watch has brought the objects written meanwhile
		synctest.Wait()
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestG7DeltasAreExact(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("stays"))
		s.Create("as", sim.Thing("replaced"))
		s.Create("as", sim.Thing("goes"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		assert.Len(t, update(t, a, &snap).Differences, 3)
		s.Create("as", sim.Thing("added"))
		s.Touch("as", "added", 1) // add and update is an add
		s.Create("as", sim.Thing("passing"))
		s.Remove("as", "passing") // add and delete is nothing
		s.Touch("as", "stays", 1)
		s.Touch("as", "stays", 2)
		s.Remove("as", "goes")
		s.Remove("as", "replaced")
		s.Create("as", sim.Thing("replaced")) // both, in that order
		synctest.Wait()
		var got []string
		for _, d := range update(t, a, &snap).Differences {
			switch {
			case d.Old == nil:
				got = append(got, "add "+d.New.GetName())
			case d.New == nil:
				got = append(got, "delete "+d.Old.GetName())
			default:
				got = append(got, "update "+d.New.GetName())
			}
		}
		assert.Equal(t, []string{"add added", "delete goes", "delete replaced", "add replaced", "update stays"}, got)
		assert.Empty(t, update(t, a, &snap).Differences)
	})
}

func TestG8AKindThatFailsAfterTheFirstSnapshotKeepsItsObjectsAndStopsNobody(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "as"}, "", errors.New("revoked"))
	failures := map[string]error{
		"forbidden": forbidden,
		"not found": apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "404 page not found", 0, true),
		"busy":      apierrors.NewTooManyRequests("storage is (re)initializing", 1),
		"internal":  apierrors.NewInternalError(errors.New("outage")),
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
				var snap two
				synctest.Wait()
				update(t, a, &snap)
				var failing atomic.Bool
				failing.Store(true)
				s.Failing(func(_, resource string) error {
					if resource == "as" && failing.Load() {
						return failure
					}
					return nil
				})
				s.Cut()
				s.Create("as", sim.Thing("y"))
				s.Create("bs", sim.Thing("z"))
				sim.After(time.Minute)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"x"}, sim.Names(snap.A), "kept")
				assert.Equal(t, []string{"z"}, sim.Names(snap.B), "goes on")
				assert.NotEmpty(t, a.Status()[0].Error)
				assert.NoError(t, a.Ready(), "never turns back")
				failing.Store(false)
				sim.After(2 * time.Minute)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"x", "y"}, sim.Names(snap.A), "healed")
				assert.Empty(t, a.Status()[0].Error)
			})
		})
	}
}

func TestG8APanicInAPredicateIsOneInvalidObject(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("bad"))
		s.Create("as", sim.Thing("good"))
		var told []tables.Invalid
		a := watching(t, streams, collect.Options{Invalid: func(i tables.Invalid) { told = append(told, i) }}, sim.Query("A", "as"))
		synctest.Wait()
		var snap one
		j := Pass(func(u *unstructured.Unstructured) bool {
			if u.GetName() == "bad" {
				panic("no")
			}
			return true
		})
		r, err := a.Update(t.Context(), &snap, j)
		require.NoError(t, err)
		assert.Equal(t, []string{"good"}, sim.Names(snap.A))
		require.Len(t, r.Invalid, 1)
		assert.ErrorContains(t, r.Invalid[0].Err, "the predicate panicked: no")
		assert.Len(t, told, 1)
	})
}

func TestG8AKindWhoseListFailsForEverHoldsOnlyTheFirstSignal(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		s.Failing(func(_, resource string) error {
			if resource == "bs" {
				return apierrors.NewInternalError(errors.New("for ever"))
			}
			return nil
		})
		stuck := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
		fine := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		sim.After(time.Hour)
		assert.False(t, signalled(stuck))
		assert.True(t, signalled(fine), "nobody else's")
		assert.ErrorContains(t, stuck.Ready(), "for ever")
		assert.Less(t, s.Lists["bs"]+s.Watches["bs"], 600, "and the server is not pestered")
	})
}

func TestG9SlicesAreInOrderOfNamespaceThenName(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, i := range r.Perm(50) {
			s.Create("as", sim.Thing(fmt.Sprintf("%02d", i)))
		}
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		for i, n := range sim.Names(snap.A) {
			assert.Equal(t, fmt.Sprintf("%02d", i), n)
		}
	})
}

func TestG10DeliveredSlicesAreNeverWrittenTo(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		first, version := snap.A, snap.A[0].GetResourceVersion()
		require.Equal(t, len(first), cap(first))
		for i := range 10 {
			s.Touch("as", "x", i)
			s.Create("as", sim.Thing(fmt.Sprint(i)))
			synctest.Wait()
			update(t, a, &snap)
		}
		assert.Len(t, first, 1)
		assert.Equal(t, version, first[0].GetResourceVersion())
	})
}

func TestG11CancellingOrClosingEndsEverything(t *testing.T) {
	for _, end := range []string{"cancel", "close", "close the streams"} {
		t.Run(end, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				a, err := New(ctx, streams, []query.Query{sim.Query("A", "as")}, collect.Options{})
				require.NoError(t, err)
				s.Create("as", sim.Thing("unread"))
				synctest.Wait()
				require.Len(t, s.Cuts, 1)
				switch end {
				case "cancel":
					cancel()
				case "close":
					a.Close()
				default:
					streams.Close()
				}
				synctest.Wait()
				assert.Empty(t, s.Cuts, "no watch is open")
				assert.Zero(t, streams.Len())
				for range a.Changed() { // closed
				}
				_, err = a.Update(t.Context(), &one{}, nil)
				if end == "cancel" {
					assert.ErrorIs(t, err, context.Canceled)
				} else {
					assert.ErrorIs(t, err, stream.ErrClosed)
				}
			})
		})
	}
}

func TestG11AFailingNewLeavesNothingBehind(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		bad := sim.Query("B", "bs")
		bad.Resolve = func(context.Context) (object.Resource, error) { return object.Resource{}, query.ErrNotServed }
		_, err := New(t.Context(), streams, []query.Query{sim.Query("A", "as"), bad}, collect.Options{})
		assert.ErrorContains(t, err, `query "B"`)
		assert.ErrorIs(t, err, query.ErrNotServed)
		synctest.Wait()
		assert.Empty(t, s.Cuts)
		assert.Empty(t, s.Lists)
		assert.Zero(t, streams.Len())
		assert.Empty(t, streams.Users())
	})
}

func TestG11ClosingWaitsForRequestsUnderWay(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				var ended atomic.Bool
				s.Failing(func(string, string) error { // a request that ignores its context
					sim.After(time.Hour)
					ended.Store(true)
					return nil
				})
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				synctest.Wait()
				streams.Close()
				assert.True(t, ended.Load())
				assert.ErrorIs(t, a.Err(), stream.ErrClosed)
				assert.Zero(t, streams.Len())
				_, err := New(t.Context(), streams, []query.Query{sim.Query("A", "as")}, collect.Options{})
				assert.ErrorIs(t, err, stream.ErrClosed)
			})
		})
	}
}
