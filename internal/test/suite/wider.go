package suite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

// parts are what a wider watch can serve.
type parts struct {
	Labelled []*corev1.ConfigMap
	Named    []*corev1.ConfigMap
	Short    []*kates.PartialObjectMetadata `kates:"configmaps"`
	Deltas   []*kates.Delta
}

func partsOfAWatch(t *testing.T, e *env) {
	elsewhere := e.backend.Namespace(t)
	there := e.labelled("there", "part", "yes")
	there.Namespace = elsewhere
	e.foreignCreate(e.labelled("a", "part", "yes"), e.labelled("b"), there)
	client := e.newClient(kates.Tuning{ShareWider: true})
	type all struct{ ConfigMaps []*corev1.ConfigMap }
	wide := watch[all](e, client)
	var everything all
	awaitFirst(t, wide, &everything)

	snapshots := watch[parts](e, client,
		kates.Query{Name: "Labelled", Namespace: e.ns, LabelSelector: "part=yes"},
		kates.Query{Name: "Named", Namespaces: []string{e.ns, elsewhere}, FieldSelector: "metadata.name=b"},
		kates.Query{Name: "Short", Namespace: elsewhere, LabelSelector: "part"})
	var snap parts
	awaitFirst(t, snapshots, &snap)
	for _, q := range snapshots.Status().Queries {
		assert.True(t, strings.HasSuffix(q.Form, "of a wider watch"), "%s: %s", q.Name, q.Form)
	}
	assert.Equal(t, []string{"a"}, names(snap.Labelled))
	assert.Equal(t, []string{"b"}, names(snap.Named))
	require.Len(t, snap.Short, 1)
	assert.Equal(t, "there ConfigMap yes", snap.Short[0].Name+" "+snap.Short[0].Kind+" "+snap.Short[0].Labels["part"])
	short := snap.Short[0]

	// Own writes move objects at once.
	require.NoError(t, client.Update(e.ctx, e.labelled("b", "part", "yes"), nil))
	changed, err := snapshots.Update(e.ctx, &snap)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, []string{"a", "b"}, names(snap.Labelled))
	assert.Same(t, short, snap.Short[0], "it has not changed")
	require.NoError(t, client.Delete(e.ctx, e.labelled("b"), nil))
	_, err = snapshots.Update(e.ctx, &snap)
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, names(snap.Labelled))
	assert.Empty(t, snap.Named)

	// So do those of others.
	e.foreignUpdate(e.labelled("a", "part", "no"))
	await(t, snapshots, &snap, "a leaves", func(s *parts) bool { return len(s.Labelled) == 0 })
	e.foreignUpdate(e.labelled("a", "part", "yes"))
	await(t, snapshots, &snap, "a returns", func(s *parts) bool { return len(s.Labelled) == 1 })
	wide.Close() // the watch goes on for its parts
	e.foreignDelete(there)
	await(t, snapshots, &snap, "the other namespace is empty", func(s *parts) bool { return len(s.Short) == 0 })
}
