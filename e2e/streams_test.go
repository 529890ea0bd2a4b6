package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

type pair struct {
	Secrets []*kates.Secret
	Hosts   []map[string]any `kates:"hosts.getambassador.io,optional"`
	Deltas  []*kates.Delta
}

func pairIn(ns string) []kates.Query {
	return []kates.Query{{Name: "Secrets", Namespace: ns}, {Name: "Hosts", Namespace: ns}}
}

func TestG11CloseEndsTheWatchesOnTheWire(t *testing.T) {
	t.Parallel()
	w, ns := newWire(t), namespace(t)
	c := w.client(t, kates.Tuning{Lists: kates.StreamedLists}) // these are watches
	s, err := kates.Watch[pair](t.Context(), c, pairIn(ns)...)
	require.NoError(t, err)
	<-s.Changed()
	assert.Equal(t, 2, w.openWatches())
	other, err := kates.Watch[pair](t.Context(), c, pairIn(ns)...)
	require.NoError(t, err)
	<-other.Changed()
	assert.Equal(t, 2, w.openWatches(), "equal queries share")
	s.Close()
	assert.Equal(t, 2, w.openWatches(), "somebody else uses them")
	other.Close()
	c.Close()
	assert.Zero(t, w.openWatches())
	assert.Equal(t, 2, w.seen("secrets", func(r request) bool { return r.watch })+w.seen("hosts", func(r request) bool { return r.watch }))
}

func TestG5ACutWatchIsResumedWithoutALossOrASecondList(t *testing.T) {
	t.Parallel()
	w, ns := newWire(t), namespace(t)
	c := w.client(t)
	s, err := kates.Watch[pair](t.Context(), c, pairIn(ns)...)
	require.NoError(t, err)
	var snap pair
	awaitSnap(t, s, &snap, func(*pair) bool { return s.Ready() == nil })
	d := foreign(t).Resource(hosts).Namespace(ns)
	for i := range 3 {
		_, err := d.Create(t.Context(), object(hosts, ns, fmt.Sprint("h", i), nil), metav1.CreateOptions{})
		require.NoError(t, err)
		awaitSnap(t, s, &snap, func(p *pair) bool { return len(p.Hosts) == 1+i })
		w.cut("hosts")
	}
	_, err = d.Create(t.Context(), object(hosts, ns, "h", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	awaitSnap(t, s, &snap, func(p *pair) bool { return len(p.Hosts) == 4 })
	probe := func(r request) bool { return !r.watch && r.query.Get("limit") == "1" }
	assert.Equal(t, 1, w.seen("hosts", func(r request) bool { // a new kind may answer 429 at first
		return r.status == http.StatusOK && (r.query.Get("sendInitialEvents") == "true" || !r.watch && !probe(r))
	}))
	assert.LessOrEqual(t, w.seen("hosts", probe), 3, "one after each cut, at most")
}

// user returns a client of somebody with the rights of a role.
func user(t *testing.T, name string, rules ...rbacv1.PolicyRule) (*kates.Client, func(...rbacv1.PolicyRule)) {
	t.Helper()
	config, err := testCluster.AddUser(name)
	require.NoError(t, err)
	admin, err := kubernetes.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	_, err = admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	c, err := tapped(kates.NewClientFromRESTConfig(config, kates.WithInterval(10*time.Millisecond)))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, func(rules ...rbacv1.PolicyRule) {
		_, err := admin.RbacV1().ClusterRoles().Update(t.Context(),
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

func reading(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"list", "watch"}}
}

func TestG8AnOptionalKindThatIsForbiddenIsAbsentAndJoinsWhenTheRightIsGranted(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	fill(t, ns, 1, hosts, secrets)
	c, grant := user(t, "optional-"+ns, reading("", "secrets"))
	s, err := kates.Watch[pair](t.Context(), c, pairIn(ns)...)
	require.NoError(t, err)
	var snap pair
	awaitSnap(t, s, &snap, func(p *pair) bool { return len(p.Secrets) == 1 })
	assert.Nil(t, snap.Hosts)
	assert.NoError(t, s.Status().Err(), "what is optional is not wrong")
	assert.Equal(t, kates.StateForbidden, s.Status().Queries[1].State)
	grant(reading("", "secrets"), reading("getambassador.io", "hosts"))
	awaitSnap(t, s, &snap, func(p *pair) bool { return len(p.Hosts) == 1 })
	require.Len(t, snap.Deltas, 1)
	assert.Equal(t, kates.ObjectAdd, snap.Deltas[0].DeltaType)
}

func TestARequiredKindThatIsForbiddenHoldsTheFirstSignalAndIsNamed(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	c, grant := user(t, "required-"+ns, reading("getambassador.io", "hosts"))
	s, err := kates.Watch[pair](t.Context(), c, pairIn(ns)...)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Status().Queries[0].State == kates.StateForbidden }, patience, 10*time.Millisecond)
	assert.ErrorContains(t, s.Ready(), `query "Secrets"`)
	assert.ErrorContains(t, s.Ready(), "forbidden")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for snap, err := range s.All(ctx) {
		assert.Nil(t, snap)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, `query "Secrets"`)
	}
	grant(reading("getambassador.io", "hosts"), reading("", "secrets"))
	var snap pair
	awaitSnap(t, s, &snap, func(*pair) bool { return s.Ready() == nil })
}

func TestMistakesAreErrorsOfWatchThatNameTheQuery(t *testing.T) {
	t.Parallel()
	c := newWire(t).client(t)
	for name, q := range map[string]kates.Query{
		"unknown kind":      {Name: "Q", Kind: "nonsense"},
		"cannot be watched": {Name: "Q", Kind: "selfsubjectaccessreviews"},
		"unsupported field": {Name: "Q", Kind: "configmaps", FieldSelector: "data.x=y"},
		"bad label":         {Name: "Q", Kind: "configmaps", LabelSelector: "a=b=c"},
	} {
		_, err := c.Watch(t.Context(), q)
		assert.ErrorContains(t, err, `query "Q"`, name)
		t.Log(name, ":", err)
	}
	nobody, err := tapped(kates.NewClientFromRESTConfig(&rest.Config{Host: "https://127.0.0.1:1"}))
	require.NoError(t, err)
	t.Cleanup(nobody.Close)
	_, err = nobody.Watch(t.Context(), kates.Query{Name: "Q", Kind: "configmaps"})
	assert.ErrorContains(t, err, `query "Q"`)
	assert.ErrorIs(t, err, kates.ErrIncompleteDiscovery)
	t.Log("no server :", err)
}

func TestSyncMakesASnapshotAsNewAsTheServer(t *testing.T) {
	t.Parallel()
	w, ns := newWire(t), namespace(t)
	c := w.client(t)
	s, err := kates.Watch[pair](t.Context(), c, pairIn(ns)...)
	require.NoError(t, err)
	<-s.Changed()
	w.set("hosts", time.Second)
	d := foreign(t).Resource(hosts).Namespace(ns)
	_, err = d.Create(t.Context(), object(hosts, ns, "h", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = d.Patch(t.Context(), "h", types.MergePatchType, []byte(`{"spec":{"hostname":"x"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Sync(t.Context()))
	var snap pair
	_, err = s.Update(t.Context(), &snap)
	require.NoError(t, err)
	require.Len(t, snap.Hosts, 1)
	assert.Equal(t, map[string]any{"hostname": "x"}, snap.Hosts[0]["spec"])
}
