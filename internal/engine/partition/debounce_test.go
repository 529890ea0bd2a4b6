package partition

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// ripeAt returns the times of the turns of keys that change at some times, each in order.
func ripeAt(changes map[string][]time.Duration, pace collect.Pace) map[string][]time.Duration {
	all := map[string][]time.Duration{}
	for key, times := range changes {
		for i := 0; i < len(times); {
			first, at := times[i], times[i]+pace.Quiet
			for i++; i < len(times) && times[i] < at; i++ {
				at = min(times[i]+pace.Quiet, first+pace.QuietMax)
			}
			all[key] = append(all[key], at)
		}
	}
	return all
}

func TestKeysThatChangeAtAnyTimesAreEachHandedOutWhenTheyAreQuietOrHaveWaitedForLongEnough(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, seed))
		pace := collect.Pace{Quiet: 10 * second, QuietMax: 25 * second}
		sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			for i := range 9 {
				s.Create("as", sim.Thing(fmt.Sprint("o", i), "k", fmt.Sprint("k", i)))
			}
			p := partitioned(t, streams, Options{Options: collect.Options{Pace: pace}}, keyed("A", "as"), sim.Query("B", "bs"))
			require.Len(t, turns(t, p), 9)
			start, changes, got := time.Now(), map[string][]time.Duration{}, map[string][]time.Duration{}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan bool)
			go func() {
				defer close(ended)
				for next, err := p.Next(ctx); err == nil; next, err = p.Next(ctx) {
					got[next.Key] = append(got[next.Key], time.Since(start))
					next.Done(nil)
				}
			}()
			for n := range 150 {
				i := random.IntN(9) * random.IntN(9) / 8 // some keys more than others
				s.Touch("as", fmt.Sprint("o", i), n)
				changes[fmt.Sprint("k", i)] = append(changes[fmt.Sprint("k", i)], time.Since(start))
				synctest.Wait()
				// no two changes at the same time
				sim.After(time.Duration(random.IntN(2000)+1)*time.Millisecond + time.Microsecond*time.Duration(n))
			}
			sim.After(time.Hour)
			cancel()
			<-ended
			assert.Equal(t, ripeAt(changes, pace), got)
			assert.False(t, p.scheduler.agenda.Waiting())
		})
	}
}

func TestG3ToReleaseKeysCostsNothingForThoseThatWaitAndWhoIsGoneWaitsNoMore(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		p := partitioned(t, streams, Options{Options: collect.Options{Pace: collect.Pace{Quiet: time.Hour}}}, keyed("A", "as"), sim.Query("B", "bs"))
		assert.Nil(t, turn(t, p))
		const n = 2000
		for i := range n {
			s.Create("as", sim.Thing(fmt.Sprint("o", i), "k", fmt.Sprint("k", i)))
		}
		synctest.Wait()
		require.NoError(t, p.Refresh(t.Context()))
		require.Equal(t, n, p.scheduler.inspect().Waiting)
		assert.Zero(t, rounds.Allocs(10, func() { p.scheduler.release(time.Now()) }))
		for i := range n {
			if i%3 > 0 {
				s.Remove("as", fmt.Sprint("o", i))
			}
		}
		synctest.Wait()
		require.NoError(t, p.Refresh(t.Context()))
		const left = (n + 2) / 3
		assert.Equal(t, left, p.scheduler.inspect().Waiting)
		p.TriggerAll()
		assert.Zero(t, p.scheduler.inspect().Waiting)
		assert.False(t, p.scheduler.agenda.Waiting())
		assert.Len(t, turns(t, p), left)
	})
}
