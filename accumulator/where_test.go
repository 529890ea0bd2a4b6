package accumulator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// errBroken is why filters of these tests fail.
var errBroken = errors.New("broken")

// filtered lets in what has the label in=yes, fails for in=bad, and panics for in=panic.
var filtered = &object.Where{OfMetadata: true, Do: func(o object.Object) (bool, error) {
	switch o.GetLabels()["in"] {
	case "bad":
		return true, errBroken
	case "panic":
		panic("a mistake")
	}
	return o.GetLabels()["in"] == "yes", nil
}}

func where() query.Query {
	q := sim.Query("A", "as")
	q.Where = filtered
	return q
}

func TestG4G5OwnWritesThatWhereJudgesAreShownAtOnce(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, where())
		require.True(t, signalled(a))
		s.Late(time.Hour)
		o, asked := sim.NewClient(s, streams), s.Requested("as")
		var snap one
		o.Put("as", sim.Thing("x", "in", "no"), 0)
		assert.Empty(t, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x", "in", "yes"), 0)
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x", "in", "yes", "n", "1"), 0)
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x"), 0)
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x", "in", "yes"), 0)
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		require.True(t, o.Delete("as", "x", 0, true))
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		assert.Equal(t, asked, s.Requested("as"), "the server is not asked about a write")
		sim.After(3 * time.Hour)
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Zero(t, a.Status()[0].Pending)
	})
}

// TestG7G8WhatOthersMoveInAndOutOfAWhereIsExact: where the function fails, that one object is
// invalid, until its next version.
func TestG7G8WhatOthersMoveInAndOutOfAWhereIsExact(t *testing.T) {
	for way, config := range sim.Ways {
		t.Run(way, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x", "in", "yes"))
				s.Create("as", sim.Thing("out", "in", "no"))
				s.Create("as", sim.Thing("bad", "in", "bad"))
				a := watching(t, streams, collect.Options{}, where())
				require.True(t, signalled(a))
				var snap one
				r := update(t, a, &snap)
				assert.Equal(t, []string{"+x"}, told(r))
				require.Len(t, r.Invalid, 1)
				assert.ErrorIs(t, r.Invalid[0].Err, errBroken)
				assert.Equal(t, "bad", r.Invalid[0].Object.GetName())
				assert.Equal(t, 2, a.Status()[0].Objects, "what is out is not held")
				for _, step := range []struct {
					in      string
					told    []string
					invalid int
				}{
					{"yes", []string{"~x"}, 1}, {"no", []string{"-x"}, 1}, {"none", nil, 1}, {"panic", nil, 2}, {"yes", []string{"+x"}, 1},
					{"bad", []string{"-x"}, 2}, {"no", nil, 1}, {"yes", []string{"+x"}, 1},
				} {
					s.Relabel("x", "in", step.in)
					synctest.Wait()
					r := update(t, a, &snap)
					assert.Equal(t, step.told, told(r), step.in)
					assert.Len(t, r.Invalid, step.invalid, step.in)
				}
				s.Relist()
				sim.After(time.Minute)
				assert.False(t, update(t, a, &snap).Changed, "a list judges as the watch does")
				s.Remove("as", "bad")
				synctest.Wait()
				assert.Empty(t, update(t, a, &snap).Invalid)
			})
		})
	}
}

// TestG6ASyncWaitsForNothingThatAWhereLeavesOut: the watch brings no bookmarks, so the store has
// to be what a list has.
func TestG6ASyncWaitsForNothingThatAWhereLeavesOut(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "in", "yes"))
		s.Create("as", sim.Thing("out", "in", "no"))
		a := watching(t, streams, collect.Options{}, where())
		require.True(t, signalled(a))
		s.Create("bs", sim.Thing("other")) // the server's version goes on, and the watch hears nothing
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, a.Sync(ctx))
	})
}

func TestG1WhatLeavesAWhereDuringAStreamedListIsNotInIt(t *testing.T) {
	leavesDuringAList(t, where(), "in", "out")
}

