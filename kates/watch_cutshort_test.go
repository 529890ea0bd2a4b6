package kates

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/loops/turns"
	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

func TestATurnThatWasCutShortComesAgainAtOnceAsItWasAndHasNotFailed(t *testing.T) {
	type tenant struct {
		ConfigMaps []*ConfigMap
		Deltas     []*Delta
	}
	client, err := NewClientFromDynamic(fake.NewSimpleDynamicClient(scheme.Scheme), kindstest.SchemeMapper(t), WithInterval(0))
	require.NoError(t, err)
	defer client.Close()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}}
	require.NoError(t, client.Create(t.Context(), object, nil))
	tenants, err := WatchEach[tenant](t.Context(), client, Query{Name: "ConfigMaps", Key: ByNamespace})
	require.NoError(t, err)
	next := func(gone bool, kind DeltaType) *Turn[tenant] {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		turn, err := tenants.Next(ctx)
		require.NoError(t, err)
		assert.Equal(t, "a", turn.Key)
		assert.Equal(t, gone, turn.Gone)
		assert.Equal(t, 1, turn.Attempt)
		if assert.Len(t, turn.Snapshot.Deltas, 1) {
			assert.Equal(t, kind, turn.Snapshot.Deltas[0].DeltaType)
		}
		return turn
	}
	for range 3 {
		turns.EachTurn{Turn: next(false, ObjectAdd).turn}.Yield()
	}
	next(false, ObjectAdd).Done(nil)
	require.NoError(t, client.Delete(t.Context(), object, nil))
	for range 3 {
		turns.EachTurn{Turn: next(true, ObjectDelete).turn}.Yield()
	}
	next(true, ObjectDelete).Done(nil)
	assert.Empty(t, tenants.Keys())
}
