package accumulator

import (
	"bytes"
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
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// either returns a query that selects by either of two labels.
func either(a, b string) query.Query {
	q := sim.Query("A", "as")
	q.AnyOf = []object.Selection{
		{Labels: labels.SelectorFromSet(labels.Set{a: "yes"})}, {Labels: labels.SelectorFromSet(labels.Set{b: "yes"})},
	}
	return q
}

// readable finds a resource whose field spec.node the client can read.
func readable(resource string) func(context.Context) (object.Resource, error) {
	r := sim.Resource(resource)
	r.Field = sim.Field
	return func(context.Context) (object.Resource, error) { return r, nil }
}

func TestG4G5OwnWritesThatMoveAnObjectBetweenAlternativesAreShownAtOnce(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, either("l", "r"))
		require.True(t, signalled(a))
		s.Late(time.Hour)
		o := sim.NewClient(s, streams)
		var snap one
		o.Put("as", sim.Thing("x", "l", "yes"), 0)
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x", "r", "yes"), 0)
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x"), 0)
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x", "r", "yes", "l", "yes"), 0)
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		require.True(t, o.Delete("as", "x", 0, true))
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		sim.After(3 * time.Hour)
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Zero(t, a.Status()[0].Pending)
	})
}

// The watch brings every version. An object that no alternative selects any more leaves, and comes
// back when one does.
func TestG7WhatOthersMoveBetweenAlternativesIsOneUpdate(t *testing.T) {
	for way, config := range sim.Ways {
		t.Run(way, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x", "l", "yes"))
				s.Create("as", sim.Thing("none"))
				a := watching(t, streams, collect.Options{}, either("l", "r"))
				require.True(t, signalled(a))
				var snap one
				assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
				assert.Equal(t, 1, streams.Len())
				for _, step := range []struct {
					labels []string
					told   []string
				}{
					{[]string{"r", "yes"}, []string{"~x"}}, {nil, []string{"-x"}}, {[]string{"n", "1"}, nil},
					{[]string{"l", "yes", "r", "yes"}, []string{"+x"}}, {[]string{"l", "yes"}, []string{"~x"}},
				} {
					s.Relabel("x", step.labels...)
					synctest.Wait()
					assert.Equal(t, step.told, told(update(t, a, &snap)), "%v", step.labels)
				}
			})
		})
	}
}

// A streamed list brings the next version of an object, too: with that it may leave the query.
func TestG1WhatLeavesAllAlternativesDuringAStreamedListIsNotInIt(t *testing.T) {
	leavesDuringAList(t, either("l", "r"), "l", "n")
}

// leavesDuringAList has an object leave a query during a streamed list: the value yes of the label
// in selects it, and that of the label out does not.
func leavesDuringAList(t *testing.T, q query.Query, in, out string) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		w := watch.NewFakeWithChanSize(4, false)
		of := func(name, rv string, kv ...string) *unstructured.Unstructured {
			o := sim.Thing(name, kv...)
			o.SetUID(types.UID(name))
			o.SetResourceVersion(rv)
			return o
		}
		w.Add(of("x", "101", in, "yes"))
		w.Add(of("y", "102", in, "yes"))
		w.Modify(of("x", "103", out, "yes"))
		end := of("", "103")
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		w.Action(watch.Bookmark, end)
		list, err := listener(a, 0).Stage().Initial(t.Context(), w)
		require.NoError(t, err)
		assert.Len(t, list, 1)
		assert.NotContains(t, list, xKey)
	})
}

func TestAFieldThatOnlyTheServerCanJudgeIsAnErrorThatNamesIt(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
		q := either("l", "r")
		q.AnyOf[1] = selected("spec.node=n1")
		_, err := New(t.Context(), streams, []query.Query{q}, collect.Options{})
		require.ErrorIs(t, err, object.ErrUnjudged)
		require.ErrorIs(t, err, query.ErrUnfit)
		assert.ErrorContains(t, err, `"spec.node" of as`)
		q.Optional = true
		_, err = New(t.Context(), streams, []query.Query{q}, collect.Options{})
		require.ErrorIs(t, err, object.ErrUnjudged)

		q.Resolve = readable("as")
		for _, form := range []object.Form{object.Metadata, object.Projection{}.Form()} {
			q.Form = form
			_, err = New(t.Context(), streams, []query.Query{q}, collect.Options{})
			assert.ErrorContains(t, err, `"spec.node" of as: it does not come with the form of the objects`)
		}
		q.Form = object.Whole
		watching(t, streams, collect.Options{}, q)
		q.AnyOf = q.AnyOf[1:] // the server judges a single one
		q.Form, q.Resolve = object.Metadata, sim.Query("A", "as").Resolve
		watching(t, streams, collect.Options{}, q)
		assert.Equal(t, 2, streams.Len())
	})
}

