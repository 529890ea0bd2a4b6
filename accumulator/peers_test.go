package accumulator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// The tests of this file are about known faults of other libraries of this kind that no other test
// covers.

func TestG1ALateSubscriberHasEverythingFromTheStore(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		late := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(late))
		var snap one
		assert.Len(t, update(t, late, &snap).Differences, 1)
		assert.Equal(t, []string{"x"}, sim.Names(snap.A))
		assert.Equal(t, 1, s.Streamed["as"])
	})
}

func TestG3AnUpdateConvertsNothingButWhatChanged(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for i := range 100 {
			s.Create("as", sim.Thing(fmt.Sprint(i)))
		}
		converted := 0
		a := watching(t, streams, collect.Options{Witness: sim.Witness(func() { converted++ })}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, 100, converted)
		for i := range 10 {
			s.Touch("as", "7", i)
			synctest.Wait()
			update(t, a, &snap)
			assert.Equal(t, 101+i, converted)
		}
	})
}

func TestG4UpdateDoesNotWaitForTheWatch(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, narrow := watching(t, streams, collect.Options{}, sim.Query("A", "as")), watching(t, streams, collect.Options{}, selective())
		var snap, few one
		synctest.Wait()
		update(t, a, &snap)
		update(t, narrow, &few)
		s.Late(time.Hour)
		start := time.Now()
		sim.NewClient(s, streams).Put("as", sim.Thing("x", "in", "no"), 0)
		update(t, a, &snap)
		update(t, narrow, &few)
		assert.Len(t, snap.A, 1)
		assert.Empty(t, few.A, "no event of it will ever come")
		assert.Zero(t, time.Since(start))
	})
}

// The answer of a delete that nobody has read: an object, a Status, or something else.
func TestG4AWriteOfUnknownOutcomeIsAskedFor(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		key := object.Key{Namespace: "ns", Name: "x"}
		kept := sim.Thing("x")
		kept.SetFinalizers([]string{"test/kept"})
		s.Create("as", kept)
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Late(time.Minute)
		w := streams.Begin(sim.Resource("as"), key)
		answer, ok := s.Do("as", key, "delete", sim.ByStatus)
		require.True(t, ok)
		require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: coherence.Write{Key: key, UID: answer.Uid}, Unknown: true}))
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		assert.NotNil(t, snap.A[0].GetDeletionTimestamp())
	})
}

func TestG8TheFailuresOfOneKindDoNotSlowAnother(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		refuse := 0
		s.Failing(func(_, resource string) error {
			if resource == "as" {
				if refuse--; refuse < 0 {
					return nil
				}
			}
			return apierrors.NewInternalError(errors.New("outage"))
		})
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		watching(t, streams, collect.Options{}, sim.Query("B", "bs"))
		var snap one
		sim.After(2 * time.Minute)
		update(t, a, &snap)
		refuse = 1
		s.Cut()
		s.Create("as", sim.Thing("x"))
		sim.After(second)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, sim.Names(snap.A), "its first failure: tried again at once")
	})
}

func TestG11NoLockIsHeldDuringARequest(t *testing.T) {
	q := sim.Query("A", "as")
	q.Fields = fields.OneTermEqualSelector("spec.node", "")
	sim.Bubble(t, stream.Config{PageSize: 5}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		// held makes requests hang, and reports whether the locks are free meanwhile.
		held := func(request func()) bool {
			release := make(chan struct{})
			s.Failing(func(string, string) error {
				<-release
				return nil
			})
			request()
			synctest.Wait()
			defer close(release) // in any case: a test that hangs says less
			return streams.Locked()
		}
		var a *Accumulator
		assert.False(t, held(func() { a = watching(t, streams, collect.Options{}, q) }), "a list")
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		s.Late(time.Hour) // or the watch waits for the lock, and the bubble for the watch
		assert.False(t, held(func() { go sim.NewClient(s, streams).Put("as", sim.Thing("x"), 0) }), "a list that settles a write")
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		assert.False(t, held(func() { go func() { _ = streams.Sync(ctx) }() }), "a list of Sync")
		synctest.Wait()
		update(t, a, &snap)
		assert.Len(t, snap.A, 1)
	})
}

// The last user of a stream leaves at the moment when the next one comes.
func TestG11AStreamThatHasEndedIsNeverHandedOut(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Minute} {
		t.Run(grace.String(), func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true, Grace: grace}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				for i := range 5 {
					a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
					synctest.Wait()
					a.Close()
					sim.After(grace / 2)
					b := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
					sim.After(2 * time.Minute) // past the grace of the first
					s.Touch("as", "x", i)
					synctest.Wait()
					var snap one
					update(t, b, &snap)
					require.Len(t, snap.A, 1)
					n, _, _ := unstructured.NestedInt64(snap.A[0].Object, "spec", "n")
					assert.EqualValues(t, i, n, "it lives")
					b.Close()
				}
				sim.After(2 * time.Minute)
				synctest.Wait()
				assert.Zero(t, streams.Len())
				assert.Empty(t, s.Cuts)
			})
		})
	}
}
