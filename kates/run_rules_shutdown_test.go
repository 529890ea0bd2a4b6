package kates_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// loops are the two loops of this package, with a function that works for both.
var loops = map[string]func(ctx context.Context, c *kates.Client, f func(context.Context) error, options ...kates.RunOption) error{
	"Run": func(ctx context.Context, c *kates.Client, f func(context.Context) error, options ...kates.RunOption) error {
		return kates.Run(ctx, c, func(ctx context.Context, _ *maps) error { return f(ctx) }, options...)
	},
	"RunEach": func(ctx context.Context, c *kates.Client, f func(context.Context) error, options ...kates.RunOption) error {
		by := kates.Query{Name: "ConfigMaps", Key: kates.ByName}
		return kates.RunEach(ctx, c, func(ctx context.Context, _ string, _ *maps) error { return f(ctx) }, append(options, by)...)
	},
}

// shuttingDown runs a function that takes a time, ends the loop while it runs, and gives what came
// of both.
func shuttingDown(t *testing.T, takes time.Duration, check func(t *testing.T, took time.Duration, call, loop error), options ...kates.RunOption) {
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent))
				put(t, fake, "a", "1")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var call error
				begun, calls := make(chan struct{}), 0
				done := make(chan error, 1)
				go func() {
					done <- loop(ctx, fake.Client, func(ctx context.Context) error {
						calls++
						close(begun)
						select {
						case <-time.After(takes):
							b := &kates.ConfigMap{}
							b.Name = "b"
							call = fake.Client.Create(ctx, b, nil)
						case <-ctx.Done():
							call = context.Cause(ctx)
						}
						return call
					}, options...)
				}()
				<-begun
				end := time.Now()
				cancel()
				put(t, fake, "a", "2")
				err := <-done
				assert.Equal(t, 1, calls, "no call begins after the end")
				check(t, time.Since(end), call, err)
			})
		})
	}
}

func TestACallMayFinishWithinTheShutdownTimeout(t *testing.T) {
	for what, options := range map[string][]kates.RunOption{"alone": nil, "as leader": {as("a")}} {
		t.Run(what, func(t *testing.T) {
			shuttingDown(t, 5*time.Second, func(t *testing.T, took time.Duration, call, loop error) {
				assert.NoError(t, call, "it can write")
				assert.NoError(t, loop)
				assert.Equal(t, 5*time.Second, took)
			}, append(options, kates.WithShutdownTimeout(10*time.Second))...)
		})
	}
}

func TestACallThatTakesLongerThanTheShutdownTimeoutIsAborted(t *testing.T) {
	shuttingDown(t, time.Hour, func(t *testing.T, took time.Duration, call, loop error) {
		assert.ErrorIs(t, call, kates.ErrAborted)
		assert.ErrorIs(t, loop, kates.ErrAborted)
		assert.ErrorContains(t, loop, "calls under way have been aborted after a shutdown timeout of 10s")
		assert.Equal(t, 10*time.Second, took)
	}, kates.WithShutdownTimeout(10*time.Second))
}

func TestWithoutAShutdownTimeoutTheContextsOfCallsEndAtOnceAndThatIsNoError(t *testing.T) {
	shuttingDown(t, time.Hour, func(t *testing.T, took time.Duration, call, loop error) {
		assert.ErrorIs(t, call, context.Canceled)
		assert.NoError(t, loop)
		assert.Zero(t, took)
	})
	shuttingDown(t, time.Hour, func(t *testing.T, took time.Duration, call, loop error) {
		assert.ErrorIs(t, call, kates.ErrAborted)
		assert.ErrorIs(t, loop, kates.ErrAborted)
		assert.Zero(t, took)
	}, kates.WithShutdownTimeout(0))
}

