package cluster

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// crds is the folder of the repository's custom kinds.
const crds = "../../testdata/crds"

var shared *Cluster

func TestMain(m *testing.M) {
	os.Exit(runWithCluster(m))
}

func runWithCluster(m *testing.M) int {
	var err error
	if shared, err = Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	// Check for goroutines only now: while the cluster runs, envtest keeps the connections of its
	// health checks.
	if err = shared.Stop(); err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func TestTheServerReportsTheVersionItWasBuiltFrom(t *testing.T) {
	v, err := clientset(t, shared.Config).Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "v1.36.3", v.GitVersion)
	require.Equal(t, shared.Version, v.GitVersion)
	require.Equal(t, "1.36", v.Major+"."+v.Minor)
}

func TestInstalledCustomKindsAreServed(t *testing.T) {
	require.NoError(t, shared.InstallCRDs(crds))
	require.NoError(t, shared.InstallCRDs(crds), "a second time updates")
	client, err := dynamic.NewForConfig(shared.Config)
	require.NoError(t, err)

	hosts := client.Resource(schema.GroupVersionResource{
		Group: "getambassador.io", Version: "v3alpha1", Resource: "hosts",
	}).Namespace(metav1.NamespaceDefault)
	for _, name := range []string{"a.example.com", "b.example.com"} {
		_, err := hosts.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "getambassador.io/v3alpha1",
			"kind":       "Host",
			"metadata":   map[string]any{"name": name},
			"spec":       map[string]any{"hostname": name, "extra": []any{"any", int64(1)}},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	list, err := hosts.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.hostname=b.example.com"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "b.example.com", list.Items[0].GetName())

	tenants := client.Resource(schema.GroupVersionResource{
		Group: "example.kates.io", Version: "v1", Resource: "tenants",
	})
	_, err = tenants.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}

func TestAPathWithoutCRDsIsAnError(t *testing.T) {
	require.ErrorContains(t, shared.InstallCRDs("no/such/folder"), "install custom resources")
}

func TestAUserMayDoNothingUntilARoleSaysSo(t *testing.T) {
	config, err := shared.AddUser("jane", "readers")
	require.NoError(t, err)
	jane := clientset(t, config)
	_, err = jane.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "jane")

	admin := clientset(t, shared.Config)
	_, err = admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "read-configmaps"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "read-configmaps"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := jane.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, startTimeout, 20*time.Millisecond)
	_, err = jane.CoreV1().Secrets(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestTheAdminKubeconfigHasAllRights(t *testing.T) {
	content, err := shared.AdminKubeconfig()
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	require.NoError(t, err)
	_, err = clientset(t, config).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "made-by-kubeconfig-"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestAdminRequestsAreNotRateLimitedByTheClient(t *testing.T) {
	require.Negative(t, shared.Config.QPS)
}
