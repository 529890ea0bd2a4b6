package suite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

var deleteAllScenarios = []scenario{
	{"G4WhatDeleteAllDeletedIsNotInTheVeryNextUpdate", deleteAll},
	{"DeleteAllOfBadInputIsAClearError", deleteAllInvalid},
	{"DeleteAllEndsWithItsContext", deleteAllContext},
}

func deleteAll(t *testing.T, e *env) {
	for i := range 30 {
		q := e.quota(fmt.Sprintf("q-%02d", i), "1")
		q.Labels = map[string]string{"third": fmt.Sprint(i % 3), "of": e.ns}
		e.foreignCreate(q)
	}
	snapshots, snap := e.watchQuotas()
	require.Len(t, snap.ResourceQuotas, 30)
	query := kates.Query{Kind: "quota", Namespace: e.ns, LabelSelector: "third=0"}
	require.NoError(t, e.client.DeleteAll(e.ctx, query))
	now(t, snapshots, snap)
	require.Len(t, snap.ResourceQuotas, 20)
	require.Len(t, snap.Deltas, 10)
	require.NoError(t, e.client.DeleteAll(e.ctx, query), "nothing is left to delete")

	query.LabelSelector, query.FieldSelector = "", "metadata.name=q-01"
	require.NoError(t, e.client.DeleteAll(e.ctx, query))
	now(t, snapshots, snap)
	assert.Equal(t, []string{"delete q-01"}, deltaNames(snap.Deltas))
	require.NoError(t, e.client.DeleteAll(e.ctx, kates.Query{Kind: "quota", LabelSelector: "of=" + e.ns}), "of all namespaces")
	now(t, snapshots, snap)
	assert.Empty(t, snap.ResourceQuotas)
	e.awaitOnly(snapshots, snap, "marker")
}

func deleteAllInvalid(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm"))
	in := kates.Query{Kind: "cm", Namespace: e.ns}
	for want, err := range map[string]error{
		"empty":                e.client.DeleteAll(e.ctx, kates.Query{Namespace: e.ns}),
		"nosuchkind":           e.client.DeleteAll(e.ctx, kates.Query{Kind: "nosuchkind"}),
		"label selector":       e.client.DeleteAll(e.ctx, kates.Query{Kind: "cm", LabelSelector: "a in"}),
		"field selector":       e.client.DeleteAll(e.ctx, kates.Query{Kind: "cm", FieldSelector: "a"}),
		"are about one object": e.client.DeleteAll(e.ctx, in, kates.IfUID("x")),
	} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, e.client.DeleteAll(e.ctx, in, kates.IfResourceVersion("1")), "are about one object")
	_, err := e.stored(e.configMap("cm"))
	require.NoError(t, err)
}

func deleteAllContext(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm"))
	over, cancel := contextThatIsOver(e.ctx)
	defer cancel()
	require.ErrorIs(t, e.client.DeleteAll(over, kates.Query{Kind: "cm", Namespace: e.ns}), over.Err())
	_, err := e.stored(e.configMap("cm"))
	require.NoError(t, err)
}
