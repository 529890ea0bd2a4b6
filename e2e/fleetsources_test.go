package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/fleet/source"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// homeClient returns a client that sees new kinds soon, and its requests.
func homeClient(t *testing.T, config *rest.Config) (*kates.Client, *katestest.Faults) {
	t.Helper()
	faults := katestest.NewFaults(t, 0)
	config = rest.CopyConfig(config)
	config.Wrap(faults.Wrap)
	c, err := tapped(kates.NewClientFromRESTConfig(config, kates.WithInterval(0), kates.Tuning{KindPoll: 500 * time.Millisecond}))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, faults
}

// ownHosts is where the clusters of these tests are.
var ownHosts = []string{"127.0.0.1", "::1"}

func sourcedFleet(t *testing.T, s fleet.Source) *fleet.Fleet {
	t.Helper()
	f, err := tappedFleet(fleet.New(fleet.Options{Sources: []fleet.Source{s}}))
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// fleetBecomes waits until a fleet is as wanted.
func fleetBecomes(t *testing.T, f *fleet.Fleet, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !is() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s: never\n%s\n%v", what, f.Status(), f.Status().Err())
		}
	}
}

// kubeconfigOf returns a kubeconfig of the test's cluster.
func kubeconfigOf(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	out := clientcmdapi.NewConfig()
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server, cluster.CertificateAuthorityData = config.Host, config.CAData
	user.ClientCertificateData, user.ClientKeyData, user.Token = config.CertData, config.KeyData, config.BearerToken
	out.Clusters["c"], out.AuthInfos["u"] = cluster, user
	out.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	out.CurrentContext = "x"
	text, err := clientcmd.Write(*out)
	require.NoError(t, err)
	return text
}

// clusterSecret returns a Secret as Cluster API writes it.
func clusterSecret(ns, cluster, suffix string, data []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: cluster + suffix, Labels: map[string]string{"cluster.x-k8s.io/cluster-name": cluster}},
		Type:       "cluster.x-k8s.io/secret", Data: map[string][]byte{"value": data},
	}
}

func TestClustersOfClusterAPIComeAndGoWithTheirSecrets(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	home, faults := homeClient(t, testCluster.Config)
	whole := kubeconfigOf(t, testCluster.Config)
	for _, s := range []*corev1.Secret{
		clusterSecret(ns, "a", "-kubeconfig", whole), clusterSecret(ns, "a", "-ca", whole), clusterSecret(ns, "b", "-kubeconfig", whole[:40]),
	} {
		require.NoError(t, home.Create(t.Context(), s, nil))
	}
	f := sourcedFleet(t, source.Secrets(home, source.SecretOptions{Form: source.ClusterAPI, Namespaces: []string{ns}, Hosts: ownHosts}))
	a := ns + "/a"
	fleetBecomes(t, f, "a is up", func() bool { return f.Cluster(a) != nil && f.Cluster(a).Health().Phase == fleet.Up })
	uid, err := home.ClusterUID(t.Context())
	require.NoError(t, err)
	was := f.Cluster(a)
	assert.Equal(t, uid, was.UID())
	assert.Len(t, f.Clusters(), 1)
	assert.ErrorContains(t, f.Status().Err(), "Secret "+ns+"/b-kubeconfig: the kubeconfig ")
	for _, r := range faults.Requests(katestest.Match{Verb: "watch", Resource: "secrets"}) {
		assert.Equal(t, "type=cluster.x-k8s.io/secret", r.Query.Get("fieldSelector"))
		assert.Equal(t, "cluster.x-k8s.io/cluster-name", r.Query.Get("labelSelector"))
	}

	require.NoError(t, home.Update(t.Context(), clusterSecret(ns, "a", "-kubeconfig", whole[:len(whole)/2]), nil))
	fleetBecomes(t, f, "the error is shown", func() bool { return was.Health().Rotation != "" })
	assert.Same(t, was, f.Cluster(a), "a broken configuration takes nothing away")
	require.NoError(t, home.Delete(t.Context(), clusterSecret(ns, "a", "-kubeconfig", nil), nil))
	fleetBecomes(t, f, "a has left", func() bool { return f.Cluster(a) == nil })
}

// installKind makes a kind with one version, in a namespace, and waits until it is served.
func installKind(t *testing.T, group, version, kind, plural string) schema.GroupVersionResource {
	t.Helper()
	gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
	_, err := foreign(t).Resource(definitions).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group, "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"}},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := foreign(t).Resource(gvr).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, patience, 50*time.Millisecond)
	return gvr
}

// createAs creates an object as another program.
func createAs(t *testing.T, gvr schema.GroupVersionResource, kind, ns, name string, fields map[string]any) {
	t.Helper()
	u := kates.NewUnstructured(kind, gvr.GroupVersion().String())
	u.SetNamespace(ns)
	u.SetName(name)
	for field, value := range fields {
		u.Object[field] = value
	}
	_, err := foreign(t).Resource(gvr).Namespace(ns).Create(context.Background(), u, metav1.CreateOptions{})
	require.NoError(t, err)
}

func fluxSpec(secret string) map[string]any {
	return map[string]any{"spec": map[string]any{"kubeConfig": map[string]any{"secretRef": map[string]any{"name": secret}}}}
}

