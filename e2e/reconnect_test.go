package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// exchanged is what these tests watch: typed, untyped, and metadata.
type exchanged struct {
	ConfigMaps []*corev1.ConfigMap
	Untyped    []*kates.Unstructured          `kates:"configmaps"`
	Metadata   []*kates.PartialObjectMetadata `kates:"configmaps"`
	Deltas     []*kates.Delta
}

// tenants are service accounts that may write config maps in a namespace.
type tenants struct {
	t      *testing.T
	ns     string
	admin  *kubernetes.Clientset
	faults *katestest.Faults // counts requests
}

func newTenants(t *testing.T) *tenants {
	t.Helper()
	a := &tenants{t: t, ns: namespace(t), admin: newSubject(t, "").admin, faults: katestest.NewFaults(t, 0)}
	name, group := metav1.ObjectMeta{Name: a.ns}, "system:serviceaccounts:"+a.ns
	everybody := []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}}
	_, err := a.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = a.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.ns}, Subjects: everybody,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return a
}

// token makes an account, and returns its configuration.
func (a *tenants) token(name string) *rest.Config {
	a.t.Helper()
	accounts := a.admin.CoreV1().ServiceAccounts(a.ns)
	_, err := accounts.Create(a.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(a.t, err)
	got, err := accounts.CreateToken(a.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(a.t, err)
	c := anonymous(testCluster.Config)
	c.BearerToken = got.Status.Token
	c.Wrap(a.faults.Wrap)
	require.Eventually(a.t, func() bool { return a.works(c) == nil }, patience, 100*time.Millisecond)
	return c
}

// works is the answer to a request with a configuration.
func (a *tenants) works(c *rest.Config) error {
	c = rest.CopyConfig(c)
	c.WrapTransport = nil
	k, err := kubernetes.NewForConfig(c)
	if err == nil {
		_, err = k.CoreV1().Namespaces().Get(a.t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	}
	return err
}

// revoke ends an account, and with it its tokens. The server remembers a token for ten seconds.
func (a *tenants) revoke(name string) {
	a.t.Helper()
	assert.NoError(a.t, a.admin.CoreV1().ServiceAccounts(a.ns).Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// lists counts the whole lists, streamed or not.
func (a *tenants) lists() int {
	return len(a.faults.Requests(katestest.Match{Resource: "configmaps", Where: func(r katestest.Request) bool {
		return r.StreamedList() || r.Verb == "list" && r.Query.Get("limit") != "1"
	}}))
}

// numbered is a config map with a number.
func (a *tenants) numbered(name string, number int) *corev1.ConfigMap {
	label := map[string]string{"n": strconv.Itoa(number)}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: a.ns, Labels: label}}
}

// look checks a snapshot: it is complete, and no object goes back.
func (a *tenants) look(snap *exchanged, objects int, seen map[string]int) {
	a.t.Helper()
	require.Len(a.t, snap.ConfigMaps, objects)
	require.Len(a.t, snap.Untyped, objects)
	require.Len(a.t, snap.Metadata, objects)
	for i := range objects {
		for form, o := range map[string]kates.Object{"typed": snap.ConfigMaps[i], "untyped": snap.Untyped[i], "metadata": snap.Metadata[i]} {
			n, _ := strconv.Atoi(o.GetLabels()["n"])
			key := form + " " + o.GetName()
			require.GreaterOrEqual(a.t, n, seen[key], "%s goes back", key)
			seen[key] = n
		}
	}
	for _, d := range snap.Deltas {
		require.Equal(a.t, kates.ObjectUpdate, d.DeltaType, "%s: nothing comes or goes", d.Name)
	}
}

func TestG4G5CredentialsAreExchangedUnderLoadAndTheOldOnesRevoked(t *testing.T) {
	t.Parallel()
	const objects, rotations = 30, 5
	a := newTenants(t)
	for i := range objects {
		_, err := a.admin.CoreV1().ConfigMaps(a.ns).Create(t.Context(), a.numbered(fmt.Sprintf("c%02d", i), 0), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	first := a.token("t0")
	client, err := tapped(kates.NewClientFromRESTConfig(first, kates.WithInterval(0)))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	here := func(field string) kates.Query { return kates.Query{Name: field, Namespace: a.ns} }
	snapshots, err := kates.Watch[exchanged](t.Context(), client, here("ConfigMaps"), here("Untyped"), here("Metadata"))
	require.NoError(t, err)
	var snap exchanged
	for complete := false; !complete; {
		<-snapshots.Changed()
		complete, err = snapshots.Update(t.Context(), &snap)
		require.NoError(t, err)
	}
	lists := a.lists()
	assert.Equal(t, 3, lists)

	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	for w := range 3 { // at full speed
		others.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				name := fmt.Sprintf("c%02d", 1+w+3*(n%9))
				// no write is cut short: it could land after the end
				_, err := a.admin.CoreV1().ConfigMaps(a.ns).Update(t.Context(), a.numbered(name, n), metav1.UpdateOptions{})
				assert.NoError(t, err)
			}
		})
	}
	done := make(chan struct{})
	others.Go(func() {
		defer close(done)
		for i := 1; i <= rotations; i++ {
			next := a.token(fmt.Sprint("t", i))
			if !assert.NoError(t, client.Reconnect(t.Context(), next)) {
				return
			}
			a.revoke(fmt.Sprint("t", i-1))
		}
		assert.Eventually(t, func() bool { return apierrors.IsUnauthorized(a.works(first)) }, patience, 200*time.Millisecond)
	})
	seen := map[string]int{}
	snap.Deltas = nil
	own, updates := 0, 0
	for running := true; running; updates++ {
		select {
		case <-done:
			running = false
		default:
		}
		own++
		require.NoError(t, client.Update(t.Context(), a.numbered("c00", own), nil), "no request is refused")
		_, err := snapshots.Update(t.Context(), &snap)
		require.NoError(t, err)
		a.look(&snap, objects, seen)
		require.Equal(t, strconv.Itoa(own), snap.ConfigMaps[0].Labels["n"], "G4: before, during and after")
	}
	t.Logf("%d snapshots, each with an own write, %d rotations", updates, rotations)
	assert.Equal(t, lists, a.lists(), "no second list")
	for _, q := range snapshots.Status().Queries {
		assert.Equal(t, kates.StateSynced, q.State)
		assert.Zero(t, q.Restarts)
	}
	stop()
	others.Wait()
	require.NoError(t, client.Sync(t.Context()))
	_, err = snapshots.Update(t.Context(), &snap)
	require.NoError(t, err)
	now, err := a.admin.CoreV1().ConfigMaps(a.ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i, cm := range now.Items { // G6
		assert.Equal(t, cm.ResourceVersion, snap.ConfigMaps[i].ResourceVersion)
	}

	// The credentials that were revoked do not work, and leave those of now in use.
	require.True(t, apierrors.IsUnauthorized(client.Reconnect(t.Context(), first)))
	poor := a.token("poor")
	poor.Impersonate.UserName = "nobody"
	assert.True(t, apierrors.IsForbidden(client.Reconnect(t.Context(), poor)))
	require.NoError(t, client.Update(t.Context(), a.numbered("c00", own+1), nil))
}

func TestG5AClientGoesToAnotherServerOfItsClusterAndToNoOtherCluster(t *testing.T) {
	t.Parallel()
	c := breakable(t)
	second, err := c.AddServer()
	require.NoError(t, err)
	admin, err := kubernetes.NewForConfig(at(c, second))
	require.NoError(t, err)
	number := func(n int) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", Labels: map[string]string{"n": strconv.Itoa(n)}}}
	}
	_, err = admin.CoreV1().ConfigMaps("ns").Create(t.Context(), number(0), metav1.CreateOptions{})
	require.NoError(t, err)
	client, err := tapped(kates.NewClientFromRESTConfig(at(c, c.Server()), kates.WithInterval(0)))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	acc, err := client.Watch(t.Context(), kates.Query{Name: "ConfigMaps", Kind: "configmaps", Namespace: "ns", FieldSelector: "metadata.name=c"})
	require.NoError(t, err)
	var snap exchanged
	arrive := func(n int) {
		t.Helper()
		for len(snap.ConfigMaps) == 0 || snap.ConfigMaps[0].Labels["n"] != strconv.Itoa(n) {
			<-acc.Changed()
			_, err := acc.Update(t.Context(), &snap)
			require.NoError(t, err)
			require.True(t, snap.ConfigMaps == nil || len(snap.ConfigMaps) == 1, "never empty")
		}
	}
	arrive(0)
	uid, err := client.ClusterUID(t.Context())
	require.NoError(t, err)
	err = client.Reconnect(t.Context(), testCluster.Config)
	require.ErrorIs(t, err, kates.ErrOtherCluster)
	assert.ErrorContains(t, err, string(uid))
	user, err := c.AddUser("another", "system:masters")
	require.NoError(t, err)
	user.Host = at(c, second).Host
	require.NoError(t, client.Reconnect(t.Context(), user))
	require.NoError(t, c.Server().Kill())
	require.NoError(t, client.Update(t.Context(), number(1), nil))
	arrive(1)
	_, err = admin.CoreV1().ConfigMaps("ns").Update(t.Context(), number(2), metav1.UpdateOptions{})
	require.NoError(t, err)
	arrive(2)
	assert.Zero(t, acc.Status().Queries[0].Restarts, "no second list")
	require.NoError(t, second.Kill())
	_, _ = client.ClusterUID(t.Context())
	_, err = client.ClusterUID(t.Context())
	assert.ErrorContains(t, err, "cannot reach the API server at "+user.Host)
}
