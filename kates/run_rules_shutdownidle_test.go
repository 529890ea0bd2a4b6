package kates_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestALoopThatIsIdleWhenItIsToEndHasCutNothingShort ends loops between two calls.
func TestALoopThatIsIdleWhenItIsToEndHasCutNothingShort(t *testing.T) {
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			for range 20 { // either goroutine may be the first to see the end
				synctest.Test(t, func(t *testing.T) {
					fake := katestest.New(t, katestest.WithClientOptions(silent))
					put(t, fake, "a", "1")
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan error, 1)
					go func() {
						done <- loop(ctx, fake.Client, func(context.Context) error { return nil }, kates.WithShutdownTimeout(0))
					}()
					time.Sleep(time.Minute)
					synctest.Wait()
					cancel()
					assert.NoError(t, <-done)
				})
			}
		})
	}
}
