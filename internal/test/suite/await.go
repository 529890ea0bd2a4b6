package suite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

// deadline bounds every wait. Only a failing scenario reaches it.
const deadline = 30 * time.Second

// source is what both kinds of watches share.
type source[S any] interface {
	Changed() <-chan struct{}
	Update(ctx context.Context, snapshot *S) (bool, error)
}

// untyped makes a source from an accumulator. Every Update that changed something leaves its
// deltas behind.
type untyped[S any] struct {
	*kates.Accumulator
	deltas []*kates.Delta
}

func (u *untyped[S]) Update(ctx context.Context, snapshot *S) (bool, error) {
	return u.Accumulator.UpdateWithDeltas(ctx, snapshot, &u.deltas)
}

// accumulate calls client.Watch. The watch ends with the scenario.
func accumulate[S any](e *env, client *kates.Client, queries ...kates.Query) *untyped[S] {
	e.t.Helper()
	accumulator, err := client.Watch(e.ctx, queries...)
	require.NoError(e.t, err)
	return &untyped[S]{Accumulator: accumulator}
}

// watch calls kates.Watch. The watch ends with the scenario.
func watch[S any](e *env, client *kates.Client, queries ...kates.Query) *kates.Snapshots[S] {
	e.t.Helper()
	snapshots, err := kates.Watch[S](e.ctx, client, queries...)
	require.NoError(e.t, err)
	return snapshots
}

// await updates snapshot until wanted returns true.
func await[S any](t testing.TB, from source[S], snapshot *S, what string, wanted func(*S) bool) {
	t.Helper()
	awaitEach(t, from, snapshot, what, func() bool { return wanted(snapshot) })
}

// awaitFirst waits for the first complete snapshot.
func awaitFirst[S any](t testing.TB, from source[S], snapshot *S) {
	t.Helper()
	await(t, from, snapshot, "the first complete snapshot", func(*S) bool { return true })
}

// awaitEach calls seen after every Update that returned true, until seen returns true.
func awaitEach[S any](t testing.TB, from source[S], snapshot *S, what string, seen func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for {
		changed, err := from.Update(ctx, snapshot)
		require.NoError(t, err, "waiting for %s", what)
		if changed && seen() {
			return
		}
		select {
		case <-from.Changed():
		case <-ctx.Done():
			require.FailNow(t, "waiting for "+what, "the last snapshot was %s", clip(fmt.Sprintf("%+v", *snapshot)))
		}
	}
}

// now calls Update when something must have changed already.
func now[S any](t testing.TB, from source[S], snapshot *S) {
	t.Helper()
	changed, err := from.Update(t.Context(), snapshot)
	require.NoError(t, err)
	require.True(t, changed, "the very next Update shows it")
}

// unchanged calls Update when nothing may have changed.
func unchanged[S any](t testing.TB, from source[S], snapshot *S) {
	t.Helper()
	changed, err := from.Update(t.Context(), snapshot)
	require.NoError(t, err)
	require.False(t, changed, "nothing has changed")
}

func clip(text string) string {
	if len(text) > 2000 {
		return text[:2000] + "…"
	}
	return text
}

// filteredSource is an accumulator read with a predicate.
type filteredSource[S any] struct {
	*kates.Accumulator
	passes func(*kates.Unstructured) bool
	deltas *[]*kates.Delta
}

func (f *filteredSource[S]) Update(ctx context.Context, snapshot *S) (bool, error) {
	return f.FilteredUpdate(ctx, snapshot, f.deltas, f.passes)
}

// contextThatIsOver returns a context whose deadline has passed.
func contextThatIsOver(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(parent, time.Unix(0, 0))
}
