// Package rules shows on a real API server, with RBAC, that the roles of kates.Rules suffice, and
// that a program is refused without any right in them. It has a cluster of its own, which also asks
// for the right to block the deletion of an owner.
package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var (
	server  *cluster.Cluster
	admin   *kubernetes.Clientset
	mapping *kates.Client // says what kinds mean
	worlds  atomic.Int64
)

// patience is how long a test waits for what must come, on any machine.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { os.Exit(runWithCluster(m)) }

func runWithCluster(m *testing.M) (code int) {
	ctx := context.Background()
	var err error
	if server, err = cluster.Start(ctx, "enable-admission-plugins=OwnerReferencesPermissionEnforcement"); err == nil {
		err = cmp.Or(server.InstallCRDs(ctx, "../../testdata/crds"), connect())
		if err == nil {
			code = m.Run()
			mapping.Close()
		}
		err = errors.Join(err, server.Stop())
	}
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func connect() (err error) {
	if admin, err = kubernetes.NewForConfig(server.Config); err == nil {
		mapping, err = kates.NewClientFromRESTConfig(server.Config)
	}
	return err
}

// world is one run of a program: a namespace, a user, and the client of that user.
type world struct {
	*testing.T
	ns, user string
	faults   *katestest.Faults
	config   *rest.Config
	kates.Client
}

// right is one right, as it stands in a role.
type right struct{ verb, group, resource, namespace, name string }

func (r right) String() string {
	return fmt.Sprintf("%s %s.%s in %q of %q", r.verb, r.resource, r.group, r.namespace, r.name)
}

// program is what needs rights.
type program struct {
	needs func(w *world) []kates.Need
	rules func(ctx context.Context, c *kates.Client, name string, needs ...kates.Need) (*kates.Roles, error)
	// run ends when the program has used all rights, or with ctx, which ends when it is refused.
	run func(ctx context.Context, w *world, c *kates.Client) error
	// hidden are rights for which no request is made: an error says that they are missing.
	hidden map[string]string
	// elsewhere is a right that another program shows.
	elsewhere string
	// refusals are part of the program.
	refusals bool
	options  func(w *world) []kates.Option
}

// newWorld returns the world of a user who has no rights yet.
func newWorld(t *testing.T) *world {
	w := &world{T: t, faults: katestest.NewFaults(t, 0)}
	n := worlds.Add(1)
	w.ns, w.user = fmt.Sprint("rules-", n), fmt.Sprint("user-", n)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns, Labels: map[string]string{"world": w.ns}}}
	_, err := admin.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{})
	require.NoError(t, err)
	w.config = rest.CopyConfig(server.Config)
	w.config.Impersonate.UserName = w.user
	w.config.Wrap(w.faults.Wrap)
	return w
}

// rightsOf takes roles apart.
func rightsOf(roles *kates.Roles) (all []right) {
	add := func(namespace string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			names := rule.ResourceNames
			if names == nil {
				names = []string{""}
			}
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					for _, name := range names {
						all = append(all, right{verb, rule.APIGroups[0], resource, namespace, name})
					}
				}
			}
		}
	}
	if roles.ClusterRole != nil {
		add("", roles.ClusterRole.Rules)
	}
	for _, role := range roles.Roles {
		add(role.Namespace, role.Rules)
	}
	return all
}

// grant gives the user these rights and no others, and waits until the server knows.
func (w *world) grant(all []right) {
	w.Helper()
	ctx, meta := w.Context(), metav1.ObjectMeta{Name: w.user}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.user}}
	places := make(map[string][]rbacv1.PolicyRule)
	for _, r := range all {
		rule := rbacv1.PolicyRule{Verbs: []string{r.verb}, APIGroups: []string{r.group}, Resources: []string{r.resource}}
		if r.name != "" {
			rule.ResourceNames = []string{r.name}
		}
		places[r.namespace] = append(places[r.namespace], rule)
	}
	for ns, rules := range places {
		meta.Namespace = ns
		ref, err := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: w.user}, error(nil)
		if ns == "" {
			ref.Kind = "ClusterRole"
			_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
			require.NoError(w, err)
			_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		} else {
			_, err = admin.RbacV1().Roles(ns).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
			require.NoError(w, err)
			_, err = admin.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		}
		require.NoError(w, err)
	}
	for _, r := range all {
		require.Eventually(w, func() bool { return w.may(r) }, patience, 5*time.Millisecond, "%s", r)
	}
}

