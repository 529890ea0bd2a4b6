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

	"github.com/kates-go/kates/accumulator/stream"
)

// ways are the two ways to fetch a first list.
var ways = map[string]stream.Config{
	"streamed": {StreamLists: true},
	"paged":    {PageSize: 3},
}

func TestG1NoSignalBeforeEveryQueryHasItsWholeList(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				for i := range 10 {
					s.create("as", thing(fmt.Sprint(i)))
				}
				var slow atomic.Bool
				slow.Store(true)
				s.failing(func(_, resource string) error {
					if resource == "bs" && slow.Load() {
						return apierrors.NewInternalError(errors.New("not yet"))
					}
					return nil
				})
				a := watching(t, streams, Options{}, simQuery("A", "as"), simQuery("B", "bs"))
				after(60 * second)
				assert.False(t, signalled(a))
				snap := two{A: []*unstructured.Unstructured{thing("mine")}}
				r := update(t, a, &snap)
				assert.False(t, r.Changed || r.Complete)
				assert.Equal(t, []string{"mine"}, names(snap.A), "the target is untouched")
				assert.ErrorContains(t, a.Ready(), `query "B"`)
				slow.Store(false)
				after(60 * second)
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
	bubble(t, stream.Config{PageSize: 3}, func(t *testing.T, s *sim, streams *stream.Set) {
		for i := range 20 {
			s.create("as", thing(fmt.Sprintf("%02d", i)))
		}
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		assert.Len(t, snap.A, 20)
		assert.Equal(t, 6, s.pages, "pages after the first")
	})
}

func TestG2ASlowReaderStopsNothingAndGetsTheLatest(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		fast := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap, quick one
		synctest.Wait()
		update(t, a, &snap)
		for i := range 1000 {
			s.touch("as", "x", i)
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
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		for i := range 3000 {
			s.touch("as", "x", i)
			s.create("as", thing(fmt.Sprint("passing-", i)))
			s.remove("as", fmt.Sprint("passing-", i))
		}
		synctest.Wait()
		sub := a.fields[0].parts[0].sub
		assert.Equal(t, 1, sub.Stage().Held().Dirty, "one object, one key; what came and went is nothing")
		assert.Equal(t, 1, sub.Stage().Held().Objects)
		assert.Len(t, a.pacer.out, 1, "one signal at most")
		assert.Len(t, update(t, a, &snap).Differences, 1)
	})
}

func TestG3PastTheCapPendingWritesAreGivenUpForARelist(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true, PendingMax: 10}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		o := own{s, streams}
		o.put("as", thing("first"), 0)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.delay = func(string) time.Duration { return time.Hour }
		s.listDelay = func(string) time.Duration { return second }
		shown := 0
		for i := range 25 {
			o.put("as", thing(fmt.Sprint(i)), 0)
			update(t, a, &snap)
			assert.GreaterOrEqual(t, len(snap.A), shown, "G5: nothing is taken back meanwhile")
			shown = len(snap.A)
			assert.LessOrEqual(t, a.Status()[0].Pending, 11)
		}
		after(10 * second)
		synctest.Wait()
		update(t, a, &snap)
		assert.Len(t, snap.A, 26, "the relist has them all")
		after(50 * time.Hour) // until the watch has brought the objects written meanwhile
		synctest.Wait()
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestG7DeltasAreExact(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("stays"))
		s.create("as", thing("replaced"))
		s.create("as", thing("goes"))
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		assert.Len(t, update(t, a, &snap).Differences, 3)
		s.create("as", thing("added"))
		s.touch("as", "added", 1) // add and update is an add
		s.create("as", thing("passing"))
		s.remove("as", "passing") // add and delete is nothing
		s.touch("as", "stays", 1)
		s.touch("as", "stays", 2)
		s.remove("as", "goes")
		s.remove("as", "replaced")
		s.create("as", thing("replaced")) // both, in that order
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
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("x"))
				a := watching(t, streams, Options{}, simQuery("A", "as"), simQuery("B", "bs"))
				var snap two
				synctest.Wait()
				update(t, a, &snap)
				var failing atomic.Bool
				failing.Store(true)
				s.failing(func(_, resource string) error {
					if resource == "as" && failing.Load() {
						return failure
					}
					return nil
				})
				s.cut()
				s.create("as", thing("y"))
				s.create("bs", thing("z"))
				after(time.Minute)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"x"}, names(snap.A), "kept")
				assert.Equal(t, []string{"z"}, names(snap.B), "goes on")
				assert.NotEmpty(t, a.Status()[0].Error)
				assert.NoError(t, a.Ready(), "never turns back")
				failing.Store(false)
				after(2 * time.Minute)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"x", "y"}, names(snap.A), "healed")
				assert.Empty(t, a.Status()[0].Error)
			})
		})
	}
}

