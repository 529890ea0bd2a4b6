package partition

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// inBacklog runs a test while 1,000 keys wait for a turn: after the start, or after a change that
// concerns all of them. work does 10 ms of work for the next key.
func inBacklog(t *testing.T, f func(t *testing.T, s *sim.Server, p *Partitions, work func() string)) {
	for what, begin := range map[string]func(t *testing.T, s *sim.Server, p *Partitions){
		"at the start": func(*testing.T, *sim.Server, *Partitions) {},
		"after a change for all": func(t *testing.T, s *sim.Server, p *Partitions) {
			turns(t, p)
			s.Touch("bs", "all", 1)
			sim.After(time.Second)
		},
	} {
		t.Run(what, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				for i := range 1000 {
					s.Create("as", sim.Thing(fmt.Sprintf("x%03d", i), "k", fmt.Sprintf("k%03d", i)))
				}
				s.Create("bs", sim.Thing("all"))
				p := partitioned(t, streams, Options{Options: collect.Options{Pace: collect.Pace{Interval: time.Millisecond}}},
					keyed("A", "as"), sim.Query("B", "bs"))
				begin(t, s, p)
				f(t, s, p, func() string {
					next := turn(t, p)
					if next == nil {
						return ""
					}
					sim.After(10 * time.Millisecond)
					next.Done(nil)
					return next.Key
				})
			})
		})
	}
}

func TestAChangeDoesNotWaitForAllOtherKeys(t *testing.T) {
	inBacklog(t, func(t *testing.T, s *sim.Server, _ *Partitions, work func() string) {
		require.Equal(t, "k000", work())
		for i := range 20 {
			s.Relabel(fmt.Sprintf("x%03d", i*40), "k", fmt.Sprintf("k%03d", i*40), "n", "2")
			sim.After(time.Second)
			changed, worked := fmt.Sprintf("k%03d", i*40), 1
			for work() != changed {
				worked++
			}
			assert.LessOrEqual(t, worked, 2, "turns until that of %s", changed)
		}
	})
}

func TestNoKeyStarvesThoughOthersChangeAllTheTime(t *testing.T) {
	inBacklog(t, func(t *testing.T, s *sim.Server, p *Partitions, work func() string) {
		seen := map[string]bool{}
		for i := range 5 * 1000 {
			s.Touch("as", fmt.Sprintf("x%03d", i%7), i+2)
			p.Trigger(fmt.Sprintf("k%03d", i%7), fmt.Sprintf("k%03d", (i+1)%7))
			seen[work()] = true
		}
		assert.Len(t, seen, 1000)
	})
}

func TestAnotherTryOfAChangeComesBeforeOtherKeysToo(t *testing.T) {
	inBacklog(t, func(t *testing.T, s *sim.Server, p *Partitions, work func() string) {
		work()
		s.Relabel("x900", "k", "k900", "n", "2")
		sim.After(time.Second)
		next := turn(t, p)
		for next.Key != "k900" {
			next.Done(nil)
			next = turn(t, p)
		}
		next.Again(time.Second)
		sim.After(time.Second)
		assert.Contains(t, []string{work(), work()}, "k900")
	})
}

func TestTriggeredKeysComeInTheOrderOfTheTriggers(t *testing.T) {
	inBacklog(t, func(t *testing.T, _ *sim.Server, p *Partitions, work func() string) {
		work()
		p.Trigger("k500", "k400")
		got := []string{work(), work(), work()}
		assert.Less(t, slices.Index(got, "k500"), slices.Index(got, "k400"))
		assert.Contains(t, got, "k500")
	})
}
