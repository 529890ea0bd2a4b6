package fleet_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestTheRulesOfAMemberAreWhatIsWatchedThereAndItsIdentity(t *testing.T) {
	client := katestest.NewClient(t)
	type view struct {
		Maps    map[string][]*corev1.ConfigMap
		Pods    []fleet.Object[map[string]any] `kates:"pods"`
		Missing []fleet.Missing
		Deltas  []*fleet.Delta
		Invalid []fleet.Invalid
	}
	roles, err := fleet.Rules(t.Context(), client, "fleet", fleet.Watches[view](kates.Query{Name: "Pods", LabelSelector: "a"}))
	require.NoError(t, err)
	assert.Empty(t, roles.Roles)
	require.Len(t, roles.ClusterRole.Rules, 2)
	assert.Equal(t, []string{"kube-system"}, roles.ClusterRole.Rules[1].ResourceNames)
	assert.Equal(t, []string{"configmaps", "pods"}, roles.ClusterRole.Rules[0].Resources)
	assert.Equal(t, []string{"list", "watch"}, roles.ClusterRole.Rules[0].Verbs)
	writes := kates.Uses(&corev1.ConfigMap{}, kates.CanPatch)
	for verbs, lease := range map[string]kates.Need{
		"patch": kates.Uses(&corev1.ConfigMap{}, kates.CanPatch), "get patch": kates.LeaderElection{}, "patch get": kates.Sharding{},
	} {
		roles, err := fleet.Rules(t.Context(), client, "fleet", writes, lease)
		require.NoError(t, err)
		want := slices.Sorted(slices.Values(strings.Fields(verbs)))
		assert.Equal(t, want, roles.ClusterRole.Rules[0].Verbs, "the Lease is in the home cluster, and what is written may be read")
		assert.Len(t, roles.ClusterRole.Rules, 2)
		assert.Empty(t, roles.Roles)
	}
	for want, need := range map[string]kates.Need{
		"rules: watches of int: a snapshot is a struct": fleet.Watches[int](),
		"does not say which cluster an object is of":    fleet.Watches[struct{ Maps []*corev1.ConfigMap }](),
		`query "Other": `: fleet.Watches[view](kates.Query{Name: "Other"}),
	} {
		_, err := fleet.Rules(t.Context(), client, "fleet", need)
		assert.ErrorContains(t, err, want)
	}
}
