package controller_test

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// signalled runs a controller until it reconciles, sends signals to this process, and returns the
// result of Run. (The runtime's signals are outside of every bubble.)
func signalled(t *testing.T, reconcile func(context.Context, *app) (controller.Result, error), signals ...os.Signal) error {
	t.Helper()
	w := &world{t, katestest.New(t, katestest.WithClientOptions(silent))}
	w.root("a", "u1", "1")
	begun := make(chan struct{})
	c, err := controller.New(w.Client, "test", func(ctx context.Context, a *app) (controller.Result, error) {
		close(begun)
		return reconcile(ctx, a)
	}, bySecret, kates.WithSignals(syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM), kates.WithShutdownTimeout(hour))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context()) }()
	<-begun
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	for _, s := range signals {
		require.NoError(t, self.Signal(s))
	}
	return <-done
}

func TestTheFirstSignalShutsDown(t *testing.T) {
	ended := make(chan struct{})
	err := signalled(t, func(ctx context.Context, _ *app) (controller.Result, error) {
		defer close(ended)
		return controller.Done, ctx.Err()
	}, syscall.SIGUSR1)
	assert.NoError(t, err)
	<-ended
}

func TestTheSecondSignalAborts(t *testing.T) {
	var cause error
	err := signalled(t, func(ctx context.Context, _ *app) (controller.Result, error) {
		<-ctx.Done()
		cause = context.Cause(ctx)
		return controller.Done, ctx.Err()
	}, syscall.SIGUSR1, syscall.SIGUSR2)
	assert.ErrorIs(t, err, kates.ErrAborted)
	assert.EqualError(t, err, `controller "test": calls under way have been aborted by a second signal`)
	assert.ErrorIs(t, cause, kates.ErrAborted)
}

func TestTheThirdSignalHasItsOwnEffect(t *testing.T) {
	const inChild = "KATES_TEST_THIRD_SIGNAL"
	if os.Getenv(inChild) != "" {
		_ = signalled(t, func(ctx context.Context, _ *app) (controller.Result, error) {
			<-ctx.Done()
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			<-after(10 * second) // ignores its context
			return controller.Done, nil
		}, syscall.SIGUSR1, syscall.SIGUSR2)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), inChild+"=1")
	err := child.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, syscall.SIGTERM, exit.Sys().(syscall.WaitStatus).Signal())
}
