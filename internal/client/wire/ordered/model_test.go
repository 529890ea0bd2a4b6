package ordered

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// step is what one line does next.
type step struct {
	verb  string // add, flush, pause, close
	bytes int64
	takes time.Duration
}

// script is a pool, and what each of its lines does.
type script struct {
	helpers int
	bytes   int64
	lines   [][]step
}

func drawScript(t *rapid.T) script {
	one := rapid.Custom(func(t *rapid.T) step {
		return step{
			verb:  rapid.SampledFrom([]string{"add", "add", "add", "add", "add", "flush", "pause", "close"}).Draw(t, "verb"),
			bytes: rapid.Int64Range(0, 3000).Draw(t, "bytes"),
			takes: time.Duration(rapid.IntRange(0, 20).Draw(t, "takes")) * time.Millisecond,
		}
	})
	return script{
		helpers: rapid.IntRange(1, 4).Draw(t, "helpers"),
		bytes:   rapid.Int64Range(1, 10_000).Draw(t, "bytes"),
		lines:   rapid.SliceOfN(rapid.SliceOfN(one, 1, 40), 1, 4).Draw(t, "lines"),
	}
}

// TestLinesHandOutEachResultOnceAndInOrderWithinTheBounds lets several lines share a pool, with
// functions that take any time. Each line gets a prefix of its results, in order, and all of them
// with Flush. No more functions run at a time than there are lines and helpers, no more is held
// than the bound and one function of each line, and in the end nothing is held and nobody helps.
func TestLinesHandOutEachResultOnceAndInOrderWithinTheBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.Custom(drawScript).Draw(rt, "script")
		var err error
		synctest.Test(t, func(*testing.T) { err = s.run() })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// run plays a script.
func (s script) run() error {
	p := &Pool{Helpers: s.helpers, Bytes: s.bytes}
	var running, most atomic.Int64
	errs := make([]error, len(s.lines))
	var all sync.WaitGroup
	for i, steps := range s.lines {
		all.Go(func() { errs[i] = s.line(p, steps, &running, &most) })
	}
	all.Wait()
	synctest.Wait()
	err := errors.Join(errs...)
	if n := most.Load(); n > int64(s.helpers+len(s.lines)) {
		err = errors.Join(err, fmt.Errorf("%d functions ran at a time", n))
	}
	if p.held != 0 || p.helping != 0 || p.waiting.Len() != 0 {
		err = errors.Join(err, fmt.Errorf("%d bytes, %d helpers and %d functions are left", p.held, p.helping, p.waiting.Len()))
	}
	return err
}

// line plays the script of one line.
func (s script) line(p *Pool, steps []step, running, most *atomic.Int64) error {
	var want, got []int
	l := NewLine(p, func(n int) error {
		got = append(got, n)
		return nil
	})
	defer l.Close()
	largest := int64(3000 + overhead)
	for i, do := range steps {
		switch do.verb {
		case "add":
			want = append(want, i)
			if err := l.Add(do.bytes, func() int {
				for n, m := running.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(do.takes)
				running.Add(-1)
				return i
			}); err != nil {
				return err
			}
		case "flush":
			if err := l.Flush(); err != nil {
				return err
			}
			if !slices.Equal(want, got) {
				return fmt.Errorf("after Flush %v is there of %v", got, want)
			}
		case "pause":
			time.Sleep(do.takes)
		case "close":
			l.Close()
			if err := l.Add(0, func() int { return -1 }); !errors.Is(err, errClosed) {
				return fmt.Errorf("after Close the error is %v", err)
			}
			return nil
		}
		if len(got) > len(want) || !slices.Equal(want[:len(got)], got) || l.Len() != len(want)-len(got) {
			return fmt.Errorf("%v is there of %v, and %d are to come", got, want, l.Len())
		}
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if most := s.bytes + int64(len(s.lines))*largest; held > most {
			return fmt.Errorf("%d bytes are held, and %d may be", held, most)
		}
	}
	return nil
}
