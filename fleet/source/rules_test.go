package source_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/fleet/source"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type foreignSource struct{}

func (foreignSource) String() string                                  { return "foreign" }
func (foreignSource) Run(context.Context, func([]fleet.Member)) error { return nil }

// sayingSource is a source of another package that says what it needs.
type sayingSource struct{ foreignSource }

func (sayingSource) Needs() []kates.Need { return []kates.Need{kates.Query{Kind: "cm"}} }

func TestTheNeedsOfSourcesAreTheirWatchesInTheHomeCluster(t *testing.T) {
	home := katestest.New(t, katestest.WithKinds(
		katestest.Kind{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization"},
		katestest.Kind{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease"},
		katestest.Kind{APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ClusterProfile"},
	)).Client
	rules := func(all ...fleet.Source) (string, error) {
		roles, err := kates.Rules(t.Context(), home, "fleet", source.Watches(all...))
		if err != nil {
			return "", err
		}
		return roles.String(), nil
	}
	for want, s := range map[string]fleet.Source{
		"  - secrets\n  verbs:\n  - list\n  - watch\n":                                     source.Secrets(home, source.SecretOptions{}),
		"  namespace: argocd\nrules:\n- apiGroups:\n  - \"\"\n  resources:\n  - secrets\n": source.Secrets(home, source.SecretOptions{Form: source.ArgoCD}),
		"  - configmaps\n  - secrets\n  verbs:\n  - list\n  - watch\n":                     source.Flux(home, source.FluxOptions{}),
		"  - kustomizations\n  verbs:\n  - list\n  - watch\n":                              source.Flux(home, source.FluxOptions{}),
		"  - clusterprofiles\n  verbs:\n  - list\n  - watch\n":                             source.ClusterProfiles(home, source.ProfileOptions{}),
		"  - configmaps\n  verbs:\n  - list\n  - watch\n":                                  sayingSource{},
	} {
		got, err := rules(s)
		require.NoError(t, err)
		assert.Contains(t, got, want)
	}
	got, err := rules(source.Directory(t.TempDir()), source.Contexts("nowhere"))
	require.NoError(t, err)
	assert.Empty(t, got)
	for want, s := range map[string]fleet.Source{
		"source Secrets: ": source.Secrets(nil, source.SecretOptions{}),
		"source foreign: it does not say what it needs": foreignSource{},
	} {
		_, err := rules(s)
		assert.ErrorContains(t, err, want)
	}
	_, err = rules(source.Flux(katestest.NewClient(t), source.FluxOptions{}))
	require.NoError(t, err, "what is served is the client's that Rules is given")
	_, err = kates.Rules(t.Context(), katestest.NewClient(t), "fleet", source.Watches(source.Flux(home, source.FluxOptions{})))
	assert.ErrorContains(t, err, `query "Kustomizations"`)
}
