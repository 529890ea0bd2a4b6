package partition

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// The change of another client comes while an own write of its object is under way. Whether it is
// worth a signal is known when that is answered. By then the object has changed again, quietly,
// and has neither the key that it had nor the one that the change gave it.
func TestG2AKeyHasATurnForWhatTurnsOutToBeWorthItThoughTheObjectHasMovedOnQuietly(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*sim.Server, sim.Client)
		want []string
	}{
		"deleted": {func(_ *sim.Server, o sim.Client) { o.Delete("as", "x", 0, true) }, []string{"a: y / "}},
		"moved": {
			func(s *sim.Server, o sim.Client) { o.Put("as", s.Relabelled("x", "k", "c"), 0) },
			[]string{"a: y / ", "c: x / "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				for name, key := range map[string]string{"x": "a", "y": "a", "z": "b"} {
					s.Create("as", sim.Thing(name, "k", key))
				}
				p := partitioned(t, streams, Options{Options: collect.Options{QuietOwnWrites: true}}, keyed("A", "as"))
				require.Equal(t, []string{"a: x y / ", "b: z / "}, turns(t, p))
				w := streams.Begin(sim.Resource("as"), object.Key{Namespace: "ns", Name: "x"})
				s.Relabel("x", "k", "b")
				require.Nil(t, turn(t, p))
				require.NoError(t, p.Refresh(t.Context()))
				w.Abandon()
				c.then(s, sim.NewClient(s, streams))
				assert.ElementsMatch(t, c.want, turns(t, p))
				assert.Empty(t, p.scheduler.hushed[0], "G6")
			})
		})
	}
}

// The same, where a turn has looked the object up: the change, and what tells that it is worth a
// signal, come before the turn ends, or after that.
func TestG2AKeyHasATurnForWhatItHasReadThatTurnsOutToBeWorthItThoughItHasChangedQuietlySince(t *testing.T) {
	for _, ends := range []string{"first", "between", "last"} {
		t.Run(ends, func(t *testing.T) {
			looking(t, Options{Options: collect.Options{QuietOwnWrites: true}}, func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions) {
				labelled := func(l string) *unstructured.Unstructured { return sim.Thing("there", "l", l) }
				s.Create("ls", labelled("read"))
				assert.Empty(t, keysOfTurns(t, p, nil))
				p.Trigger("a")
				held := turn(t, p)
				_, list := lookupOf(held)
				require.Equal(t, 1, list("l=read"))
				end := func(when string) {
					if when == ends {
						held.Done(nil)
					}
				}
				end("first")
				w := streams.Begin(sim.Resource("ls"), object.Key{Namespace: "ns", Name: "there"})
				s.Create("ls", labelled("another"))
				synctest.Wait()
				require.NoError(t, p.Refresh(t.Context()))
				end("between")
				w.Abandon()
				sim.NewClient(s, streams).Put("ls", labelled("a third"), 0)
				synctest.Wait()
				require.NoError(t, p.Refresh(t.Context()))
				end("last")
				assert.Equal(t, []string{"a"}, keysOfTurns(t, p, nil))
				assert.Empty(t, p.scheduler.hushed[1], "G6")
			})
		})
	}
}

// A stream that has given own writes up lists again, and everything is news: which changes were
// worth a signal is no longer known.
func TestG2AKeyHasATurnForWhatTurnsOutToBeWorthItThoughAListComesBeforeThat(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true, PendingMax: 2}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for name, key := range map[string]string{"x": "a", "y": "a", "z": "b"} {
			s.Create("as", sim.Thing(name, "k", key))
		}
		p := partitioned(t, streams, Options{Options: collect.Options{QuietOwnWrites: true}}, keyed("A", "as"))
		require.Equal(t, []string{"a: x y / ", "b: z / "}, turns(t, p))
		w := streams.Begin(sim.Resource("as"), object.Key{Namespace: "ns", Name: "x"})
		s.Relabel("x", "k", "b")
		require.Nil(t, turn(t, p))
		require.NoError(t, p.Refresh(t.Context()))
		w.Abandon()
		s.Late(time.Hour)
		for _, name := range []string{"1", "2", "3"} {
			sim.NewClient(s, streams).Put("as", sim.Thing(name), 0)
		}
		synctest.Wait()
		assert.Equal(t, []string{"a: y / ", "b: x z / "}, turns(t, p))
		assert.Empty(t, p.scheduler.hushed[0], "G6")
	})
}

func TestG6WhatIsHushedIsForgottenWhenItsKeyHasATurnOrIsGone(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "k", "a"))
		p := partitioned(t, streams, Options{Options: collect.Options{QuietOwnWrites: true}}, keyed("A", "as"))
		require.Equal(t, []string{"a: x / "}, turns(t, p))
		o := sim.NewClient(s, streams)
		o.Put("as", sim.Thing("y", "k", "a"), 0)
		o.Put("as", sim.Thing("z", "k", "b"), 0)
		require.Nil(t, turn(t, p))
		assert.Len(t, p.scheduler.hushed[0], 2)
		p.Trigger("a")
		require.Equal(t, []string{"a: x y / "}, turns(t, p))
		assert.Len(t, p.scheduler.hushed[0], 1)
		o.Delete("as", "z", 0, true)
		require.Nil(t, turn(t, p))
		assert.Empty(t, p.scheduler.hushed[0])
	})
}
