package kates_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
	"github.com/kates-go/kates/kates/katestest"
)

var rulesKinds = katestest.WithKinds(katestest.Kind{APIVersion: "getambassador.io/v3alpha1", Kind: "Host"})

// shortRules are roles in a few words: NAMESPACE: verbs group/resources names.
func shortRules(roles *kates.Roles) (all []string) {
	add := func(where string, rules []rbacv1.PolicyRule) {
		for _, r := range rules {
			text := fmt.Sprint(where, ": ", r.Verbs, " ", r.APIGroups[0], r.Resources)
			if r.ResourceNames != nil {
				text += fmt.Sprint(" ", r.ResourceNames)
			}
			all = append(all, text)
		}
	}
	if roles.ClusterRole != nil {
		add("*", roles.ClusterRole.Rules)
	}
	for _, r := range roles.Roles {
		add(r.Namespace, r.Rules)
	}
	return all
}

type ruledApp struct {
	Root     *appsv1.Deployment `kates:",root"`
	Services []*corev1.Service  `kates:",owned"`
	Hosts    []map[string]any   `kates:"hosts.getambassador.io,later"`
	Others   []*kates.ConfigMap `kates:"-"`
	Deltas   []*kates.Delta
	Invalid  []kates.Invalid
	Info     controller.Info
}

// forNamesOf names a Secret for each object.
func forNamesOf(cm *corev1.ConfigMap) []types.NamespacedName {
	return []types.NamespacedName{{Namespace: cm.Namespace, Name: cm.Data["secret"]}}
}

