package attempts

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestABackoffDoublesUpToTheMost(t *testing.T) {
	b := Backoff{First: 3 * time.Second, Most: 20 * time.Second}
	for failures, want := range []time.Duration{1: 3, 2: 6, 3: 12, 4: 20, 5: 20} {
		if failures > 0 {
			assert.Equal(t, want*time.Second, b.After(failures))
		}
	}
	assert.Equal(t, 20*time.Second, b.After(1<<40))
	huge := Backoff{First: 1, Most: 1<<63 - 1}
	assert.Equal(t, huge.Most, huge.After(1<<40), "without an overflow")
	assert.NoError(t, Default.Check())
	assert.NoError(t, Backoff{First: 1, Most: 1}.Check())
	assert.Error(t, Backoff{}.Check())
	assert.Error(t, Backoff{First: 2, Most: 1}.Check())
}

func TestFinalIsWhatIsMarkedHoweverDeep(t *testing.T) {
	oops := errors.New("oops")
	err, final := Final(oops)
	assert.Same(t, oops, err)
	assert.False(t, final)
	err, final = Final(&Permanent{oops})
	assert.Same(t, oops, err)
	assert.True(t, final)
	deep := fmt.Errorf("deep: %w", errors.Join(&Permanent{oops}))
	err, final = Final(deep)
	assert.Same(t, deep, err)
	assert.True(t, final)
	_, final = Final(nil)
	assert.False(t, final)
}

func TestAWorkerThatEndsItsGoroutineIsAnError(t *testing.T) {
	oops, ends := errors.New("oops"), make(chan error)
	go Send(ends, func() error { return oops })
	assert.Same(t, oops, <-ends)
	go Send(ends, func() error { runtime.Goexit(); return nil })
	assert.Same(t, ErrGoexit, <-ends)
}
