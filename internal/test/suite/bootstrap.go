package suite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

var bootstrapScenarios = []scenario{
	{"G1TheFirstSnapshotIsCompleteEmptyKindsIncluded", firstSnapshotIsComplete},
	{"G1NothingIsShownWhileOneKindIsMissing", nothingBeforeAllKinds},
	{"G1AnEmptyAPIIsACompleteSnapshotToo", emptyAPI},
	{"G2UpdateShowsWhateverWasDelivered", slowReader},
	{"G8AKindThatFailsAfterTheFirstSnapshotEmptiesNothing", failureAfterBootstrap},
}

// inputs is a snapshot of three kinds. One of them stays empty in most scenarios.
type inputs struct {
	ConfigMaps []*corev1.ConfigMap
	Services   []*corev1.Service
	Secrets    []*corev1.Secret
}

// inNamespace limits the queries of fields to the scenario's namespace.
func (e *env) inNamespace(fields ...string) []kates.Query {
	var queries []kates.Query
	for _, field := range fields {
		queries = append(queries, kates.Query{Name: field, Namespace: e.ns})
	}
	return queries
}

func (e *env) watchInputs() *kates.Snapshots[inputs] {
	e.t.Helper()
	return watch[inputs](e, e.client, e.inNamespace("ConfigMaps", "Services", "Secrets")...)
}

func firstSnapshotIsComplete(t *testing.T, e *env) {
	for i := range 20 {
		e.foreignCreate(e.configMap(fmt.Sprintf("cm-%02d", i)))
	}
	e.foreignCreate(e.service("web"), e.service("db"))
	snapshots := e.watchInputs()
	marker := []*corev1.Secret{{}}
	for {
		snap := inputs{Secrets: marker}
		changed, err := snapshots.Update(t.Context(), &snap)
		require.NoError(t, err)
		if !changed {
			require.Equal(t, inputs{Secrets: marker}, snap, "an incomplete snapshot leaves the struct untouched")
			<-snapshots.Changed()
			continue
		}
		assert.Len(t, snap.ConfigMaps, 20)
		assert.Equal(t, []string{"db", "web"}, names(snap.Services))
		assert.Empty(t, snap.Secrets)
		assert.NotNil(t, snap.Secrets, "an available kind without objects is empty, not nil")
		require.NoError(t, snapshots.Ready())
		return
	}
}

func nothingBeforeAllKinds(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm"), e.service("web"))
	heal := e.backend.FailReads(t, "secrets")
	snapshots := e.watchInputs()
	// Another watch of the other kinds proves that their lists have arrived, so that only the
	// secrets are missing.
	type others struct {
		ConfigMaps []*corev1.ConfigMap
		Services   []*corev1.Service
	}
	awaitFirst(t, watch[others](e, e.client, e.inNamespace("ConfigMaps", "Services")...), &others{})

	before := inputs{Services: []*corev1.Service{{}}}
	unchanged(t, snapshots, &before)
	assert.Equal(t, inputs{Services: []*corev1.Service{{}}}, before)
	require.Error(t, snapshots.Ready())

	heal()
	var snap inputs
	awaitFirst(t, snapshots, &snap)
	assert.Len(t, snap.ConfigMaps, 1)
	assert.Len(t, snap.Services, 1)
	require.NoError(t, snapshots.Ready())
}

func emptyAPI(t *testing.T, e *env) {
	snapshots := e.watchInputs()
	var snap inputs
	awaitFirst(t, snapshots, &snap)
	assert.Equal(t, inputs{ConfigMaps: []*corev1.ConfigMap{}, Services: []*corev1.Service{}, Secrets: []*corev1.Secret{}}, snap)
	unchanged(t, snapshots, &snap)
}

// slowReader reads once before and once after many changes. In between it waits for another
// reader.
func slowReader(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm", "n", "0"))
	slow, other := e.watchInputs(), e.watchInputs()
	var snap, seen inputs
	awaitFirst(t, slow, &snap)
	for n := range 50 {
		e.foreignUpdate(e.configMap("cm", "n", fmt.Sprint(n+1)))
	}
	e.foreignCreate(e.service("last"))
	await(t, other, &seen, "the last change", func(s *inputs) bool {
		return len(s.Services) == 1 && len(s.ConfigMaps) == 1 && s.ConfigMaps[0].Data["n"] == "50"
	})
	now(t, slow, &snap)
	assert.Equal(t, seen, snap)
}

func failureAfterBootstrap(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm"), e.service("web"))
	snapshots := e.watchInputs()
	var snap inputs
	awaitFirst(t, snapshots, &snap)
	heal := e.backend.FailReads(t, "services")
	e.foreignCreate(e.configMap("second"))
	await(t, snapshots, &snap, "the other kinds' changes", func(s *inputs) bool { return len(s.ConfigMaps) == 2 })
	assert.Equal(t, []string{"web"}, names(snap.Services))
	require.NoError(t, snapshots.Ready(), "what was complete once stays ready")
	heal()
	e.foreignCreate(e.service("zeta"))
	await(t, snapshots, &snap, "the kind that failed", func(s *inputs) bool { return len(s.Services) == 2 })
}