func TestRulesHaveWhatEachNeedNeedsAndNoMore(t *testing.T) {
	in := func(namespace, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	clients := map[string]*kates.Client{
		"fake": katestest.New(t, rulesKinds).Client, "server": katestest.NewServer(t, rulesKinds).Client(t),
	}
	lease := kates.LeaderElection{Namespace: "lead", Name: "me"}
	for name, test := range map[string]struct {
		needs []kates.Need
		want  []string
	}{
		"a struct of typed, untyped, metadata and own fields": {
			[]kates.Need{kates.Watches[struct {
				Services []*corev1.Service
				Hosts    []map[string]any `kates:"hosts.getambassador.io"`
				Slim     []struct {
					Spec struct{ NodeName string } `json:"spec"`
				} `kates:"pods"`
				Meta map[string]*kates.PartialObjectMetadata `kates:"deployments.apps,optional"`
				Any  []*kates.Unstructured                   `kates:"ingresses.networking.k8s.io"`
			}]()},
			[]string{
				"*: [list watch] [pods services]", "*: [list watch] apps[deployments]", "*: [list watch] getambassador.io[hosts]",
				"*: [list watch] networking.k8s.io[ingresses]",
			},
		},
		"a namespace is a role, and its object": {
			[]kates.Need{kates.Query{Kind: "svc", Namespace: "a"}},
			[]string{"*: [get] [namespaces] [a]", "a: [list watch] [services]"},
		},
		"namespaces are roles": {
			[]kates.Need{kates.Query{Kind: "svc", Namespaces: []string{"b", "a"}}},
			[]string{"*: [get] [namespaces] [a b]", "a: [list watch] [services]", "b: [list watch] [services]"},
		},
		"no namespaces": {[]kates.Need{kates.Query{Kind: "svc", Namespaces: []string{}}}, nil},
		"namespaces by their labels": {
			[]kates.Need{kates.Query{Kind: "svc", NamespaceSelector: "team=a"}},
			[]string{"*: [list watch] [namespaces services]"},
		},
		"a name": {
			[]kates.Need{kates.Query{Kind: "secrets", FieldSelector: "metadata.name=x"}, kates.Query{Kind: "secrets", FieldSelector: "metadata.name=y"}},
			[]string{"*: [list watch] [secrets] [x y]"},
		},
		"a name is no narrower than all": {
			[]kates.Need{kates.Query{Kind: "secrets", FieldSelector: "metadata.name=x"}, kates.Query{Kind: "secrets", LabelSelector: "a"}},
			[]string{"*: [list watch] [secrets]"},
		},
		"other fields are no names": {
			[]kates.Need{kates.Query{Kind: "pods", FieldSelector: "metadata.name!=x,spec.nodeName=n"}},
			[]string{"*: [list watch] [pods]"},
		},
		"alternatives by place": {
			[]kates.Need{kates.Query{Kind: "cm", AnyOf: []kates.Selection{
				{FieldSelector: "metadata.namespace=a,metadata.name=x"}, {FieldSelector: "metadata.namespace=b"},
			}}},
			[]string{"*: [get] [namespaces] [a b]", "a: [list watch] [configmaps] [x]", "b: [list watch] [configmaps]"},
		},
		"what is named is everywhere": {
			[]kates.Need{kates.Watches[struct {
				ConfigMaps []*corev1.ConfigMap
				Secrets    kates.Lookup[*corev1.Secret]
			}](kates.Query{Name: "ConfigMaps", Namespace: "a"}, kates.Query{Name: "Secrets", Refs: []kates.Ref{kates.RefsOf("ConfigMaps", forNamesOf)}})},
			[]string{"*: [get] [namespaces] [a]", "*: [list watch] [secrets]", "a: [list watch] [configmaps]"},
		},
		"a controller": {
			[]kates.Need{kates.Watches[ruledApp](kates.WithWorkers(2))},
			[]string{"*: [list watch] [services]", "*: [list watch] apps[deployments]", "*: [list watch] getambassador.io[hosts]"},
		},
		"a controller asks for a root that has left what it selects": {
			[]kates.Need{kates.Watches[ruledApp](kates.Query{Name: "Root", LabelSelector: "a", Namespace: "n"}, kates.Query{Name: "Hosts", Namespace: "n"})},
			[]string{
				"*: [get] [namespaces] [n]", "*: [list watch] [services]", "n: [get list watch] apps[deployments]",
				"n: [list watch] getambassador.io[hosts]",
			},
		},
		"a controller without Info does not": {
			[]kates.Need{kates.Watches[struct {
				Root *appsv1.Deployment `kates:",root"`
			}](kates.Query{Name: "Root", LabelSelector: "a"})},
			[]string{"*: [list watch] apps[deployments]"},
		},
		"a leader": {
			[]kates.Need{lease},
			[]string{"lead: [create] coordination.k8s.io[leases]", "lead: [get update] coordination.k8s.io[leases] [me]"},
		},
		"shards, in the namespace of the client": {
			[]kates.Need{kates.Sharding{Name: "group"}},
			[]string{"default: [create delete get list update watch] coordination.k8s.io[leases]"},
		},
		"the options of a run": {
			[]kates.Need{kates.Watches[struct{ Services []*corev1.Service }](lease)},
			[]string{
				"*: [list watch] [services]",
				"lead: [create] coordination.k8s.io[leases]", "lead: [get update] coordination.k8s.io[leases] [me]",
			},
		},
		"writes under a lease read": {
			[]kates.Need{
				lease, kates.Uses(in("", ""), kates.CanCreate), kates.Uses(&corev1.Secret{}, kates.CanApply),
				kates.Uses(&corev1.Pod{}, kates.CanCreate.Of("eviction")), kates.Uses(&appsv1.Deployment{}, kates.CanUpdateStatus),
			},
			[]string{
				"*: [create] [configmaps pods/eviction]", "*: [get] [pods]", "*: [create get patch] [secrets]",
				"*: [get] apps[deployments]", "*: [update] apps[deployments/status]",
				"lead: [create] coordination.k8s.io[leases]", "lead: [get update] coordination.k8s.io[leases] [me]",
			},
		},
		"one object": {
			[]kates.Need{kates.Uses(in("a", "x"), kates.CanUpsert, kates.CanDeleteAll)},
			[]string{"a: [create list] [configmaps]", "a: [delete get update] [configmaps] [x]"},
		},
		"an apply of one object creates that": {
			[]kates.Need{kates.Uses(in("a", "x"), kates.CanApply)},
			[]string{"a: [create patch] [configmaps] [x]"},
		},
		"a kind in words": {
			[]kates.Need{kates.Uses("host", kates.CanModifyStatus, kates.CanOwn)},
			[]string{
				"*: [get] getambassador.io[hosts]", "*: [update] getambassador.io[hosts/finalizers]", "*: [patch] getambassador.io[hosts/status]",
			},
		},
		"a kind without a namespace, untyped": {
			[]kates.Need{kates.Uses(kates.NewUnstructured("Node", "v1"), kates.CanPatch)}, []string{"*: [patch] [nodes]"},
		},
		"subresources and logs": {
			[]kates.Need{kates.Uses(&corev1.Pod{}, kates.CanReadLogs), kates.Uses("deployments", kates.CanGet.Of("scale"), kates.CanPatch.Of("scale"))},
			[]string{"*: [get] [pods pods/log]", "*: [get patch] apps[deployments/scale]"},
		},
		"events": {
			[]kates.Need{events.Uses("b", "a")},
			[]string{"a: [create patch] events.k8s.io[events]", "b: [create patch] events.k8s.io[events]"},
		},
		"events anywhere": {[]kates.Need{events.Uses()}, []string{"*: [create patch] events.k8s.io[events]"}},
	} {
		t.Run(name, func(t *testing.T) {
			for form, client := range clients {
				roles, err := kates.Rules(t.Context(), client, "me", test.needs...)
				require.NoError(t, err, form)
				assert.Equal(t, test.want, shortRules(roles), form)
				again, err := kates.Rules(t.Context(), client, "me", append(test.needs, test.needs...)...)
				require.NoError(t, err, form)
				assert.Equal(t, roles.String(), again.String(), form)
			}
		})
	}
}

func TestEachAbilityHasTheVerbsOfItsMethod(t *testing.T) {
	client := katestest.NewClient(t)
	for ability, want := range map[kates.Ability][]string{
		kates.CanGet:          {"*: [get] apps[deployments]"},
		kates.CanList:         {"*: [list] apps[deployments]"},
		kates.CanCreate:       {"*: [create] apps[deployments]"},
		kates.CanUpdate:       {"*: [update] apps[deployments]"},
		kates.CanUpdateStatus: {"*: [update] apps[deployments/status]"},
		kates.CanPatch:        {"*: [patch] apps[deployments]"},
		kates.CanApply:        {"*: [create patch] apps[deployments]"},
		kates.CanUpsert:       {"*: [create get update] apps[deployments]"},
		kates.CanModify:       {"*: [get patch] apps[deployments]"},
		kates.CanModifyStatus: {"*: [get] apps[deployments]", "*: [patch] apps[deployments/status]"},
		kates.CanDelete:       {"*: [delete] apps[deployments]"},
		kates.CanDeleteAll:    {"*: [delete get list] apps[deployments]"},
		kates.CanApplyOwned:   {"*: [create delete get list patch] apps[deployments]"},
		kates.CanOwn:          {"*: [update] apps[deployments/finalizers]"},

		kates.CanUpdate.Of("scale"): {"*: [update] apps[deployments/scale]"},
	} {
		roles, err := kates.Rules(t.Context(), client, "me", kates.Uses(&appsv1.Deployment{}, ability))
		require.NoError(t, err, ability)
		assert.Equal(t, want, shortRules(roles), ability)
	}
}

func TestRulesSayWhatIsWrongWithANeed(t *testing.T) {
	client, ctx := katestest.New(t, rulesKinds).Client, t.Context()
	for want, needs := range map[string][]kates.Need{
		"rules: the program needs nothing: no need was given": nil,
		"rules: need 1 is nil":                                {kates.Query{Kind: "svc"}, nil},
		`rules: query "" of "nosuch":`:                        {kates.Query{Kind: "nosuch"}},
		"leave the namespace out":                             {kates.Query{Kind: "nodes", Namespace: "a"}},
		`rules: uses of "nosuch":`:                            {kates.Uses("nosuch", kates.CanGet)},
		"rules: uses of a <nil>:":                             {kates.Uses(nil, kates.CanGet)},
		"rules: uses of a *v1.Pod:":                           {kates.Uses((*corev1.Pod)(nil), kates.CanGet)},
		"no ability was given":                                {kates.Uses(&corev1.Pod{})},
		`there is no ability "fly": there are apply, `:        {kates.Uses(&corev1.Pod{}, "fly")},
		"there is no method to apply a subresource (scale)":   {kates.Uses(&corev1.Pod{}, kates.CanApply.Of("scale"))},
		"a subresource without a name":                        {kates.Uses(&corev1.Pod{}, kates.CanGet.Of(""))},
		"services have no logs":                               {kates.Uses(&corev1.Service{}, kates.CanReadLogs)},
		"nodes are in no namespace, so leave the namespace":   {kates.Uses(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}, kates.CanGet)},
		"a struct {}":                                         {kates.Uses(struct{}{}, kates.CanGet)},
		"rules: watches of int: a snapshot is a struct":       {kates.Watches[int]()},
		"unknown option \"soon\" in the tag": {kates.Watches[struct {
			A []*corev1.Pod `kates:",soon"`
		}]()},
		"field A: it has type []int":         {kates.Watches[struct{ A []int }]()},
		"has no exported field of that name": {kates.Watches[struct{ A []*corev1.Pod }](kates.Query{Name: "B"})},
		"its query comes later": {kates.Watches[struct {
			A []*corev1.Pod
			B []map[string]any `kates:",later"`
		}]()},
		"an option is nil":                                 {kates.Watches[struct{ A []*corev1.Pod }](nil)},
		"the number of workers is 0":                       {kates.Watches[struct{ A []*corev1.Pod }](kates.WithWorkers(0))},
		"rules: a LeaderElection: a lease: it has no Name": {kates.LeaderElection{Namespace: "a"}},
		"rules: a Sharding: sharding by \"luck\"":          {kates.Sharding{Name: "a", By: "luck"}},
	} {
		_, err := kates.Rules(ctx, client, "me", needs...)
		assert.ErrorContains(t, err, want)
	}
	_, err := kates.Rules(ctx, nil, "me", kates.Query{Kind: "svc"})
	assert.EqualError(t, err, "rules: the client is nil")
	for name, want := range map[string]string{"": "rules: the roles have no name", "a/b": `rules: invalid name of a role "a/b"`} {
		_, err = kates.Rules(ctx, client, name, kates.Query{Kind: "svc"})
		assert.ErrorContains(t, err, want)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = kates.Rules(ended, client, "me", kates.Query{Kind: "svc"})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestRolesAreYAMLThatAPIServersTake(t *testing.T) {
	server := katestest.NewServer(t)
	roles, err := kates.Rules(t.Context(), server.Client(t), "me", kates.Query{Kind: "svc", Namespace: "default"})
	require.NoError(t, err)
	all, err := kates.ParseManifestsToUnstructured(roles.String())
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, o := range all {
		require.NoError(t, server.Client(t).Apply(t.Context(), o, nil, kates.FieldManager("kubectl")))
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "me"}}
	require.NoError(t, server.Client(t).Get(t.Context(), role, role))
	assert.Equal(t, roles.Roles[0].Rules, role.Rules)
	only := &kates.Roles{Roles: roles.Roles}
	decoded := &rbacv1.Role{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(only.String()), decoded))
	assert.Equal(t, roles.Roles[0], decoded)
	assert.Empty(t, (&kates.Roles{}).String())
}

func TestRulesOfAClientWithAWarmStartReadTheNamespaceThatTellsTheCluster(t *testing.T) {
	server := katestest.NewServer(t)
	client, err := kates.NewClientFromRESTConfig(server.Config, kates.WithWarmStart(kates.WarmStartDir(t.TempDir())))
	require.NoError(t, err)
	defer client.Close()
	roles, err := kates.Rules(t.Context(), client, "me", kates.Query{Kind: "svc"})
	require.NoError(t, err)
	assert.Equal(t, []string{"*: [get] [namespaces] [kube-system]", "*: [list watch] [services]"}, shortRules(roles))
}
