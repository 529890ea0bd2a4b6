package accumulator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/suite/sim"
	"github.com/kates-go/kates/snapshot"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/stream"
)

func TestAPredicateIsAskedOncePerChangeAndStaysInForce(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("as", sim.Thing("x"))
		s.Create("as", sim.Thing("y"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		asked := map[string]int{}
		notX := Pass(func(u *unstructured.Unstructured) bool {
			asked[u.GetName()]++
			return u.GetName() != "x"
		})
		var snap one
		_, err := a.Update(t.Context(), &snap, notX)
		require.NoError(t, err)
		assert.Equal(t, []string{"y"}, sim.Names(snap.A))
		s.Touch("as", "x", 1)
		synctest.Wait()
		r, err := a.Update(t.Context(), &snap, notX)
		require.NoError(t, err)
		assert.False(t, r.Changed, "a change that is left out changes nothing")
		s.Touch("as", "x", 2)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"y"}, sim.Names(snap.A), "in force for a plain Update as well")
		assert.Equal(t, map[string]int{"x": 3, "y": 1}, asked)
		r, err = a.Update(t.Context(), &snap, Pass(nil))
		require.NoError(t, err)
		assert.Equal(t, []string{"x", "y"}, sim.Names(snap.A), "another one judges all again")
		require.Len(t, r.Differences, 1)
		assert.Nil(t, r.Differences[0].Old)
		r, err = a.Update(t.Context(), &snap, notX)
		require.NoError(t, err)
		require.Len(t, r.Differences, 1)
		assert.Nil(t, r.Differences[0].New, "what no longer passes is a delete")
	})
}

// TestARejudgementWaitsForAQueryThatCannotBeRead: the query's next batch is judged by it.
func TestARejudgementWaitsForAQueryThatCannotBeRead(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("namespaces", sim.In("", "n1", "team", "a"))
		s.Create("as", sim.In("n1", "x1"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		signalled(a)
		want := "x1"
		var snap one
		_, err := a.Update(t.Context(), &snap, Pass(func(u *unstructured.Unstructured) bool { return u.GetName() == want }))
		require.NoError(t, err)
		assert.Equal(t, []string{"x1"}, sim.Names(snap.A))
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return 10 * time.Second }
		s.Mu.Unlock()
		require.NoError(t, a.Replace(t.Context(), spaceQuery("A", "as", "team=a")))
		synctest.Wait()
		want = "none"
		a.Rejudge()
		for range 100 {
			update(t, a, &snap)
			sim.After(time.Second)
			synctest.Wait()
		}
		update(t, a, &snap)
		assert.Empty(t, snap.A)
	})
}

func TestG8ARejudgementReportsOnlyTheObjectsWhoseReasonIsNew(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		for _, name := range []string{"bad", "good", "other"} {
			s.Create("as", sim.Thing(name))
		}
		var reported []string
		a := watching(t, streams, collect.Options{Invalid: func(i snapshot.Invalid) {
			reported = append(reported, i.Object.GetName()+": "+i.Err.Error())
		}}, sim.Query("A", "as"))
		signalled(a)
		why := map[string]string{"bad": "bad", "other": "worse"}
		judge := Judge(func(u *unstructured.Unstructured) (bool, error) {
			if text := why[u.GetName()]; text != "" {
				return false, errors.New(text)
			}
			return true, nil
		})
		var snap one
		update := func() Result {
			r, err := a.Update(t.Context(), &snap, judge)
			require.NoError(t, err)
			return r
		}
		update()
		assert.Equal(t, []string{"bad: bad", "other: worse"}, reported)
		reported = nil
		a.Rejudge()
		r := update()
		assert.Empty(t, reported, "nothing is new")
		assert.False(t, r.Changed)
		assert.Len(t, r.Invalid, 2)
		why = map[string]string{"bad": "bad", "good": "bad, too", "other": "better"}
		a.Rejudge()
		r = update()
		assert.Equal(t, []string{"good: bad, too", "other: better"}, reported)
		assert.True(t, r.Changed)
		assert.Len(t, r.Invalid, 3)
		assert.Empty(t, sim.Names(snap.A))
		reported, why = nil, nil
		a.Rejudge()
		assert.Empty(t, update().Invalid)
		assert.Equal(t, []string{"bad", "good", "other"}, sim.Names(snap.A))
		assert.Empty(t, reported)
	})
}

type nilReason struct{ text string }

func (n *nilReason) Error() string { return n.text }

func TestG8AReasonThatPanicsIsThatOfOneObject(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		var snap one
		r, err := a.Update(t.Context(), &snap, Judge(func(*unstructured.Unstructured) (bool, error) {
			var none *nilReason
			return true, none
		}))
		require.NoError(t, err)
		require.Len(t, r.Invalid, 1)
		assert.ErrorContains(t, r.Invalid[0].Err, "the predicate panicked")
	})
}