// TestALeaderThatLosesItsLeaseHasNoGrace: another one may lead already.
func TestALeaderThatLosesItsLeaseHasNoGrace(t *testing.T) {
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent))
				put(t, fake, "a", "1")
				var cause error
				begun, done := make(chan struct{}), make(chan error, 1)
				go func() {
					done <- loop(t.Context(), fake.Client, func(ctx context.Context) error {
						close(begun)
						<-ctx.Done()
						cause = context.Cause(ctx)
						return ctx.Err()
					}, as("a"), kates.WithShutdownTimeout(time.Hour))
				}()
				<-begun
				steal(t, fake)
				assert.ErrorIs(t, <-done, kates.ErrLeadershipLost)
				assert.ErrorIs(t, cause, kates.ErrLeadershipLost)
			})
		})
	}
}

func TestSignalsInABubbleAreAnErrorThatNamesTheOption(t *testing.T) {
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent))
				err := loop(t.Context(), fake.Client, func(context.Context) error {
					t.Error("the function is called")
					return nil
				}, kates.WithSignals())
				assert.ErrorContains(t, err, "WithSignals: ")
			})
		})
	}
}

func TestSignalsShutALoopDownInTwoStages(t *testing.T) {
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) { // the runtime's signals are outside of every bubble
			fake := katestest.New(t, katestest.WithClientOptions(silent))
			put(t, fake, "a", "1")
			var ended atomic.Bool
			begun, done := make(chan struct{}), make(chan error, 1)
			go func() {
				done <- loop(t.Context(), fake.Client, func(ctx context.Context) error {
					close(begun)
					<-ctx.Done()
					ended.Store(true)
					return ctx.Err()
				}, kates.WithSignals(syscall.SIGUSR1, syscall.SIGUSR2), kates.WithShutdownTimeout(time.Hour))
			}()
			<-begun
			self, err := os.FindProcess(os.Getpid())
			require.NoError(t, err)
			require.NoError(t, self.Signal(syscall.SIGUSR1))
			assert.False(t, ended.Load(), "it may go on")
			require.NoError(t, self.Signal(syscall.SIGUSR2))
			assert.ErrorIs(t, <-done, kates.ErrAborted)
			assert.True(t, ended.Load())
		})
	}
}

func TestTheFirstSignalEndsALoopThatIsIdle(t *testing.T) {
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			fake := katestest.New(t, katestest.WithClientOptions(silent))
			put(t, fake, "a", "1")
			begun, done := make(chan struct{}), make(chan error, 1)
			go func() {
				done <- loop(t.Context(), fake.Client, func(context.Context) error {
					close(begun)
					return nil
				}, kates.WithSignals(syscall.SIGUSR1))
			}()
			<-begun
			self, err := os.FindProcess(os.Getpid())
			require.NoError(t, err)
			require.NoError(t, self.Signal(syscall.SIGUSR1))
			assert.NoError(t, <-done)
		})
	}
}

// TestAPermanentErrorIsNotLostInAShutdown: neither if it ends the loop, nor if it comes after the
// grace period.
func TestAPermanentErrorIsNotLostInAShutdown(t *testing.T) {
	bad := errors.New("bad configuration")
	for name, loop := range loops {
		t.Run(name+", after the grace period", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent))
				put(t, fake, "a", "1")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := loop(ctx, fake.Client, func(ctx context.Context) error {
					cancel()
					<-ctx.Done()
					return kates.Permanent(bad)
				}, kates.WithShutdownTimeout(time.Second))
				assert.ErrorIs(t, err, bad)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent))
		put(t, fake, "a", "1")
		put(t, fake, "b", "1")
		err := kates.RunEach(t.Context(), fake.Client, func(ctx context.Context, key string, _ *maps) error {
			if key == "a" {
				time.Sleep(time.Second) // the other call has begun
				return kates.Permanent(bad)
			}
			<-ctx.Done()
			return ctx.Err()
		}, kates.Query{Name: "ConfigMaps", Key: kates.ByName}, kates.WithWorkers(2), kates.WithShutdownTimeout(time.Second))
		assert.ErrorIs(t, err, bad, "and not that the other call was aborted")
	})
}
