package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

var endScenarios = []scenario{
	{"CancellingTheContextOfWatchClosesChangedAndUpdateSaysWhy", cancelled},
	{"CloseEndsOneWatch", closed},
	{"ClosingTheClientEndsItsWatches", clientClosed},
	{"G11AWatchThatFailsLeavesNothingBehind", failedWatch},
	{"AllIteratesAndGoesOnAfterABreak", all},
	{"AllEndsSilentlyWhenItsContextEnds", allCancelled},
	{"G2ASecondReaderIsAnErrorAtOnceAndLaterOnesAreNot", secondReader},
}

// awaitEnd waits until Changed is closed. It ignores signals before that.
func awaitEnd(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	timeout := time.NewTimer(deadline)
	defer timeout.Stop()
	for {
		select {
		case _, open := <-changed:
			if !open {
				return
			}
		case <-timeout.C:
			require.FailNow(t, "Changed was not closed")
		}
	}
}

func cancelled(t *testing.T, e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	accumulator, err := e.client.Watch(ctx, kates.Query{Name: "ConfigMaps", Kind: "cm", Namespace: e.ns})
	require.NoError(t, err)
	var snap struct{ ConfigMaps []*kates.ConfigMap }
	cancel()
	awaitEnd(t, accumulator.Changed())
	for range 2 {
		changed, err := accumulator.Update(e.ctx, &snap)
		require.ErrorIs(t, err, context.Canceled)
		assert.False(t, changed)
		assert.Nil(t, snap.ConfigMaps)
	}
}

func closed(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm"))
	one, two := e.watchInputs(), e.watchInputs()
	var snap, other inputs
	awaitFirst(t, one, &snap)
	awaitFirst(t, two, &other)
	one.Close()
	one.Close()
	awaitEnd(t, one.Changed())
	held := snap
	changed, err := one.Update(e.ctx, &snap)
	require.Error(t, err)
	assert.False(t, changed)
	assert.Equal(t, held, snap, "the struct is untouched on error")
	e.foreignCreate(e.configMap("second"))
	await(t, two, &other, "the other watch", func(s *inputs) bool { return len(s.ConfigMaps) == 2 })
}

func clientClosed(t *testing.T, e *env) {
	client := e.newClient()
	snapshots := watch[inputs](e, client, e.inNamespace("ConfigMaps", "Services", "Secrets")...)
	client.Close()
	client.Close()
	awaitEnd(t, snapshots.Changed())
	_, err := snapshots.Update(e.ctx, &inputs{})
	require.Error(t, err)
	_, err = kates.Watch[inputs](e.ctx, client)
	require.Error(t, err, "a closed client watches nothing")
}

func failedWatch(t *testing.T, e *env) {
	before := e.client.Status()
	for range 20 {
		_, err := e.client.Watch(e.ctx, kates.Query{Name: "ConfigMaps", Kind: "cm"}, kates.Query{Name: "Unknown", Kind: "nosuchkind"})
		require.Error(t, err)
	}
	assert.Equal(t, before, e.client.Status(), "goroutines are counted by the caller's TestMain, streams here")
}

func all(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("a"))
	snapshots := e.watchInputs()
	ctx, cancel := context.WithTimeout(e.ctx, deadline)
	defer cancel()
	var first *inputs
	for snap, err := range snapshots.All(ctx) {
		require.NoError(t, err)
		first = snap
		break
	}
	require.NotNil(t, first)
	assert.Equal(t, []string{"a"}, names(first.ConfigMaps))

	e.foreignCreate(e.configMap("b"))
	rounds := 0
	for snap, err := range snapshots.All(ctx) {
		require.NoError(t, err)
		require.NotSame(t, first, snap, "each snapshot is a fresh struct")
		rounds++
		if len(snap.ConfigMaps) == 2 {
			break
		}
	}
	assert.Positive(t, rounds)
	for snap, err := range snapshots.All(ctx) {
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, names(snap.ConfigMaps), "ranging again goes on with the current snapshot")
		break
	}
	assert.Equal(t, []string{"a"}, names(first.ConfigMaps))

	snapshots.Close()
	for range snapshots.All(ctx) {
		require.Fail(t, "closing ends the loop silently")
	}
}

func allCancelled(t *testing.T, e *env) {
	snapshots := e.watchInputs()
	ctx, cancel := context.WithCancel(e.ctx)
	for _, err := range snapshots.All(ctx) {
		require.NoError(t, err)
		cancel()
	}
	cancel()
	e.foreignCreate(e.configMap("a"))
	var snap inputs
	await(t, snapshots, &snap, "the watch, which goes on", func(s *inputs) bool { return len(s.ConfigMaps) == 1 })
}

// secondReader reads while a loop runs. If both readers got snapshots, the change of the second
// round would go to one of them, and the other would wait for ever.
func secondReader(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("a"))
	snapshots := e.watchInputs()
	looping := make(chan struct{})
	refused := make(chan []error, 1)
	go func() {
		<-looping
		var errs []error
		for snap, err := range snapshots.All(e.ctx) {
			if errs = append(errs, err); snap != nil {
				break
			}
		}
		_, err := snapshots.Update(e.ctx, &inputs{})
		refused <- append(errs, err)
	}()
	for snap, err := range snapshots.All(e.ctx) {
		require.NoError(t, err)
		if len(snap.ConfigMaps) == 2 {
			break
		}
		close(looping)
		errs := <-refused
		require.Len(t, errs, 2)
		require.ErrorIs(t, errs[0], kates.ErrSecondReader)
		require.ErrorIs(t, errs[1], kates.ErrSecondReader)
		require.NoError(t, e.client.Create(e.ctx, e.configMap("b"), nil))
	}
	var snap inputs
	_, err := snapshots.Update(e.ctx, &snap)
	require.NoError(t, err, "after the loop")
	for snap, err := range snapshots.All(e.ctx) {
		require.NoError(t, err)
		require.Len(t, snap.ConfigMaps, 2)
		break
	}
	require.Panics(t, func() {
		for range snapshots.All(e.ctx) {
			panic("a loop that ends so has ended, too")
		}
	})
	_, err = snapshots.Update(e.ctx, &snap)
	require.NoError(t, err)
}
