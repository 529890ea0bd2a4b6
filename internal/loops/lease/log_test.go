package lease

import (
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestALogHasTheNameOfTheLeaderAsItIs: who searches for an identity finds the lines of all
// replicas.
func TestALogHasTheNameOfTheLeaderAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		l.held(t, time.Now())
		a := l.stand(t, "a")
		<-time.After(time.Second)
		l.set(func() {
			assert.Contains(t, l.out.String(), `"following" "lease"="ns/lease" "leader"="other" "identity"="a"`)
		})
		a.Resign()
	})
}

// A log may ask for the status of what it is told of.
func TestG11TheLoggerIsCalledWithoutTheLockOfTheCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		ready := make(chan struct{})
		var told atomic.Int64
		var c *Candidate
		config := l.config("a")
		config.Logger = funcr.New(func(_, args string) {
			<-ready
			told.Add(1)
			for range 1000 { // another goroutine may have it for a moment
				if c.mu.TryLock() {
					c.mu.Unlock()
					return
				}
				goruntime.Gosched()
			}
			t.Error("the lock is held: ", args)
		}, funcr.Options{})
		var err error
		c, err = Stand(t.Context(), config)
		require.NoError(t, err)
		close(ready)
		require.True(t, isClosed(c.Elected()))
		l.give(t, "b")
		<-time.After(time.Minute)
		require.True(t, isClosed(c.Lost()))
		c.Resign()
		assert.GreaterOrEqual(t, told.Load(), int64(2), "it leads, and leads no more")
	})
}
