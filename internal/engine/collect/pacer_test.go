package collect

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestG11ThePacerAsksForNewsWithoutItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *pacer
		asked := 0
		p = newPacer(Pace{Interval: time.Second}, func() bool {
			asked++
			if assert.True(t, p.mu.TryLock(), "the pacer's lock is held") {
				p.mu.Unlock()
			}
			return true
		})
		p.poke() // signals at once
		p.poke() // that signal waits still
		assert.Equal(t, 1, asked)
		<-p.out
		p.poke() // the timer signals
		<-time.After(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, 2, asked)
		p.close()
	})
}

// Nobody reads the signals.
func TestG2ASignalWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(Pace{}, func() bool { return true })
		poked := 0
		go func() {
			for ; poked < 3; poked++ {
				p.poke()
			}
		}()
		synctest.Wait()
		require.Equal(t, 3, poked, "a signal that waits holds up the next change") // and close, too
		assert.Len(t, p.out, 1)
		p.close()
	})
}

func TestG2AChangeWhileThePacerAsksForNewsIsSignalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, first := range []bool{false, true} {
			var p *pacer
			asked := 0
			p = newPacer(Pace{Interval: time.Second}, func() bool {
				if asked++; asked > 1 {
					return true
				}
				poked := make(chan struct{})
				go func() {
					p.poke() // because of a change that this call has not seen
					close(poked)
				}()
				<-poked
				return first
			})
			p.poke()
			if first {
				<-p.out
			}
			<-time.After(2 * time.Second)
			synctest.Wait()
			assert.Len(t, p.out, 1)
			assert.Equal(t, 2, asked)
			p.close()
		}
	})
}

func TestG11ThePacerEndsWhenNobodyAsksForNewsAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		p := newPacer(Pace{}, func() bool { <-answer; return true })
		go p.poke()
		synctest.Wait()
		ended := false
		go func() { p.close(); ended = true }()
		synctest.Wait()
		assert.False(t, ended)
		_, open := <-p.out
		assert.False(t, open, "nobody who reads the channel waits")
		close(answer)
		synctest.Wait()
		assert.True(t, ended)
	})
}
