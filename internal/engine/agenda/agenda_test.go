package agenda

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestAKeyIsReadySinceItsSignalItsQuietTimeOrTheEndOfItsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, start := New(Debounce{Quiet: 2 * second}), time.Now()
		x, y, z := &Entry{Key: "x"}, &Entry{Key: "y"}, &Entry{Key: "z"}
		a.MakeReady(z)
		z, _ = a.Next()
		a.Rest(z, 4*second)
		a.MakeDue(x)
		a.MakeDueOnceQuiet(y)
		sim.After(5 * second)
		a.Release(start.Add(second))
		want, got := map[*Entry]time.Duration{x: second, y: 2 * second, z: 4 * second}, map[*Entry]time.Duration{}
		for e, since := a.Next(); e != nil; e, since = a.Next() {
			got[e] = since.Sub(start)
		}
		assert.Equal(t, want, got)
	})
}

func TestOneTurnOfFiveIsForTheKeysThatAreDueWithAllKeys(t *testing.T) {
	a := New(Debounce{})
	for i := range 20 {
		own, common := &Entry{Key: "own"}, &Entry{Key: "common"}
		a.PutAhead(own)
		a.MakeReady(own)
		if i < 2 {
			a.MakeReady(common)
		}
	}
	var turns []string
	for range 12 {
		e, _ := a.Next()
		turns = append(turns, e.Key)
	}
	assert.Equal(t, "own own own own common own own own own common own own", strings.Join(turns, " "))
}

func TestWithoutADebounceNoKeyWaitsForQuiet(t *testing.T) {
	a, x := New(Debounce{Most: time.Hour}), &Entry{Key: "x"}
	a.MakeDueOnceQuiet(x)
	a.Release(time.Now())
	e, _ := a.Next()
	assert.Same(t, x, e)
}

// Each key is removed from the middle of a heap by its place in it.
func TestG3AKeyThatIsDroppedWaitsNoMoreAndTheOthersKeepTheirPlaces(t *testing.T) {
	a := New(Debounce{Quiet: time.Hour})
	const n = 2000
	keys := make([]Entry, n)
	for i := range keys {
		keys[i].Key = fmt.Sprint(i)
		a.MakeDueOnceQuiet(&keys[i])
	}
	assert.Zero(t, rounds.Allocs(10, func() { a.Release(time.Now()) }))
	for i := range keys {
		if i%3 > 0 {
			a.Drop(&keys[i])
		}
	}
	assert.Len(t, a.untilQuiet, (n+2)/3)
	for i, e := range a.untilQuiet {
		assert.Equal(t, i+1, e.place)
	}
	assert.Equal(t, (n+2)/3, a.Inspect(0).Waiting)
}

func TestAnInspectionHasTheKeysThatRunThenThoseThatFailedMostOftenThenTheReadyOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, start := New(Debounce{}), time.Now()
		run := func(e *Entry) {
			a.MakeReady(e)
			sim.After(time.Minute)
			next, _ := a.Next()
			assert.Same(t, e, next)
		}
		once, twice, runs := &Entry{Key: "once"}, &Entry{Key: "twice"}, &Entry{Key: "runs"}
		run(twice)
		a.Rest(twice, time.Second)
		sim.After(time.Minute)
		run(twice)
		a.Rest(twice, time.Hour)
		run(once)
		a.Rest(once, time.Hour)
		run(runs)
		a.MakeReady(&Entry{Key: "ready"})
		a.MakeDue(&Entry{Key: "waits"})
		after := func(minutes time.Duration) time.Time { return start.Add(minutes * time.Minute) }
		want := []KeyInspection{
			{Key: "runs", State: "running", Since: after(5)},
			{Key: "twice", State: "resting", Failures: 2, Until: after(60 + 3)},
			{Key: "once", State: "resting", Failures: 1, Until: after(60 + 4)},
			{Key: "ready", State: "ready", Since: after(5)},
		}
		assert.Equal(t, Inspection{Waiting: 1, Ready: 1, Running: 1, Resting: 2, ReadySince: after(5), Some: want}, a.Inspect(4))
		assert.Equal(t, want[:2], a.Inspect(2).Some)
	})
}

func TestG11NothingFiresAfterAnAgendaIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Debounce{Quiet: second, Most: second})
		x, y, z := &Entry{Key: "x"}, &Entry{Key: "y"}, &Entry{Key: "z"}
		a.MakeReady(x)
		a.MakeReady(y)
		for _, want := range []*Entry{x, y} {
			got, _ := a.Next()
			assert.Same(t, want, got)
		}
		a.Rest(x, second)
		a.MakeDueOnceQuiet(z)
		a.Close()
		a.Rest(y, second)
		a.Drop(x)
		a.Release(time.Now())
		sim.After(time.Hour)
		assert.False(t, has(a.rested.C))
		assert.False(t, has(a.quiet.C))
		assert.False(t, a.rested.Stop())
		assert.False(t, a.quiet.Stop())
	})
}

func TestG3AnAgendaAllocatesNothingForATurn(t *testing.T) {
	a := New(Debounce{Quiet: time.Nanosecond, Most: time.Nanosecond})
	keys := make([]Entry, 100)
	for i := range keys {
		keys[i].Key = fmt.Sprint(i)
	}
	assert.Zero(t, rounds.Allocs(100, func() {
		for i := range keys {
			if i%2 == 0 {
				a.MakeDue(&keys[i])
			} else {
				a.MakeDueOnceQuiet(&keys[i])
			}
		}
		for a.size() > 0 {
			a.Release(time.Now())
			for e, _ := a.Next(); e != nil; e, _ = a.Next() {
				if e.failures == 0 {
					a.Rest(e, 0)
				} else {
					a.Done(e)
				}
			}
		}
	}))
}
