package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// subject is a user of the server who has only the granted rights.
type subject struct {
	t     *testing.T
	name  string
	admin *kubernetes.Clientset
}

func newSubject(t *testing.T, name string) *subject {
	t.Helper()
	admin, err := kubernetes.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	return &subject{t, name, admin}
}

// is makes a client's configuration that of the user.
func (s *subject) is(c *rest.Config) {
	s.t.Helper()
	own, err := testCluster.AddUser(s.name)
	require.NoError(s.t, err)
	c.TLSClientConfig, c.UserAgent = own.TLSClientConfig, own.UserAgent
}

func (s *subject) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.name}}
}

// grant grants rights in a namespace, or in the whole cluster if ns is "". The returned function
// removes the binding and waits until that is in force.
func (s *subject) grant(ns, purpose string, rule rbacv1.PolicyRule) (revoke func()) {
	s.t.Helper()
	ctx, meta, rules := context.Background(), metav1.ObjectMeta{Name: s.name + "-" + purpose, Namespace: ns}, []rbacv1.PolicyRule{rule}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
	rbac := s.admin.RbacV1()
	var err error
	if ns == "" {
		ref.Kind = "ClusterRole"
		_, err = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		require.NoError(s.t, err)
		_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: s.subjects()}, metav1.CreateOptions{})
	} else {
		_, err = rbac.Roles(ns).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		require.NoError(s.t, err)
		_, err = rbac.RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: s.subjects()}, metav1.CreateOptions{})
	}
	require.NoError(s.t, err)
	s.may(ns, rule, true)
	return func() {
		s.t.Helper()
		if ns == "" {
			require.NoError(s.t, rbac.ClusterRoleBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{}))
			require.NoError(s.t, rbac.ClusterRoles().Delete(ctx, meta.Name, metav1.DeleteOptions{}))
		} else {
			require.NoError(s.t, rbac.RoleBindings(ns).Delete(ctx, meta.Name, metav1.DeleteOptions{}))
			require.NoError(s.t, rbac.Roles(ns).Delete(ctx, meta.Name, metav1.DeleteOptions{}))
		}
		s.may(ns, rule, false)
	}
}

// may waits until the server's authorizer allows or refuses it.
func (s *subject) may(ns string, rule rbacv1.PolicyRule, allowed bool) {
	s.t.Helper()
	name := ""
	if len(rule.ResourceNames) > 0 {
		name = rule.ResourceNames[0]
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               s.name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Name: name, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0]},
	}}
	require.Eventually(s.t, func() bool {
		got, err := s.admin.AuthorizationV1().SubjectAccessReviews().Create(context.Background(), review, metav1.CreateOptions{})
		return err == nil && got.Status.Allowed == allowed
	}, patience, 20*time.Millisecond)
}

func TestG8ARightThatIsRevokedKeepsWhatIsShownAndResumesWithoutAGap(t *testing.T) {
	t.Parallel()
	for name, namespaced := range map[string]bool{"cluster role": false, "role": true} {
		for what, optional := range map[string]bool{"optional": true, "required": false} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				var s *subject
				var ns string
				f := newFollower(t, func(c *rest.Config) {
					ns = namespace(t)
					s = newSubject(t, "revoked-"+ns)
					s.is(c)
				})
				f.ns = ns
				where := ""
				if namespaced {
					where = ns
				}
				f.watch(kates.Query{Kind: "cm", Namespace: ns, Optional: optional})
				if optional {
					f.until(func() bool { return f.updates == 1 && f.absent }, "it is certainly refused")
					require.NoError(t, f.acc.Status().Err())
				} else {
					f.says(kates.StateForbidden, "cannot")
					require.ErrorContains(t, f.acc.Ready(), `User "revoked-`+ns+`" cannot`)
				}
				f.change(0)
				for round := 1; round <= 2; round++ {
					revoke := s.grant(where, "reads", reading("", "configmaps"))
					f.arrive()
					f.quiet()
					revoke()
					f.change(10 * round)
					f.arrive() // an open watch continues
					f.now(reads).Cut(0)
					f.says(kates.StateForbidden, `User "revoked-`+ns+`" cannot`)
					f.change(10*round + 1)
					f.unchanged()
					assert.False(t, f.absent)
					assert.ErrorContains(t, f.acc.Status().Err(), "cannot", "what is shown is old")
					assert.NoError(t, f.acc.Ready())
				}
			})
		}
	}
}

// namespaceController plays the namespace controller: it deletes a namespace with everything in
// it.
func namespaceController(t *testing.T, ns string) {
	t.Helper()
	ctx := context.Background()
	admin, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	everything := metav1.DeleteOptions{}
	require.NoError(t, admin.CoreV1().Namespaces().Delete(ctx, ns, everything))
	require.NoError(t, admin.RbacV1().RoleBindings(ns).DeleteCollection(ctx, everything, metav1.ListOptions{}))
	require.NoError(t, admin.RbacV1().Roles(ns).DeleteCollection(ctx, everything, metav1.ListOptions{}))
	require.NoError(t, admin.CoreV1().ConfigMaps(ns).DeleteCollection(ctx, everything, metav1.ListOptions{}))
	gone, err := admin.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
	require.NoError(t, err)
	gone.Spec.Finalizers = nil
	_, err = admin.CoreV1().Namespaces().Finalize(ctx, gone, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := admin.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return kates.IsNotFound(err)
	}, patience, 20*time.Millisecond)
}

