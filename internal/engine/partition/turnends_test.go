package partition

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestATurnThatIsToComeAgainRestsForSoLongAndCountsAsAnAttempt(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Touch("as", "x", 1)
		first := turn(t, p)
		require.Equal(t, "a", first.Key)
		first.Again(time.Minute)
		first.Again(0)  // does nothing
		first.Done(nil) // also nothing
		first.Keep()    // also nothing
		p.Trigger("a")
		s.Touch("as", "x", 2)
		sim.After(time.Minute - second)
		assert.Nil(t, turn(t, p), "whatever changes")
		sim.After(second)
		second := turn(t, p)
		require.NotNil(t, second)
		assert.Equal(t, 2, second.Attempt)
		second.Done(errors.New("oops"))
		sim.After(time.Minute)
		third := turn(t, p)
		assert.Equal(t, 3, third.Attempt)
		third.Done(nil)
		assert.Empty(t, turns(t, p))
	})
}

func TestAKeyThatIsGoneCanBeKeptAndIsForgottenByItsNextTurn(t *testing.T) {
	abc(t, Options{Lasting: true}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Remove("as", "x")
		s.Relabel("y", "k", "b")
		gone := turn(t, p)
		assert.Equal(t, "a:  / c gone", text(gone), "with what belongs to all")
		gone.Keep()
		assert.Equal(t, []string{"b: y / c"}, turns(t, p))
		assert.Equal(t, []string{"a", "b"}, p.Keys())
		s.Touch("bs", "c", 5)
		assert.Equal(t, []string{"a:  / c gone", "b: y / c"}, turns(t, p))
		assert.Equal(t, []string{"b"}, p.Keys())
		p.Trigger("a")
		assert.Empty(t, turns(t, p))
	})
}

func TestOnlyIsTheFieldWithWhatPassesAndTheVerySameIfAllDo(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Touch("as", "x", 1)
		now := turn(t, p)
		snap := now.Snapshot.(*two)
		all := now.Only("A", func(object.Object) bool { return true })
		assert.Equal(t, []string{"x", "y"}, sim.Names(all.([]*unstructured.Unstructured)))
		assert.Same(t, &snap.A[0], &all.([]*unstructured.Unstructured)[0])
		some := now.Only("A", func(o object.Object) bool { return o.GetName() == "y" })
		assert.Equal(t, []string{"y"}, sim.Names(some.([]*unstructured.Unstructured)))
		assert.Equal(t, []string{"x", "y"}, sim.Names(snap.A), "which is as it was")
		assert.Nil(t, now.Only("B", func(object.Object) bool { return true }), "none of its own")
		assert.Nil(t, now.Only("nothing", func(object.Object) bool { return true }))
		now.Done(nil)
		s.Touch("as", "x", 2)
		assert.Equal(t, []string{"a: x y / c"}, turns(t, p))
	})
}

func TestEachKeyIsHeldBackUntilItIsQuietAndAFollowerHearsOfItsChangesAllTheSame(t *testing.T) {
	pace := collect.Pace{Quiet: 10 * second, QuietMax: 25 * second}
	abc(t, Options{Options: collect.Options{Pace: pace}}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		changed := p.Changed()
		s.Touch("as", "x", 1)
		synctest.Wait()
		select {
		case <-changed:
		default:
			t.Error("no signal")
		}
		start := time.Now()
		for i := range 5 { // at 4, 8, … 20 s
			sim.After(4 * second)
			s.Touch("as", "x", i+2)
			if i == 0 {
				s.Relabel("y", "k", "b")
			}
			synctest.Wait()
		}
		next := func() (string, time.Duration) {
			now, err := p.Next(t.Context())
			require.NoError(t, err)
			now.Done(nil)
			return now.Key, time.Since(start)
		}
		key, at := next() // it was ripe at 14 s
		assert.Equal(t, "b", key)
		assert.Equal(t, 20*second, at)
		key, at = next()
		assert.Equal(t, "a", key)
		assert.Equal(t, 25*second, at)
		s.Touch("as", "x", 9)
		synctest.Wait()
		p.Trigger("a")
		key, at = next()
		assert.Equal(t, "a", key)
		assert.Equal(t, 25*second, at, "who is activated does not wait")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := p.Next(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		p.Close()
		_, open := <-p.Changed()
		assert.False(t, open)
	})
}