func TestG8APanicInAPredicateIsOneInvalidObject(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("bad"))
		s.create("as", thing("good"))
		var told []Invalid
		a := watching(t, streams, Options{Invalid: func(i Invalid) { told = append(told, i) }}, simQuery("A", "as"))
		synctest.Wait()
		var snap one
		j := &Judgement{Predicate: func(u *unstructured.Unstructured) bool {
			if u.GetName() == "bad" {
				panic("no")
			}
			return true
		}}
		r, err := a.Update(t.Context(), &snap, j)
		require.NoError(t, err)
		assert.Equal(t, []string{"good"}, names(snap.A))
		require.Len(t, r.Invalid, 1)
		assert.ErrorContains(t, r.Invalid[0].Err, "the predicate panicked: no")
		assert.Len(t, told, 1)
	})
}

func TestG8AKindWhoseListFailsForEverHoldsOnlyTheFirstSignal(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		s.failing(func(_, resource string) error {
			if resource == "bs" {
				return apierrors.NewInternalError(errors.New("for ever"))
			}
			return nil
		})
		stuck := watching(t, streams, Options{}, simQuery("A", "as"), simQuery("B", "bs"))
		fine := watching(t, streams, Options{}, simQuery("A", "as"))
		after(time.Hour)
		assert.False(t, signalled(stuck))
		assert.True(t, signalled(fine), "nobody else's")
		assert.ErrorContains(t, stuck.Ready(), "for ever")
		assert.Less(t, s.lists["bs"]+s.watches["bs"], 600, "and the server is not pestered")
	})
}

func TestG9SlicesAreInOrderOfNamespaceThenName(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, i := range r.Perm(50) {
			s.create("as", thing(fmt.Sprintf("%02d", i)))
		}
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		for i, n := range names(snap.A) {
			assert.Equal(t, fmt.Sprintf("%02d", i), n)
		}
	})
}

func TestG10DeliveredSlicesAreNeverWrittenTo(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		first, version := snap.A, snap.A[0].GetResourceVersion()
		require.Equal(t, len(first), cap(first))
		for i := range 10 {
			s.touch("as", "x", i)
			s.create("as", thing(fmt.Sprint(i)))
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
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				a, err := New(ctx, streams, []Query{simQuery("A", "as")}, Options{})
				require.NoError(t, err)
				s.create("as", thing("unread"))
				synctest.Wait()
				require.Len(t, s.cuts, 1)
				switch end {
				case "cancel":
					cancel()
				case "close":
					a.Close()
				default:
					streams.Close()
				}
				synctest.Wait()
				assert.Empty(t, s.cuts, "no watch is open")
				assert.False(t, a.overdue.Stop(), "no timer is left")
				assert.Zero(t, streams.Len())
				for range a.Changed() { // closed
				}
				_, err = a.Update(t.Context(), &one{}, nil)
				if end == "cancel" {
					assert.ErrorIs(t, err, context.Canceled)
				} else {
					assert.ErrorIs(t, err, ErrClosed)
				}
			})
		})
	}
}

func TestG11AFailingNewLeavesNothingBehind(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		bad := simQuery("B", "bs")
		bad.Resolve = func(context.Context) (Resource, error) { return Resource{}, ErrNotServed }
		_, err := New(t.Context(), streams, []Query{simQuery("A", "as"), bad}, Options{})
		assert.ErrorContains(t, err, `query "B"`)
		assert.ErrorIs(t, err, ErrNotServed)
		synctest.Wait()
		assert.Empty(t, s.cuts)
		assert.Empty(t, s.lists)
		assert.Zero(t, streams.Len())
		assert.Empty(t, streams.Users())
	})
}

func TestG11ClosingWaitsForRequestsUnderWay(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				var ended atomic.Bool
				s.failing(func(string, string) error { // a request that ignores its context
					after(time.Hour)
					ended.Store(true)
					return nil
				})
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				synctest.Wait()
				streams.Close()
				assert.True(t, ended.Load())
				assert.ErrorIs(t, a.Err(), ErrClosed)
				assert.Zero(t, streams.Len())
				_, err := New(t.Context(), streams, []Query{simQuery("A", "as")}, Options{})
				assert.ErrorIs(t, err, ErrClosed)
			})
		})
	}
}