// may asks the server's authorizer.
func (w *world) may(r right) bool {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: w.user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource, Namespace: r.namespace, Name: r.name,
		},
	}}
	got, err := admin.AuthorizationV1().SubjectAccessReviews().Create(w.Context(), review, metav1.CreateOptions{})
	return err == nil && got.Status.Allowed
}

// uses reports whether a request needs a right.
func (r right) uses(q katestest.Request) bool {
	resource := q.Resource
	if q.Subresource != "" {
		resource += "/" + q.Subresource
	}
	return r.verb == q.Verb && r.group == q.Group && r.resource == resource &&
		(r.namespace == "" || r.namespace == q.Namespace) && (r.name == "" || r.name == q.Name)
}

// refused are the requests that the server has forbidden.
func (w *world) refused() []katestest.Request {
	return w.faults.Requests(katestest.Match{Where: func(q katestest.Request) bool { return q.Status == 403 }})
}

// start runs the program as the user, until it has ended or, if it ends then, is refused.
func (p program) start(w *world, endsRefused bool) error {
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	var options []kates.Option
	if p.options != nil {
		options = p.options(w)
	}
	c, err := kates.NewClientFromRESTConfig(w.config, append([]kates.Option{kates.WithInterval(0), kates.WithNamespace(w.ns)}, options...)...)
	require.NoError(w, err)
	defer c.Close()
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() { // ends with ctx
		defer close(done)
		if w.faults.Wait(ctx, func() bool { return len(w.refused()) > 0 && endsRefused }) == nil {
			cancel()
		}
	}()
	return p.run(ctx, w, c)
}

// rights are those that Rules says the program needs in a world.
func (p program) rights(w *world) []right {
	rules := p.rules
	if rules == nil {
		rules = kates.Rules
	}
	roles, err := rules(w.Context(), mapping, w.user, p.needs(w)...)
	require.NoError(w, err)
	return rightsOf(roles)
}

func TestRulesSufficeAndEachRightIsNeeded(t *testing.T) {
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			all := p.rights(w)
			w.grant(all)
			err := p.start(w, !p.refusals)
			if !p.refusals {
				require.Empty(t, w.refused())
			}
			require.NoError(t, err)
			for _, r := range all {
				if what := r.verb + " " + r.resource; what != p.elsewhere && p.hidden[what] == "" {
					made := w.faults.Requests(katestest.Match{Where: r.uses})
					assert.NotEmpty(t, made, "no request needs: %s", r)
				}
			}
			for i, r := range all {
				if r.verb+" "+r.resource == p.elsewhere {
					continue
				}
				t.Run("without "+r.verb+" "+strings.ReplaceAll(r.resource, "/", "-"), func(t *testing.T) {
					t.Parallel()
					p.without(t, i)
				})
			}
		})
	}
}

// without runs the program with all rights but one, and shows that it is refused for that.
func (p program) without(t *testing.T, i int) {
	w := newWorld(t)
	all := p.rights(w)
	missing := all[i]
	w.grant(slices.Delete(slices.Clone(all), i, i+1))
	says := p.hidden[missing.verb+" "+missing.resource]
	err := p.start(w, !p.refusals && says == "")
	if says != "" {
		require.ErrorContains(t, err, says)
		return
	}
	for _, q := range w.refused() {
		if missing.uses(q) {
			return
		}
	}
	t.Errorf("it was not refused without: %s (error: %v)", missing, err)
}
