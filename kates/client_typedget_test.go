package kates_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

// A server that is newer than the Go type has fields that the type does not know. A program that
// gets an object without them, and sends it back, deletes them.
func TestAWatchOfAGoTypeDoesNotAnswerForFieldsThatItDoesNotKnow(t *testing.T) {
	watched := func(one string) *kates.Client {
		s := &wireServer{objects: []any{versioned("a", "5")}, single: one}
		c := s.client(t)
		w, err := kates.Watch[typedMaps](t.Context(), c)
		require.NoError(t, err)
		var snap typedMaps
		next(t, w, &snap, func() bool { return true })
		require.Equal(t, "typed from json", w.Status().Queries[0].Form)
		return c
	}
	c := watched(`{"apiVersion":"v1","kind":"ConfigMap","new":{"field":"here"},
		"metadata":{"name":"a","namespace":"ns","uid":"uid-a","resourceVersion":"5","managedFields":[{"manager":"m"}]}}`)
	u, err := kates.GetCached[kates.Unstructured](t.Context(), c, "ns", "a", kates.OfKind("cm"))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"field": "here"}, u.Object["new"])
	assert.NotEmpty(t, u.GetManagedFields())
	type mine struct{ New struct{ Field string } }
	own, err := kates.GetCached[mine](t.Context(), c, "ns", "a", kates.OfKind("cm"))
	require.NoError(t, err)
	assert.Equal(t, "here", own.New.Field)

	c = watched("no request")
	cm, err := kates.GetCached[kates.ConfigMap](t.Context(), c, "ns", "a")
	require.NoError(t, err)
	assert.Equal(t, "v", cm.Data["k"])
	short, err := kates.GetCached[kates.PartialObjectMetadata](t.Context(), c, "ns", "a", kates.OfKind("cm"))
	require.NoError(t, err)
	assert.Equal(t, "5", short.ResourceVersion)
}
