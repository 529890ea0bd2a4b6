package workload

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestObjectsAreAFunctionOfTheirNumber(t *testing.T) {
	assert.Equal(t, Pod(17), Pod(17))
	assert.Equal(t, Service(3), Service(3))
	assert.Equal(t, ConfigMap(3), ConfigMap(3))
	names := map[string]bool{}
	for i := range 500 {
		names[Key(i)] = true
		names[Namespace(i)+"/"+Service(i).Name] = true
		names[Namespace(i)+"/"+ConfigMap(i).Name] = true
		assert.Equal(t, Key(i), Pod(i).Namespace+"/"+Pod(i).Name)
	}
	assert.Len(t, names, 1500, "no two kinds share a name")
	assert.Len(t, string(UID(1_000_000)), 36)
	assert.Len(t, podStatus(5).Conditions, 5)
}

func TestSpreadGoesAroundAndTheLastMarkCounts(t *testing.T) {
	l := &Load{pods: 3}
	changes := l.Spread("x", 2, 4)
	assert.Equal(t, []Change{{2, "x-0"}, {0, "x-1"}, {1, "x-2"}, {2, "x-3"}}, changes)
	assert.Equal(t, map[string]string{Key(0): "x-1", Key(1): "x-2", Key(2): "x-3"}, MarksOf(changes))
}

func TestParallelDoesAllOrReturnsTheFirstError(t *testing.T) {
	var calls atomic.Int64
	require.NoError(t, parallel(t.Context(), 1000, func(context.Context, int) error { calls.Add(1); return nil }))
	assert.EqualValues(t, 1000, calls.Load())
	broken := errors.New("broken")
	require.ErrorIs(t, parallel(t.Context(), 1000, func(_ context.Context, i int) error {
		if i == 5 {
			return broken
		}
		return nil
	}), broken)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, parallel(ended, 10, func(context.Context, int) error { return nil }), context.Canceled)
	require.NoError(t, parallel(t.Context(), 0, nil))
}
