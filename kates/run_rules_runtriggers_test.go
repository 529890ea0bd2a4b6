package kates_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
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

func TestWithTriggersCallsTheFunctionAgainWithTheCurrentSnapshotThoughNothingHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithObjects(configMap("x", "a", "1")))
		c := newCalls()
		ticker := time.NewTicker(time.Minute)
		defer ticker.Stop()
		other := make(chan string)
		r := run(t, fake.Client, c.call, kates.WithTriggers(ticker.C), kates.WithTriggers(other))
		r.runs()
		assert.Len(t, c.seen(), 1)
		<-time.After(time.Minute + time.Second)
		r.runs()
		assert.Len(t, c.seen(), 2)
		other <- "go"
		r.runs()
		assert.Equal(t, []string{"x1 ", "x1 ", "x1 "}, c.seen())
		r.stop()
	})
}

func TestWithTriggersDropsAClosedChannelWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t)
		c := newCalls()
		other, another := make(chan int), make(chan int)
		r := run(t, fake.Client, c.call, kates.WithTriggers(other), kates.WithTriggers(another))
		r.runs()
		close(other)
		<-time.After(time.Hour)
		r.runs() // a loop that spins never waits
		assert.Len(t, c.seen(), 1)
		another <- 1
		r.runs()
		assert.Len(t, c.seen(), 2)
		r.stop()
	})
}

func TestNoSenderWaitsForTheFunctionAndValuesMeanwhileAreOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t)
		other, proceed, n := make(chan int), make(chan struct{}), 0
		r := run(t, fake.Client, func(context.Context, *maps) error { n++; <-proceed; return nil }, kates.WithTriggers(other))
		r.runs()
		for i := range 100 {
			other <- i
		}
		r.runs()
		assert.Equal(t, 1, n)
		proceed <- struct{}{}
		r.runs()
		assert.Equal(t, 2, n)
		proceed <- struct{}{}
		<-time.After(time.Minute)
		r.runs()
		assert.Equal(t, 2, n)
		r.stop()
	})
}

func TestTheFunctionOfARunIsNeverCalledTwiceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
		other, n, inside := make(chan int), atomic.Int32{}, atomic.Int32{}
		r := run(t, fake.Client, func(context.Context, *maps) error {
			assert.Equal(t, int32(1), inside.Add(1))
			defer inside.Add(-1)
			<-time.After(7 * time.Millisecond)
			if n.Add(1)%3 == 0 {
				return errOops
			}
			return nil
		}, kates.WithTriggers(other), kates.WithBackoff(time.Millisecond, time.Millisecond))
		for i := range 100 {
			put(t, fake, "x", string(rune('a'+i%2)))
			other <- i
			<-time.After(2 * time.Millisecond)
		}
		r.runs()
		assert.Greater(t, int(n.Load()), 20)
		r.stop()
	})
}

func TestErrorsOfTheFunctionAreLoggedOnceAndToldOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		fake := katestest.New(t, katestest.WithClientOptions(kates.WithLogger(slog.New(slog.NewTextHandler(out, nil)))))
		other := make(chan int)
		answers, n := []error{errOops, errOops, errOops, nil, errOops, nil}, 0
		var told []int
		r := run(t, fake.Client, func(context.Context, *maps) error {
			if n++; n > len(answers) {
				panic("at the end")
			}
			return answers[n-1]
		}, kates.WithTriggers(other), kates.WithOnError(func(err error, attempt int) {
			told = append(told, attempt)
			panic("in the callback")
		}), kates.WithOnError(func(err error, attempt int) { assert.Error(t, err); assert.Equal(t, told[len(told)-1], attempt) }))
		<-time.After(time.Second)
		r.runs()
		assert.Equal(t, 1, out.count("the function has failed"))
		assert.Equal(t, 1, out.count("will keep trying"))
		assert.Equal(t, 1, out.count("attempt=1"))
		assert.Equal(t, 1, out.count("the function has succeeded again"))
		assert.Equal(t, 1, out.count("attempts=4"), "with how many it took")
		assert.Equal(t, 5, out.count("run=kates_test.maps"), "of that run, and three panics of the callback")
		other <- 1
		<-time.After(time.Second)
		r.runs()
		assert.Equal(t, 2, out.count("will keep trying"), "the next one is another")
		other <- 1
		<-time.After(time.Hour)
		r.runs()
		assert.Equal(t, 3, out.count("will keep trying"))
		assert.Equal(t, 1, out.count("the function has panicked"))
		assert.Equal(t, []int{1, 2, 3, 1, 1, 2}, told[:6])
		assert.Greater(t, len(told), 50)
		r.stop()
	})
}

