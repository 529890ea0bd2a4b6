package partition

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// looking runs a test on partitions a and b, with an object each. Their first turns have read
// nothing.
func looking(t *testing.T, o Options, f func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions)) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "k", "a"))
		s.Create("as", sim.Thing("y", "k", "b"))
		s.Create("ls", sim.Thing("there"))
		p, err := Start(t.Context(), streams, reflect.TypeFor[referring](), referringQueries(), o)
		require.NoError(t, err)
		defer p.Close()
		require.Equal(t, []string{"a", "b"}, keysOfTurns(t, p, nil))
		f(t, s, streams, p)
	})
}

// keysOfTurns takes and ends all turns.
func keysOfTurns(t *testing.T, p *Partitions, do func(*Turn)) (keys []string) {
	t.Helper()
	eachTurn(t, p, func(next *Turn) {
		keys = append(keys, next.Key)
		if do != nil {
			do(next)
		}
	})
	return keys
}

func lookupOf(t *Turn) (get func(name string) bool, list func(selector string) int) {
	look := t.Snapshot.(*referring).L
	return func(name string) bool {
			_, err := look.Get("ns", name)
			return err == nil
		}, func(selector string) int {
			s, _ := labels.Parse(selector)
			all, _ := look.List("ns", s)
			return len(all)
		}
}

// reading returns a turn of a key that reads a name.
func reading(key, name string) func(*Turn) {
	return func(t *Turn) {
		if get, _ := lookupOf(t); t.Key == key {
			get(name)
		}
	}
}

func TestAPartitionIsActivatedByWhatItHasReadAbsenceIncluded(t *testing.T) {
	looking(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		p.Trigger("a")
		keysOfTurns(t, p, reading("a", "missing"))
		s.Touch("ls", "there", 1)
		assert.Empty(t, keysOfTurns(t, p, nil), "nobody has read it")
		s.Create("ls", sim.Thing("missing"))
		assert.Equal(t, []string{"a"}, keysOfTurns(t, p, reading("a", "missing")))
		s.Touch("ls", "missing", 1)
		assert.Equal(t, []string{"a"}, keysOfTurns(t, p, reading("a", "missing")))
		s.Remove("ls", "missing")
		assert.Equal(t, []string{"a"}, keysOfTurns(t, p, nil), "and now it reads nothing")
		s.Create("ls", sim.Thing("missing"))
		assert.Empty(t, keysOfTurns(t, p, nil), "what is not read any more activates no more")
	})
}

func TestAPartitionIsActivatedByWhatStartsOrCeasesToBeSelected(t *testing.T) {
	looking(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		selecting := func(t *Turn) {
			if _, list := lookupOf(t); t.Key == "b" {
				list("in=yes")
			}
		}
		p.Trigger("b")
		keysOfTurns(t, p, selecting)
		s.Create("ls", sim.Thing("n", "in", "no"))
		assert.Empty(t, keysOfTurns(t, p, selecting))
		s.Create("ls", sim.Thing("n", "in", "yes"))
		assert.Equal(t, []string{"b"}, keysOfTurns(t, p, selecting))
		s.Create("ls", sim.Thing("n", "in", "yes"))
		assert.Equal(t, []string{"b"}, keysOfTurns(t, p, selecting), "it has changed")
		s.Create("ls", sim.Thing("n", "in", "no"))
		assert.Equal(t, []string{"b"}, keysOfTurns(t, p, selecting))
		s.Create("ls", sim.Thing("n", "in", "yes"))
		synctest.Wait()
		require.NoError(t, p.Refresh(t.Context()))
		s.Create("ls", sim.Thing("n", "in", "no"))
		assert.Empty(t, keysOfTurns(t, p, selecting), "what came and went unseen is no turn")
	})
}

func TestG2WhatChangesAfterItWasReadInATurnActivatesTheKeyAgain(t *testing.T) {
	for _, when := range []string{"taken in during the turn", "taken in after it", "before it is read", "by an own write"} {
		t.Run(when, func(t *testing.T) {
			looking(t, Options{}, func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions) {
				p.Trigger("a")
				held := turn(t, p)
				get, _ := lookupOf(held)
				if when != "before it is read" {
					assert.True(t, get("there"))
				}
				if when == "by an own write" {
					u := sim.Thing("there")
					u.SetUID(s.Now["ls"][object.Key{Namespace: "ns", Name: "there"}].GetUID())
					sim.NewClient(s, streams).Put("ls", u, 0)
				} else {
					s.Remove("ls", "there")
				}
				if when != "taken in after it" {
					assert.Nil(t, turn(t, p))
				}
				assert.True(t, get("there"), "a turn shows one state")
				held.Done(nil)
				assert.Equal(t, []string{"a"}, keysOfTurns(t, p, nil))
			})
		})
	}
}