// An object that does not decode is judged by its metadata. Where that is not known, somebody has
// to hear of it.
func TestG8WhatDoesNotDecodeIsJudgedByItsMetadata(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, either("l", "r"))
		require.True(t, signalled(a))
		s.Late(time.Hour)
		st := listener(a, 0).Stage()
		short := func(kv ...string) *metav1.PartialObjectMetadata {
			m, err := object.Shorten(sim.Thing("x", kv...), sim.Resource("as").Kind)
			require.NoError(t, err)
			return m
		}
		bad := func(m *metav1.PartialObjectMetadata) object.Object {
			return object.Undecoded(sim.Resource("as"), xKey, "u", "200", m, object.Original{}, errors.New("no"))
		}
		assert.True(t, st.Matches(bad(short("l", "yes"))))
		assert.False(t, st.Matches(bad(short("n", "yes"))))
		assert.True(t, st.Matches(bad(nil)))
	})
}

// A stream is one of all objects only if it has no alternatives. What it lacks may exist.
func TestG4AStreamWithAlternativesDoesNotSayThatAnObjectIsAbsent(t *testing.T) {
	sim.Bubble(t, stream.Config{Share: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "n", "yes"))
		require.True(t, signalled(watching(t, streams, collect.Options{}, either("l", "r"))))
		_, known := streams.Lookup(sim.Resource("as"), xKey, intake.Meta)
		assert.False(t, known)
		_, all := streams.List(sim.Resource("as"), "", labels.Everything(), intake.Meta)
		assert.False(t, all)
		// Nor does it serve others, and equal queries share it, in whatever order.
		require.True(t, signalled(watching(t, streams, collect.Options{}, either("r", "l"))))
		assert.Equal(t, 1, streams.Len())
		watching(t, streams, collect.Options{}, either("l", "n"))
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		assert.Equal(t, 3, streams.Len())
	})
}

// TestG1G5WhatNoAlternativeSelectsIsNotKept: neither in the store, nor among the own writes, nor in
// the files of a warm start. Those of other alternatives are of no use.
func TestG1G5WhatNoAlternativeSelectsIsNotKept(t *testing.T) {
	lives(t, func(p *process) {
		p.Create("as", sim.Thing("in-1", "l", "yes"))
		p.Create("as", sim.Thing("out-1"))
		p.start(either("l", "r"))
		p.Create("as", sim.Thing("out-2"))
		p.Create("as", sim.Thing("in-2", "r", "yes"))
		p.Touch("as", "out-1", 1)
		synctest.Wait()
		sim.After(5 * time.Minute) // a base is written, and then changes
		p.Touch("as", "in-1", 1)
		p.Touch("as", "out-2", 1)
		p.Remove("as", "out-1")
		synctest.Wait()
		sim.After(5 * time.Minute)
		for _, in := range p.streams.Inspect() {
			assert.Equal(p, 1, in.Listeners)
			assert.Empty(p, in.Writes)
			assert.Equal(p, strings.Contains(in.AnyOf, "l=yes"), in.AnyOf != "")
		}
		keptNone := func() {
			kept := strings.Join(recordsOf(p), " ")
			assert.Contains(p, kept, "in-1")
			assert.NotContains(p, kept, "out-")
		}
		p.end()
		keptNone()
		p.Create("as", sim.Thing("out-3"))
		p.Touch("as", "out-2", 1)
		p.start(either("l", "r"))
		assert.Equal(p, "warm", p.began())
		p.end()
		keptNone()
		p.start(either("l", "s"))
		assert.Equal(p, "list: nothing is kept of it", p.began())
		p.end()
	})
}

// recordsOf are the records of all files of a process: objects, and the names of those that are
// gone.
func recordsOf(p *process) (all []string) {
	p.files.Edit("", func(file []byte) []byte {
		r, err := files.Codec{}.Open(bytes.NewReader(file))
		require.NoError(p, err)
		for {
			chunk, err := r.Next()
			require.NoError(p, err)
			if chunk == nil {
				return file
			}
			require.NoError(p, chunk.Each(func(one files.Record) error {
				all = append(all, one.Name+string(one.Raw))
				return nil
			}))
		}
	})
	return all
}
