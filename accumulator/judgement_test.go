package accumulator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/test/suite/sim"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
)

func TestAPredicateIsAskedOncePerChangeAndStaysInForce(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
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
		assert.True(t, r.Changed, "a change of what it leaves out counts")
		assert.Empty(t, r.Differences)
		r, err = a.Update(t.Context(), &snap, notX)
		require.NoError(t, err)
		assert.False(t, r.Changed)
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

func TestWhatAPredicateWithReasonsLeavesOutInSilenceIsNoChange(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		silent := Judge(func(*unstructured.Unstructured) (bool, error) { return false, nil })
		counts := Pass(func(*unstructured.Unstructured) bool { return false })
		var snap one
		changed := func(j *Judgement) bool {
			r, err := a.Update(t.Context(), &snap, j)
			require.NoError(t, err)
			return r.Changed
		}
		assert.True(t, changed(silent), "the first one")
		s.Touch("as", "x", 1)
		synctest.Wait()
		assert.False(t, changed(silent))
		changed(counts)
		s.Touch("as", "x", 2)
		synctest.Wait()
		assert.True(t, changed(counts), "from the predicate that has judged last")
		changed(silent)
		s.Touch("as", "x", 3)
		synctest.Wait()
		assert.False(t, changed(silent))
	})
}

// TestARejudgementWaitsForAQueryThatCannotBeRead: the query's next batch is judged by it.
func TestARejudgementWaitsForAQueryThatCannotBeRead(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
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
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for _, name := range []string{"bad", "good", "other"} {
			s.Create("as", sim.Thing(name))
		}
		var reported []string
		a := watching(t, streams, collect.Options{Invalid: func(i tables.Invalid) {
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
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
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

// TestG8AnObjectWhosePredicatePanickedRejoinsByAnotherPredicate: also if the object has not
// changed since, and if the other is a closure of the same code.
func TestG8AnObjectWhosePredicatePanickedRejoinsByAnotherPredicate(t *testing.T) {
	none := func(func(*unstructured.Unstructured) bool) *Judgement { return Pass(nil) }
	reasons := func(func(*unstructured.Unstructured) bool) *Judgement {
		return Judge(func(*unstructured.Unstructured) (bool, error) { return true, nil })
	}
	for name, other := range map[string]func(func(*unstructured.Unstructured) bool) *Judgement{
		"none": none, "another": reasons, "a closure of the same code": Pass,
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				for _, name := range []string{"no", "x", "y", "z"} {
					s.Create("as", sim.Thing(name))
				}
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				synctest.Wait()
				var snap one
				var results []Result
				asked := map[string]int{}
				judge := Pass
				for _, bug := range []bool{true, false} {
					r, err := a.Update(t.Context(), &snap, judge(func(u *unstructured.Unstructured) bool {
						asked[u.GetName()]++
						if bug && u.GetName() == "x" {
							panic("boom")
						}
						return u.GetName() != "no"
					}))
					require.NoError(t, err)
					results, judge = append(results, r), other
				}
				assert.Equal(t, []string{"+y", "+z"}, told(results[0]))
				require.Len(t, results[0].Invalid, 1)
				assert.True(t, results[1].Changed)
				assert.Contains(t, told(results[1]), "+x")
				assert.Empty(t, results[1].Invalid)
				if name == "a closure of the same code" {
					assert.Equal(t, []string{"x", "y", "z"}, sim.Names(snap.A))
					assert.Equal(t, map[string]int{"no": 1, "x": 2, "y": 1, "z": 1}, asked, "of the others only changes are judged")
				}
			})
		})
	}
}

// TestG8AnObjectWhosePredicatePanicsAgainIsReportedOnce: it is left out as before.
func TestG8AnObjectWhosePredicatePanicsAgainIsReportedOnce(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		reported := 0
		a := watching(t, streams, collect.Options{Invalid: func(tables.Invalid) { reported++ }}, sim.Query("A", "as"))
		synctest.Wait()
		var snap one
		asked := 0
		for i := range 3 {
			r, err := a.Update(t.Context(), &snap, Pass(func(*unstructured.Unstructured) bool {
				asked++
				panic("boom")
			}))
			require.NoError(t, err)
			assert.Equal(t, i == 0, r.Changed)
			assert.Len(t, r.Invalid, 1)
		}
		assert.Equal(t, 3, asked)
		assert.Equal(t, 1, reported)
		s.Touch("as", "x", 1)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, 4, asked, "a plain Update gives no predicate")
		update(t, a, &snap)
		assert.Equal(t, 4, asked)
	})
}

// TestAPredicateIsNotAskedAgainWhereAnotherStreamListsAnew: the objects of this one have not
// changed.
func TestAPredicateIsNotAskedAgainWhereAnotherStreamListsAnew(t *testing.T) {
	sim.Bubble(t, stream.Config{PendingMax: 1}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.In("ns", "x"))
		s.Create("as", sim.In("other", "y"))
		a := watching(t, streams, collect.Options{}, over("A", "as", "ns", "other"))
		synctest.Wait()
		asked := map[string]int{}
		var snap one
		_, err := a.Update(t.Context(), &snap, Pass(func(u *unstructured.Unstructured) bool {
			asked[u.GetName()]++
			return asked[u.GetName()] == 1
		}))
		require.NoError(t, err)
		s.Late(time.Hour)
		o := sim.NewClient(s, streams)
		o.Put("as", sim.In("other", "own-1"), 0)
		o.Put("as", sim.In("other", "own-2"), 0) // that stream gives them up, and lists
		sim.After(time.Minute)
		_, err = a.Update(t.Context(), &snap, nil)
		require.NoError(t, err)
		assert.Equal(t, 1, asked["x"])
		assert.Contains(t, sim.Names(snap.A), "x")
		assert.Contains(t, sim.Names(snap.A), "own-2")
	})
}
