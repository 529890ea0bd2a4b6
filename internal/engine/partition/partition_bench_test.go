package partition

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// benchPartitions returns partitions of n keys with an object each, after their first turns.
func benchPartitions(tb testing.TB, n int, pace collect.Pace) (*sim.Server, *Partitions) {
	tb.Helper()
	s := sim.New()
	for i := range n {
		s.Create("as", sim.Thing(fmt.Sprint("o", i), "k", fmt.Sprint("k", i)))
	}
	streams := streamset.New(stream.Config{Source: sim.Plain(s.Source), StreamLists: true})
	tb.Cleanup(streams.Close)
	p, err := Start(context.Background(), streams, reflect.TypeFor[one](), []query.Query{keyed("A", "as")}, Options{Options: collect.Options{Pace: pace}})
	if err != nil {
		tb.Fatal(err)
	}
	takeTurns(tb, p, n)
	return s, p
}

func takeTurns(tb testing.TB, p *Partitions, n int) {
	tb.Helper()
	for range n {
		next, err := p.Next(context.Background())
		if err != nil {
			tb.Fatal(err)
		}
		next.Done(nil)
	}
}

// BenchmarkPartitionTurns: the cost of turns whose objects are unchanged. 100 keys are activated,
// and each gets its turn.
func BenchmarkPartitionTurns(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint("keys=", n), func(b *testing.B) {
			_, p := benchPartitions(b, n, collect.Pace{})
			keys := p.Keys()[:100]
			b.ReportAllocs()
			for b.Loop() {
				p.Trigger(keys...)
				takeTurns(b, p, len(keys))
			}
		})
	}
}

// BenchmarkPartitionFailures: the cost of such turns when each is repeated once.
func BenchmarkPartitionFailures(b *testing.B) {
	_, p := benchPartitions(b, 1_000, collect.Pace{})
	keys := p.Keys()[:100]
	b.ReportAllocs()
	for b.Loop() {
		p.Trigger(keys...)
		for range keys {
			next, err := p.Next(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			next.Again(0)
		}
		takeTurns(b, p, len(keys))
	}
}

// BenchmarkPartitionChanges: from 100 events of as many keys to the ends of their turns,
// including the simulated server.
func BenchmarkPartitionChanges(b *testing.B) {
	s, p := benchPartitions(b, 1_000, collect.Pace{})
	b.ReportAllocs()
	for version := 0; b.Loop(); version++ {
		for i := range 100 {
			s.Touch("as", fmt.Sprint("o", i), version)
		}
		takeTurns(b, p, 100)
	}
}