func TestAWorkerThatWaitsIsWokenForWhatATurnThatEndsHasRead(t *testing.T) {
	looking(t, Options{Options: collect.Options{Pace: collect.Pace{Interval: second}}}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		p.Trigger("a")
		held := turn(t, p)
		got := make(chan *Turn, 1)
		go func() {
			next, _ := p.Next(t.Context())
			got <- next
		}()
		s.Remove("ls", "there")
		sim.After(time.Minute)
		get, _ := lookupOf(held)
		get("there")
		held.Done(nil)
		sim.After(second)
		select {
		case next := <-got:
			assert.Equal(t, "a", next.Key)
		default:
			t.Fatal("nobody is told")
		}
	})
}

func TestReadsOfATurnThatFailedCountAndThoseAfterItsEndAreNotRecorded(t *testing.T) {
	looking(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		p.Trigger("a")
		first := turn(t, p)
		get, list := lookupOf(first)
		get("missing")
		first.Done(errors.New("oops"))
		assert.True(t, get("there"), "still read")
		assert.Zero(t, list("after=all"))
		s.Create("ls", sim.Thing("missing"))
		sim.After(time.Minute)
		second := turn(t, p)
		require.Len(t, second.Differences, 1)
		assert.Equal(t, "missing", second.Differences[0].New.GetName())
		get, _ = lookupOf(second)
		var readers sync.WaitGroup
		for i := range 8 {
			readers.Go(func() { get(fmt.Sprint("n", i)) })
		}
		readers.Wait()
		second.Done(nil)
		s.Remove("ls", "there")
		assert.Empty(t, keysOfTurns(t, p, nil))
		s.Create("ls", sim.Thing("n7"))
		assert.Equal(t, []string{"a"}, keysOfTurns(t, p, nil))
	})
}

func TestG4QuietOwnWritesOfWhatWasReadActivateNothing(t *testing.T) {
	looking(t, Options{Options: collect.Options{QuietOwnWrites: true}}, func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions) {
		p.Trigger("a")
		held := turn(t, p)
		get, _ := lookupOf(held)
		get("m1")
		get("m2")
		sim.NewClient(s, streams).Put("ls", sim.Thing("m1"), 0)
		assert.Nil(t, turn(t, p))
		held.Done(nil)
		sim.NewClient(s, streams).Put("ls", sim.Thing("m2"), 0)
		assert.Empty(t, keysOfTurns(t, p, nil))
		p.Trigger("a")
		next := turn(t, p)
		get, _ = lookupOf(next)
		assert.True(t, get("m1") && get("m2"), "they are in the next one")
		next.Done(nil)
	})
}

func TestG6APartitionThatIsGoneDropsItsReads(t *testing.T) {
	looking(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		p.Trigger("a")
		keysOfTurns(t, p, func(t *Turn) {
			get, list := lookupOf(t)
			get("there")
			list("")
			list("k in (v, w)")
		})
		rs := p.scheduler.readers[1]
		assert.Len(t, rs.names, 1)
		assert.Len(t, rs.selected["ns"], 2)
		s.Remove("as", "x")
		gone := turn(t, p)
		require.True(t, gone.Gone)
		get, _ := lookupOf(gone)
		assert.True(t, get("there"), "what was made of it may be found by what it refers to")
		gone.Done(nil)
		assert.Empty(t, rs.names)
		assert.Empty(t, rs.selected)
		s.Remove("ls", "there")
		assert.Empty(t, keysOfTurns(t, p, nil))
	})
}

func TestAKeyFunctionOfWhatIsLookedUpIsAnError(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
		_, err := Start(t.Context(), streams, reflect.TypeFor[referring](), []query.Query{keyed("A", "as"), keyed("L", "ls")}, Options{})
		assert.ErrorContains(t, err, `query "L": it has a key function, but what is looked up belongs to no partition`)
	})
}

// TestAChangeOfWhatIsLookedUpCostsNothingForPartitionsThatHaveNotReadIt counts the shares that a
// change touches.
func TestAChangeOfWhatIsLookedUpCostsNothingForPartitionsThatHaveNotReadIt(t *testing.T) {
	looking(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		for i := range 200 {
			s.Create("as", sim.Thing(fmt.Sprint("o", i), "k", fmt.Sprint("k", i)))
		}
		keysOfTurns(t, p, func(t *Turn) { reading(t.Key, "of-"+t.Key)(t) })
		s.Create("ls", sim.Thing("of-k7"))
		synctest.Wait()
		require.NoError(t, p.Refresh(t.Context()))
		for key, part := range p.scheduler.parts {
			assert.Equal(t, key == "k7", len(part.shares[1].dirty) > 0, key)
		}
		assert.Len(t, p.scheduler.readers[1].concerned(moved{key: object.Key{Namespace: "ns", Name: "of-k7"}}), 1)
	})
}