func TestReadySaysWhetherTheSnapshotIsCompleteWhateverTheFunctionMakesOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, pods := unreliable(t, silent)
		pods.set(podsOutages[0])
		r := run(t, fake.Client, func(context.Context, *podsAndServices) error { return errOops })
		r.runs()
		assert.ErrorContains(t, fake.Client.Ready(), "broken")
		pods.set(nil)
		<-time.After(time.Minute)
		assert.NoError(t, fake.Client.Ready())
		assert.NoError(t, fake.Client.Status().Err())
		assert.Len(t, fake.Client.Status().Queries, 2)
		r.stop()
	})
}

type mapsAndDeltas struct {
	ConfigMaps []*kates.ConfigMap
	Secrets    []*kates.Secret
	Deltas     []*kates.Delta
}

func TestG7ATryAgainHasTheDeltasOfTheTryBeforeToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)), katestest.WithObjects(configMap("a"), configMap("b")))
		var fails atomic.Bool
		fails.Store(true)
		other := make(chan int)
		var deltas []string
		r := run(t, fake.Client, func(_ context.Context, s *mapsAndDeltas) error {
			fail := fails.Load()
			deltas = nil
			for _, d := range s.Deltas {
				deltas = append(deltas, d.DeltaType.String()+" "+d.Name)
				d.DeltaType = 17 // they belong to the function
			}
			if fail {
				return errOops
			}
			return nil
		}, kates.WithTriggers(other))
		r.runs()
		assert.Equal(t, []string{"add a", "add b"}, deltas)
		put(t, fake, "a", "1")
		require.NoError(t, fake.Client.Delete(t.Context(), configMap("b"), nil))
		put(t, fake, "c", "1")
		<-time.After(time.Minute)
		r.runs()
		assert.Equal(t, []string{"add a", "add c"}, deltas)
		fails.Store(false)
		<-time.After(2 * time.Minute)
		r.runs()
		assert.Equal(t, []string{"add a", "add c"}, deltas)
		fails.Store(true)
		put(t, fake, "a", "2")
		r.runs()
		assert.Equal(t, []string{"update a"}, deltas)
		fails.Store(false)
		require.NoError(t, fake.Client.Delete(t.Context(), configMap("a"), nil))
		require.NoError(t, fake.Client.Create(t.Context(), &kates.Secret{ObjectMeta: configMap("a").ObjectMeta}, nil))
		<-time.After(time.Minute)
		r.runs()
		assert.Equal(t, []string{"delete a", "add a"}, deltas, "of another kind")
		other <- 1
		r.runs()
		assert.Empty(t, deltas)
		r.stop()
	})
}

// TestRunInstallsNoSignalHandler: SIGTERM ends the program, as it does without a Run.
func TestRunInstallsNoSignalHandler(t *testing.T) {
	const variable = "KATES_TEST_RUN_AND_WAIT"
	if os.Getenv(variable) != "" {
		fake := katestest.New(t)
		_ = kates.Run(t.Context(), fake.Client, func(context.Context, *maps) error {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Signal(syscall.SIGTERM)
			}
			return err
		})
		return
	}
	executable, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, executable, "-test.run=^TestRunInstallsNoSignalHandler$")
	child.Env = append(os.Environ(), variable+"=1")
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "%v %s", err, output)
	assert.Equal(t, "signal: terminated", exit.String(), "%s", output)
}