// TestG4AStreamWithAWhereDoesNotSayThatAnObjectIsAbsent: nor does it serve others. Queries of the
// same function share it.
func TestG4AStreamWithAWhereDoesNotSayThatAnObjectIsAbsent(t *testing.T) {
	sim.Bubble(t, stream.Config{Share: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "in", "no"))
		require.True(t, signalled(watching(t, streams, collect.Options{}, where())))
		_, known := streams.Lookup(sim.Resource("as"), xKey, intake.Meta)
		assert.False(t, known)
		_, all := streams.List(sim.Resource("as"), "", labels.Everything(), intake.Meta)
		assert.False(t, all)
		require.True(t, signalled(watching(t, streams, collect.Options{}, where())))
		assert.Equal(t, 1, streams.Len())
		other := where()
		other.Where = &object.Where{Do: filtered.Do}
		watching(t, streams, collect.Options{}, other)
		require.True(t, signalled(watching(t, streams, collect.Options{}, sim.Query("A", "as"))))
		assert.Equal(t, 3, streams.Len())
		other.Where = &object.Where{Do: filtered.Do}
		watching(t, streams, collect.Options{}, other)
		assert.Equal(t, 4, streams.Len(), "a stream of all objects does not serve a query with a Where")
	})
}

// TestG8WhatDoesNotDecodeIsJudgedByAWhereOfMetadata: one that reads more cannot say.
func TestG8WhatDoesNotDecodeIsJudgedByAWhereOfMetadata(t *testing.T) {
	short := func(in string) *metav1.PartialObjectMetadata {
		m, err := object.Shorten(sim.Thing("x", "in", in), sim.Resource("as").Kind)
		require.NoError(t, err)
		return m
	}
	bad := func(m *metav1.PartialObjectMetadata) object.Object {
		return object.Undecoded(sim.Resource("as"), xKey, "u", "200", m, object.Original{}, errors.New("no"))
	}
	for name, c := range map[string]struct {
		where *object.Where
		o     object.Object
		held  bool
	}{
		"in":               {filtered, bad(short("yes")), true},
		"out":              {filtered, bad(short("no")), false},
		"it fails":         {filtered, bad(short("bad")), true},
		"no metadata":      {filtered, bad(nil), true},
		"it reads more":    {&object.Where{Do: filtered.Do}, bad(short("no")), true},
		"one that decodes": {filtered, sim.Thing("x", "in", "no"), false},
	} {
		sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
			q := where()
			q.Where = c.where
			a := watching(t, streams, collect.Options{}, q)
			require.True(t, signalled(a))
			assert.Equal(t, c.held, !listener(a, 0).Stage().LeavesOut(c.o), name)
		})
	}
}

// TestG6ASyncJudgesAsTheStreamDoes: whatever cannot be read, in whatever form.
func TestG6ASyncJudgesAsTheStreamDoes(t *testing.T) {
	short, err := object.Shorten(sim.Thing("x", "in", "no"), sim.Resource("as").Kind)
	require.NoError(t, err)
	unreadable := sim.Thing("x", "in", "no")
	unreadable.Object["metadata"].(map[string]any)["generation"] = "none"
	for _, form := range []object.Form{object.Whole, object.Metadata} {
		for name, o := range map[string]object.Object{
			"in": sim.Thing("x", "in", "yes"), "out": sim.Thing("x", "in", "no"), "it fails": sim.Thing("x", "in", "bad"), "metadata": short,
			"undecodable": object.Undecoded(sim.Resource("as"), xKey, "u", "200", short, object.Original{}, errors.New("no")),
			"unknown":     object.Undecoded(sim.Resource("as"), xKey, "u", "200", nil, object.Original{}, errors.New("no")), "unreadable": unreadable,
		} {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
				q := where()
				q.Form = form
				a := watching(t, streams, collect.Options{}, q)
				require.True(t, signalled(a))
				st := listener(a, 0).Stage()
				held := st.Prepared(o) != nil
				assert.Equal(t, held, !st.LeavesOut(o), "%s: %s", form, name)
			})
		}
	}
}

