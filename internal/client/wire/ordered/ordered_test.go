package ordered

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gathering is a line whose results are gathered.
func gathering(p *Pool) (l *Line[int], got *[]int) {
	got = new([]int)
	return NewLine(p, func(n int) error {
		*got = append(*got, n)
		return nil
	}), got
}

// after is a function that takes a time.
func after(d time.Duration, n int) func() int {
	return func() int {
		time.Sleep(d)
		return n
	}
}

func TestFunctionsRunSideBySideAndTheirResultsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, got := gathering(&Pool{Helpers: 2})
		begun := time.Now()
		for n := range 3 {
			require.NoError(t, l.Add(1, after(time.Duration(3-n)*time.Second, n)))
		}
		assert.Empty(t, *got)
		require.NoError(t, l.Flush())
		assert.Equal(t, []int{0, 1, 2}, *got)
		assert.Equal(t, 3*time.Second, time.Since(begun), "two run in helpers, and one in the line's goroutine")
	})
}

func TestAResultIsHandedOutWithTheNextFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, got := gathering(&Pool{Helpers: 1})
		defer l.Close()
		require.NoError(t, l.Add(1, after(0, 7)))
		synctest.Wait()
		require.NoError(t, l.Add(1, after(time.Hour, 8)))
		assert.Equal(t, []int{7}, *got)
		assert.Equal(t, 1, l.Len())
	})
}

func TestWithoutAHelperEachFunctionRunsAtOnceInItsOwnGoroutine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, p := range map[string]*Pool{"no pool": nil, "no helper": {Helpers: -1}, "one core": {}} {
		assert.False(t, p.Helps(), name)
		l, got := gathering(p)
		local := 0 // the race detector watches
		for n := range 3 {
			require.NoError(t, l.Add(1<<40, func() int {
				local++
				return n
			}), name)
			assert.Len(t, *got, n+1, name)
		}
		assert.Equal(t, []int{0, 1, 2}, *got, name)
		assert.Equal(t, 3, local, name)
		assert.Zero(t, l.Len(), name)
		l.Close()
		assert.Error(t, l.Add(1, after(0, 3)), name)
	}
	runtime.GOMAXPROCS(3)
	assert.True(t, new(Pool).Helps())
	assert.Equal(t, 2, new(Pool).most(), "the goroutine that reads has a core, too")
}

func TestALineGoesOnWhileAllHelpersAreBusyWithAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{Helpers: 1, Bytes: 1}
		slow, _ := gathering(p)
		require.NoError(t, slow.Add(1, after(time.Hour, 0)))
		synctest.Wait() // the only helper is busy, and there is no room
		begun := time.Now()
		l, got := gathering(p)
		for n := range 3 {
			require.NoError(t, l.Add(1, after(time.Second, n)))
			assert.Equal(t, 1, l.Len(), "one function at a time needs no room")
		}
		require.NoError(t, l.Flush())
		assert.Equal(t, []int{0, 1, 2}, *got)
		assert.Equal(t, 3*time.Second, time.Since(begun))
		slow.Close()
	})
}

func TestNoMoreIsHeldThanTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 1000
		p := &Pool{Helpers: 1, Bytes: 4 * (each + overhead)}
		l, got := gathering(p)
		for n := range 20 {
			require.NoError(t, l.Add(each, after(time.Second, n)))
			assert.LessOrEqual(t, l.Len(), 4)
			assert.LessOrEqual(t, p.held, p.Bytes)
		}
		require.NoError(t, l.Add(100*each, after(0, 20)), "one that is larger than the bound comes alone")
		assert.Equal(t, 1, l.Len())
		require.NoError(t, l.Flush())
		assert.Len(t, *got, 21)
		assert.Zero(t, p.held)
	})
}

func TestSmallFunctionsAreBoundedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := gathering(&Pool{Helpers: 1, Bytes: 10 * overhead})
		for n := range 50 {
			require.NoError(t, l.Add(-1, after(time.Second, n)))
			assert.LessOrEqual(t, l.Len(), 10)
		}
		require.NoError(t, l.Flush())
	})
}

func TestAnErrorEndsTheLineAndDropsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{Helpers: 1}
		no, ran := errors.New("no"), atomic.Int64{}
		var got []int
		l := NewLine(p, func(n int) error {
			if got = append(got, n); n == 1 {
				return no
			}
			return nil
		})
		for n := range 6 {
			require.NoError(t, l.Add(1, func() int {
				time.Sleep(time.Second)
				ran.Add(1)
				return n
			}))
		}
		require.ErrorIs(t, l.Flush(), no)
		assert.Equal(t, []int{0, 1}, got)
		assert.Less(t, ran.Load(), int64(6))
		assert.Zero(t, p.held)
		assert.ErrorIs(t, l.Add(1, after(0, 1)), no)
		assert.ErrorIs(t, l.Flush(), no)
		l.Close()
		assert.ErrorIs(t, l.Add(1, after(0, 1)), no, "the first error stays")
		assert.Equal(t, []int{0, 1}, got)
	})
}

func TestAfterCloseNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{Helpers: 1}
		l, got := gathering(p)
		begun, ended := 0, 0
		for n := range 5 {
			require.NoError(t, l.Add(1, func() int {
				begun++
				time.Sleep(time.Minute)
				ended++
				return n
			}))
		}
		synctest.Wait()
		l.Close()
		assert.Equal(t, 1, begun, "those that nobody had begun do not run")
		assert.Equal(t, 1, ended, "the one that ran has ended")
		time.Sleep(time.Hour)
		assert.Equal(t, 1, begun)
		assert.Empty(t, *got)
		assert.Zero(t, p.held)
		assert.Zero(t, p.helping)
		assert.ErrorIs(t, l.Add(1, after(0, 1)), errClosed)
		l.Close()
	})
}

func TestAPanicIsThatOfTheCallThatHandsOutTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{Helpers: 1}
		l, got := gathering(p)
		require.NoError(t, l.Add(1, after(time.Second, 0)))
		require.NoError(t, l.Add(1, func() int { panic("oops") }))
		require.NoError(t, l.Add(1, after(time.Second, 2)))
		assert.Panics(t, func() { _ = l.Flush() })
		assert.Equal(t, []int{0}, *got)
		l.Close()
		assert.Zero(t, p.held)

		l, got = gathering(p)
		require.NoError(t, l.Add(1, after(time.Second, 0)))
		require.NoError(t, l.Flush(), "the pool goes on")
		assert.Equal(t, []int{0}, *got)
	})
}

func TestAFunctionThatEndsItsGoroutineDoesNotEndThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{Helpers: 1}
		l, got := gathering(p)
		require.NoError(t, l.Add(1, func() int {
			time.Sleep(time.Second) // it ends in Flush, and not in the next Add
			runtime.Goexit()
			return 0
		}))
		synctest.Wait() // a helper runs it, and not the goroutine of the test
		require.NoError(t, l.Add(1, after(time.Second, 1)))
		assert.Panics(t, func() { _ = l.Flush() })
		assert.Empty(t, *got)
		l.Close()
		assert.Zero(t, p.held)
		synctest.Wait()
		assert.Zero(t, p.helping)
	})
}
