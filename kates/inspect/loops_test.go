package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type maps struct{ ConfigMaps []*kates.ConfigMap }

func configMap(name string) kates.Object {
	cm := &kates.ConfigMap{}
	cm.APIVersion, cm.Kind, cm.Namespace, cm.Name = "v1", "ConfigMap", "default", name
	return cm
}

func TestALoopIsReportedWithItsCallsAndFailuresWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(kates.WithLogger(slog.New(slog.DiscardHandler))), katestest.WithObjects(configMap("bad"), configMap("good"), configMap("hangs"), configMap("never")))
		ctx, cancel := context.WithCancel(t.Context())
		ids := make(chan string, 2)
		done := make(chan error)
		go func() {
			done <- kates.RunEach(ctx, fake.Client, func(ctx context.Context, key string, _ *maps) error {
				switch key {
				case "bad":
					ids <- kates.CallIDFromContext(ctx)
					return errors.New("not now")
				case "hangs":
					<-ctx.Done()
				}
				return nil
			}, kates.Query{Name: "ConfigMaps", Key: kates.ByName}, kates.WithWorkers(3), kates.WithBackoff(time.Hour, time.Hour))
		}()
		began := time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		keys := Of(fake.Client).Watches[0].Keys
		assert.Equal(t, Key{Key: "hangs", State: KeyRunning, Since: began}, keys.Some[0])
		assert.Equal(t, Key{Key: "bad", State: KeyResting, Failures: 1, Until: began.Add(time.Hour)}, keys.Some[1])
		all := Of(fake.Client).Loops
		require.Len(t, all, 1)
		l := all[0]
		require.Len(t, l.Running, 1)
		assert.NotEmpty(t, l.Running[0].ID)
		l.Running[0].ID = ""
		assert.Equal(t, &Loop{
			Name: "inspect.maps", Workers: 3, FailingAll: 1,
			Running:  []Call{{Key: "hangs", Since: began, Attempt: 1}},
			Returned: map[kates.CallOutcome]uint64{kates.CallSucceeded: 2, kates.CallFailed: 1},
			Failing:  []Failure{{Key: "bad", Attempt: 1, Error: "not now", At: began, Since: began, ID: <-ids}},
		}, l)
		time.Sleep(time.Hour)
		synctest.Wait()
		failing := loopsOf(fake.Client)[0].Failing[0]
		assert.Equal(t, 2, failing.Attempt)
		assert.Equal(t, began.Add(time.Hour), failing.At)
		assert.Equal(t, began, failing.Since, "the first failure of the row")
		cancel()
		assert.NoError(t, <-done)
		assert.Empty(t, loopsOf(fake.Client))
	})
}

func TestAReportNamesAHundredFailingKeysAndCountsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []kates.Object
		for i := range 150 {
			objects = append(objects, configMap(fmt.Sprintf("x%03d", i)))
		}
		fake := katestest.New(t, katestest.WithObjects(objects...), katestest.WithClientOptions(kates.WithLogger(slog.New(slog.DiscardHandler))))
		ctx, cancel := context.WithCancel(t.Context())
		var fails atomic.Bool
		fails.Store(true)
		done := make(chan error)
		go func() {
			done <- kates.RunEach(ctx, fake.Client, func(context.Context, string, *maps) error {
				if fails.Load() {
					return errors.New("not now")
				}
				return nil
			}, kates.Query{Name: "ConfigMaps", Key: kates.ByName}, kates.WithBackoff(time.Hour, time.Hour))
		}()
		time.Sleep(time.Minute)
		l := loopsOf(fake.Client)[0]
		assert.Equal(t, 150, l.FailingAll)
		require.Len(t, l.Failing, 100)
		assert.Equal(t, "x000", l.Failing[0].Key)
		fails.Store(false)
		time.Sleep(time.Hour)
		l = loopsOf(fake.Client)[0]
		assert.Zero(t, l.FailingAll)
		assert.Equal(t, map[kates.CallOutcome]uint64{kates.CallSucceeded: 150, kates.CallFailed: 150}, l.Returned)
		cancel()
		assert.NoError(t, <-done)
	})
}