// TestG10AWhereGetsACopyOfTheAnswerToAnOwnWrite: other streams hold the answer itself.
func TestG10AWhereGetsACopyOfTheAnswerToAnOwnWrite(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := where()
		q.Where = &object.Where{Do: func(o object.Object) (bool, error) {
			o.SetLabels(map[string]string{"written": "here"}) // which is forbidden
			return true, nil
		}}
		a, plain := watching(t, streams, collect.Options{}, q), watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		require.True(t, signalled(plain))
		s.Late(time.Hour)
		sim.NewClient(s, streams).Put("as", sim.Thing("x", "in", "yes"), 0)
		var snap one
		update(t, plain, &snap)
		require.Len(t, snap.A, 1)
		assert.Equal(t, map[string]string{"in": "yes"}, snap.A[0].GetLabels())
	})
}

// TestAWhereGetsAnObjectBeforeItsTransformAndInItsForm: labels are dropped, and it has read them.
func TestAWhereGetsAnObjectBeforeItsTransformAndInItsForm(t *testing.T) {
	for _, form := range []object.Form{object.Whole, object.Metadata} {
		sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			s.Create("as", sim.Thing("x", "in", "yes"))
			s.Create("as", sim.Thing("out", "in", "no"))
			q := where()
			q.Form, q.Transform = form, &object.Transform{Do: func(o object.Object) error { o.SetLabels(nil); return nil }}
			a := watching(t, streams, collect.Options{}, q)
			require.True(t, signalled(a))
			var snap struct {
				A []*metav1.PartialObjectMetadata
			}
			update(t, a, &snap)
			require.Len(t, snap.A, 1)
			assert.Empty(t, snap.A[0].Labels)
			sim.NewClient(s, streams).Put("as", sim.Thing("y", "in", "yes"), 0)
			update(t, a, &snap)
			assert.Len(t, snap.A, 2)
		})
	}
}

// TestG1WhatAWhereHasChosenIsNotKeptForTheNextProcess: its function may be another one.
func TestG1WhatAWhereHasChosenIsNotKeptForTheNextProcess(t *testing.T) {
	lives(t, func(p *process) {
		p.Create("as", sim.Thing("x", "in", "yes"))
		p.start(where())
		synctest.Wait()
		sim.After(5 * time.Minute)
		assert.NotContains(t, strings.Join(recordsOf(p), " "), "x")
	})
}

// TestG6AnOwnWriteThatTheWatchHasPassedHoldsNothing: its answer is rejected, and comes after the
// deletion of the object.
func TestG6AnOwnWriteThatTheWatchHasPassedHoldsNothing(t *testing.T) {
	sim.Bubble(t, stream.Config{OriginalsMax: 3000}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a", "in", "yes"))
		a := watching(t, streams, collect.Options{}, where())
		require.True(t, signalled(a))
		st := listener(a, 0).Stage()
		rejected := func(name, version string) object.Object {
			o := thingIn(name, version)
			o.Object["text"] = strings.Repeat("x", 2000)
			return st.Prepared(o)
		}
		isWhole := func(o object.Object) bool { return object.FaultOriginal(o).Bytes() > 0 }
		late := rejected("x", "200")
		require.True(t, isWhole(late))
		require.NoError(t, st.Event(thingIn("x", "300"), true))
		assert.True(t, isWhole(rejected("y", "400")), "the deletion has made room")
		require.NoError(t, st.Event(thingIn("y", "500"), true))

		late = rejected("x", "200")
		require.True(t, isWhole(late))
		st.OwnWrite(coherence.Write{Key: object.KeyOf(late), UID: "ux", Version: "200", Object: late})
		assert.True(t, isWhole(rejected("z", "600")), "nothing is shown of the write")
	})
}

// thingIn is an object as the server sends it, at a version.
func thingIn(name, version string) *unstructured.Unstructured {
	o := sim.Thing(name, "in", "bad")
	o.SetNamespace("ns")
	o.SetUID(types.UID("u" + name))
	o.SetResourceVersion(version)
	return o
}