// loginByToken adds a cluster that trusts the service accounts of the home cluster: itself.
func loginByToken(t *testing.T, s *subject, f *fleet.Fleet, ns string, kustomizations schema.GroupVersionResource) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: named(ns, "deployer")}
	_, err := s.admin.CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := s.admin.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "deployer", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := &corev1.ConfigMap{ObjectMeta: named(ns, "trusting"), Data: map[string]string{
		"provider": "generic", "address": testCluster.Config.Host, "ca.crt": string(testCluster.Config.CAData),
		"serviceAccountName": "deployer", "audiences": `["` + strings.Join(token.Spec.Audiences, `","`) + `"]`,
	}}
	_, err = s.admin.CoreV1().ConfigMaps(ns).Create(t.Context(), config, metav1.CreateOptions{})
	require.NoError(t, err)
	s.grant(ns, "configmap", rbacv1.PolicyRule{
		Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"trusting"},
	})
	createAs(t, kustomizations, "Kustomization", ns, "c", map[string]any{"spec": map[string]any{
		"kubeConfig": map[string]any{"configMapRef": map[string]any{"name": "trusting"}},
	}})
	fleetBecomes(t, f, "it gets no token", func() bool {
		c := f.Cluster(ns + "/trusting")
		return c != nil && strings.Contains(c.Health().Error, "get a token of the home cluster")
	})
	_, err = s.admin.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: named(ns, "token"), Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"deployer"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.admin.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: named(ns, "token"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "token"}, Subjects: s.subjects(),
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	fleetBecomes(t, f, "it is up", func() bool { return f.Cluster(ns+"/trusting").Health().Phase == fleet.Up })
	as, err := kubernetes.NewForConfig(f.Cluster(ns + "/trusting").Config())
	require.NoError(t, err)
	who, err := as.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "system:serviceaccount:"+ns+":deployer", who.Status.UserInfo.Username)
}

// The user may read Flux's kinds in one namespace, and one Secret by its name.
func TestFluxNeedsNoRightsButForWhatIsNamed(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	admin, _ := homeClient(t, testCluster.Config)
	for _, name := range []string{"named", "other"} {
		secret := &corev1.Secret{ObjectMeta: named(ns, name), Data: map[string][]byte{"value": kubeconfigOf(t, testCluster.Config)}}
		require.NoError(t, admin.Create(t.Context(), secret, nil))
	}
	s := newSubject(t, ns+"-flux")
	verbs := []string{"list", "watch", "get"}
	s.grant(ns, "secret", rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"named"}})
	config := rest.CopyConfig(testCluster.Config)
	s.is(config)
	home, faults := homeClient(t, config)
	f := sourcedFleet(t, source.Flux(home, source.FluxOptions{
		Namespaces: []string{ns}, Hosts: ownHosts, Providers: map[string]func(source.FluxCluster) (*rest.Config, error){"generic": source.ServiceAccountTokens(home)},
	}))
	require.Eventually(t, func() bool { return f.Ready() == nil }, patience, 20*time.Millisecond, "no kind is installed")
	assert.Empty(t, f.Clusters())

	kustomizations := installKind(t, "kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
	s.grant(ns, "kustomizations", rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{kustomizations.Group}, Resources: []string{"kustomizations"}})
	createAs(t, kustomizations, "Kustomization", ns, "a", fluxSpec("named"))
	fleetBecomes(t, f, "what the Kustomization names is up", func() bool {
		c := f.Cluster(ns + "/named")
		return c != nil && c.Health().Phase == fleet.Up
	})
	releases := installKind(t, "helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
	createAs(t, releases, "HelmRelease", ns, "b", fluxSpec("named"))
	fleetBecomes(t, f, "the status says what it may not read", func() bool {
		err := f.Status().Err()
		return err != nil && strings.Contains(err.Error(), "helmreleases")
	})
	s.grant(ns, "releases", rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{releases.Group}, Resources: []string{"helmreleases"}})
	fleetBecomes(t, f, "all is well", func() bool { return f.Status().Sources[0].Error == "" })
	loginByToken(t, s, f, ns, kustomizations)
	require.NoError(t, foreign(t).Resource(kustomizations).Namespace(ns).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	require.NoError(t, foreign(t).Resource(releases).Namespace(ns).Delete(t.Context(), "b", metav1.DeleteOptions{}))
	fleetBecomes(t, f, "nobody names it any more", func() bool { return f.Cluster(ns+"/named") == nil })
	for _, r := range faults.Requests(katestest.Match{Resource: "secrets"}) {
		assert.Equal(t, "named", r.Name, "another Secret is asked for: %s %s", r.Verb, r.Path)
	}
}

func TestClusterProfilesAreFoundOnceTheirKindIsInstalled(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	home, _ := homeClient(t, testCluster.Config)
	f := sourcedFleet(t, source.ClusterProfiles(home, source.ProfileOptions{Namespaces: []string{ns}, Hosts: ownHosts, Providers: []source.AccessProvider{{
		Name: "test", Exec: clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "no-such-program"},
	}}}))
	require.Eventually(t, func() bool { return f.Ready() == nil }, patience, 20*time.Millisecond, "the kind is not installed")
	assert.Empty(t, f.Clusters())
	profiles := installKind(t, "multicluster.x-k8s.io", "v1alpha1", "ClusterProfile", "clusterprofiles")
	createAs(t, profiles, "ClusterProfile", ns, "a", map[string]any{"status": map[string]any{"accessProviders": []any{
		map[string]any{"name": "test", "cluster": map[string]any{"server": "https://127.0.0.1:1"}},
	}}})
	fleetBecomes(t, f, "it is there", func() bool { return f.Cluster(ns+"/a") != nil })
	require.NoError(t, foreign(t).Resource(profiles).Namespace(ns).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	fleetBecomes(t, f, "it has left", func() bool { return f.Cluster(ns+"/a") == nil })
}