// tenant follows two namespaces, with rights from a role in each.
func tenant(t *testing.T, rights ...string) (f *follower, s *subject, stays, goes string, revoke func()) {
	t.Helper()
	stays, goes = namespace(t), namespace(t)
	s = newSubject(t, "tenant-"+goes)
	f = newFollower(t, s.is)
	s.grant(stays, "reads", reading("", "configmaps"))
	revoke = s.grant(goes, "reads", reading("", "configmaps"))
	if len(rights) > 0 {
		s.grant("", "looks", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: rights})
	}
	f.list = func() []kates.Unstructured {
		return append(f.listed(configMaps, stays, ""), f.listed(configMaps, goes, "")...)
	}
	for _, ns := range []string{stays, goes} {
		f.ns = ns
		f.change(0)
	}
	f.watch(kates.Query{Kind: "cm", Namespaces: []string{stays, goes}})
	f.arrive()
	f.always = func() {
		require.GreaterOrEqual(t, len(f.shown), 2, "G8: the other namespace has nothing to do with it")
	}
	return f, s, stays, goes, revoke
}

func TestG5ANamespaceThatIsDeletedWhileDisconnectedTakesItsObjectsThoughItsListIsForbidden(t *testing.T) {
	t.Parallel()
	f, s, stays, goes, _ := tenant(t, "get")
	f.faults.On(reads).Hold()
	f.now(reads).Cut(0)
	namespaceController(t, goes)
	f.ns = stays
	f.change(1)
	f.unchanged()
	f.faults.Heal()
	f.arrive()
	f.says(kates.StateMissing, "forbidden")
	require.NoError(t, f.acc.Ready())

	_, err := s.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: goes}}, metav1.CreateOptions{})
	require.NoError(t, err)
	f.says(kates.StateForbidden, "cannot") // the namespace exists, and the right does not
	f.unchanged()
	f.ns = goes
	f.change(2)
	s.grant(goes, "reads", reading("", "configmaps"))
	f.arrive()
	f.quiet()
}

func TestG8ARightThatIsRevokedInOneOfTwoNamespacesTakesNothing(t *testing.T) {
	t.Parallel()
	// With the right to get it, the client sees that the namespace exists; without it, the client
	// cannot know.
	for name, rights := range map[string][]string{"may get the namespace": {"get"}, "may not": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s, _, goes, revoke := tenant(t, rights...)
			revoke()
			f.now(reads).Cut(0)
			f.says(kates.StateForbidden, "cannot")
			f.change(1) // in the forbidden namespace
			pause(t.Context(), 3*time.Second)
			f.unchanged()
			s.grant(goes, "reads", reading("", "configmaps"))
			f.arrive()
			f.quiet()
		})
	}
}

// For such a user nothing distinguishes a namespace that is gone from one that is forbidden.
func TestG8ANamespaceThatIsDeletedWhileDisconnectedStaysShownToWhoMayNotGetIt(t *testing.T) {
	t.Parallel()
	f, s, _, goes, _ := tenant(t)
	f.faults.On(reads).Hold()
	f.now(reads).Cut(0)
	namespaceController(t, goes)
	f.faults.Heal()
	f.says(kates.StateForbidden, "cannot")
	f.unchanged()
	assert.ErrorContains(t, f.acc.Status().Err(), "cannot")
	s.grant("", "looks", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}})
	f.arrive()
}

func TestG8AnOptionalQueryByNamespacesThatMayNotBeReadIsAbsentAndJoins(t *testing.T) {
	t.Parallel()
	s := newSubject(t, "spaces-"+namespace(t))
	f := newFollower(t, s.is)
	s.grant("", "reads", reading("", "configmaps"))
	s.label(f.ns, "team", f.ns)
	f.change(0)
	f.watch(kates.Query{Kind: "cm", NamespaceSelector: "team=" + f.ns, Optional: true})
	f.until(func() bool { return f.updates == 1 && f.absent }, "nobody can say which namespaces count")
	st := f.says(kates.StateForbidden, "namespaces")
	assert.True(t, st.Absent)
	s.grant("", "looks", reading("", "namespaces"))
	f.arrive()
	f.quiet()
}

// label labels a namespace as another program.
func (s *subject) label(ns, key, value string) {
	s.t.Helper()
	patch := []byte(`{"metadata":{"labels":{"` + key + `":"` + value + `"}}}`)
	_, err := s.admin.CoreV1().Namespaces().Patch(context.Background(), ns, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(s.t, err)
}
