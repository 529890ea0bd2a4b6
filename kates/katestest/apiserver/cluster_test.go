package apiserver

import (
	"cmp"
	"os"
	"regexp"
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
const crds = "../../../testdata/crds"

// shared is the cluster of all tests here that break nothing.
var shared = Share(WithCRDs(crds), WithTransport(count))

// sharing runs all tests, and ends the cluster.
type sharing struct{ *testing.M }

func (s sharing) Run() int { return shared.Run(s.M) }

// Goroutines are checked when the cluster has ended: while it runs, envtest keeps the connections
// of its health checks.
func TestMain(m *testing.M) {
	if os.Getenv(startsAndWaits) != "" { // a test has started this process
		startAndWait()
	}
	goleak.VerifyTestMain(sharing{m})
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func TestTheServerReportsTheVersionItWasBuiltFrom(t *testing.T) {
	v, err := clientset(t, shared.Cluster(t).Config).Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, shared.Cluster(t).Version, v.GitVersion)
	chosen := cmp.Or(os.Getenv("KATES_KUBERNETES"), Versions()[len(Versions())-1])
	require.Equal(t, chosen, v.Major+"."+v.Minor)
	require.Regexp(t, `^v`+regexp.QuoteMeta(chosen)+`\.\d+$`, v.GitVersion)
}

func TestInstalledCustomKindsAreServed(t *testing.T) {
	cluster := shared.Cluster(t)
	require.NoError(t, cluster.InstallCRDs(t.Context(), crds), "a second time updates")
	client, err := dynamic.NewForConfig(cluster.Config)
	require.NoError(t, err)

	hosts := client.Resource(schema.GroupVersionResource{
		Group: "getambassador.io", Version: "v3alpha1", Resource: "hosts",
	}).Namespace(cluster.Namespace(t))
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

func TestAUserMayDoNothingUntilARoleSaysSo(t *testing.T) {
	config, err := shared.Cluster(t).AddUser("jane", "readers")
	require.NoError(t, err)
	jane := clientset(t, config)
	_, err = jane.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "jane")

	admin := clientset(t, shared.Cluster(t).Config)
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
	content, err := shared.Cluster(t).AdminKubeconfig()
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	require.NoError(t, err)
	_, err = clientset(t, config).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "made-by-kubeconfig-"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestAdminRequestsAreNotRateLimitedByTheClient(t *testing.T) {
	require.Negative(t, shared.Cluster(t).Config.QPS)
}
