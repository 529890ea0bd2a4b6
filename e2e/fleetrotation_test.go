package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
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

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/fleet/source"
	"github.com/kates-go/kates/kates"
)

// rotation is a fleet of two clusters whose kubeconfigs are Secrets in a home cluster. The
// credential of a is the token of a service account there, which the test exchanges.
type rotation struct {
	*fleetWorld
	ns     string // of the Secrets
	home   *kates.Client
	a      *remote
	issued []*rest.Config // credentials of a; the last one is in use
}

const rotated = "rotated" // the role of the service accounts, and the namespace of these

func newRotation(t *testing.T) *rotation {
	t.Helper()
	w := &rotation{fleetWorld: startFleetWorld(t, "a", "b"), ns: namespace(t)}
	w.home, _ = homeClient(t, testCluster.Config)
	w.a = w.remotes["a"]
	meta := metav1.ObjectMeta{Name: rotated}
	_, err := w.a.direct.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.a.direct.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.a.direct.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: rotated},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + rotated}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	first := w.issue()
	require.Eventually(t, func() bool { return w.works(first) == nil }, patience, 20*time.Millisecond)

	w.tell("a", kubeconfigOf(t, first))
	w.tell("b", kubeconfigOf(t, w.remotes["b"].config))
	w.join(fleet.Options{
		Probe: time.Second, Timeout: patience, Interval: 10 * time.Millisecond, Deadline: patience,
		Sources: []fleet.Source{source.Secrets(w.home, source.SecretOptions{
			Namespaces: []string{w.ns}, Hosts: ownHosts, Name: func(s *kates.Secret) string { return s.Name },
		})},
	})
	w.watch()
	kept := make(map[string]*fleet.Cluster)
	for name := range w.remotes {
		fleetBecomes(t, w.fleet, name+" is up", func() bool { return w.fleet.Cluster(name).Health().Phase == fleet.Up })
		kept[name] = w.fleet.Cluster(name)
	}
	w.mu.Lock()
	w.kept = kept
	w.mu.Unlock()
	return w
}

// issue makes a service account in a, and returns a configuration with its token. It does not wait
// until the server knows the account.
func (w *rotation) issue() *rest.Config {
	w.t.Helper()
	name, accounts := fmt.Sprint("t", len(w.issued)), w.a.direct.CoreV1().ServiceAccounts(rotated)
	_, err := accounts.Create(w.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	got, err := accounts.CreateToken(w.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	config := anonymous(w.a.config)
	config.BearerToken = got.Status.Token
	w.issued = append(w.issued, config)
	return config
}

// revoke ends an account, and with it its token. The server remembers a token for ten seconds.
func (w *rotation) revoke(number int) {
	w.t.Helper()
	accounts := w.a.direct.CoreV1().ServiceAccounts(rotated)
	require.NoError(w.t, accounts.Delete(w.t.Context(), fmt.Sprint("t", number), metav1.DeleteOptions{}))
}

// works is the answer to a request with a configuration.
func (w *rotation) works(config *rest.Config) error {
	k, err := kubernetes.NewForConfig(config)
	if err == nil {
		_, err = k.CoreV1().ConfigMaps("default").Get(w.t.Context(), "keep-0", metav1.GetOptions{})
	}
	return err
}

// tell writes the Secret of a cluster.
func (w *rotation) tell(name string, kubeconfig []byte) {
	w.t.Helper()
	secret := &kates.Secret{ObjectMeta: named(w.ns, name), Data: map[string][]byte{"kubeconfig": kubeconfig}}
	secret.Labels = map[string]string{"sigs.k8s.io/multicluster-runtime-kubeconfig": "true"}
	require.NoError(w.t, w.home.Upsert(w.t.Context(), secret, secret, nil))
}

// hurry starts writers that do not pause, two for each cluster: another program, and the fleet's
// client, none of whose requests may be refused.
func (w *rotation) hurry() {
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop = stop
	w.t.Cleanup(func() { stop(); w.writers.Wait() })
	for _, r := range w.remotes {
		r.hurried = true
		w.writers.Go(func() { r.churn(ctx) })
		w.writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				err := w.putOwn(ctx, r, fmt.Sprint("own-", rand.IntN(10)), i)
				if !assert.True(w.t, err == nil || ctx.Err() != nil, "an own write to %s: %v", r.name, err) {
					return
				}
			}
		})
	}
}

// ownWrites writes an object of its own to each cluster. Every later snapshot has it.
func (w *rotation) ownWrites(when string, round int) {
	w.t.Helper()
	for _, r := range w.remotes {
		require.NoError(w.t, w.putOwn(w.t.Context(), r, fmt.Sprint(when, "-", round), round), "%s %d", when, round)
	}
}

// useless returns a kubeconfig that does not work, and what the status says of it. It has a wrong
// token, or it is half of one, or it ends before the token.
func (w *rotation) useless(next *rest.Config, round int) (kubeconfig []byte, says string) {
	w.t.Helper()
	whole, secret := kubeconfigOf(w.t, next), "Secret "+w.ns+"/a: "
	switch round % 3 {
	case 0:
		wrong := rest.CopyConfig(next)
		wrong.BearerToken = "nonsense"
		return kubeconfigOf(w.t, wrong), "Unauthorized"
	case 1:
		return whole[:len(whole)/2], secret + "the kubeconfig "
	default:
		before, _, found := bytes.Cut(whole, []byte("token:"))
		require.True(w.t, found)
		return before, secret + "the user in the kubeconfig has no credentials"
	}
}

// becomes waits until a is as wanted, or has become another cluster, which it must not.
func (w *rotation) becomes(what string, is func(*fleet.Cluster) bool) {
	w.t.Helper()
	c := w.kept["a"]
	fleetBecomes(w.t, w.fleet, what, func() bool { return is(c) || w.fleet.Cluster("a") != c })
	require.Same(w.t, c, w.fleet.Cluster("a"))
}

// exchange tells the fleet a kubeconfig that is of no use, and then one that is. It revokes the
// former credential as soon as the fleet has left it.
func (w *rotation) exchange(round int) {
	w.t.Helper()
	c, former := w.kept["a"], w.issued[round-1].BearerToken
	next := w.issue()
	kubeconfig, says := w.useless(next, round)
	w.tell("a", kubeconfig)
	w.becomes("the status says "+says, func(c *fleet.Cluster) bool { return c.Health().Rotation != "" })
	assert.Contains(w.t, c.Health().Rotation, says)
	assert.NotContains(w.t, c.Health().Rotation, "nonsense", "no credential is shown")
	assert.Equal(w.t, fleet.Up, c.Health().Phase)
	assert.Equal(w.t, former, c.Config().BearerToken, "the old one stays in use")
	w.ownWrites("before", round)

	w.tell("a", kubeconfigOf(w.t, next))
	w.ownWrites("during", round)
	w.becomes("the new one is in use", func(c *fleet.Cluster) bool { return c.Config().BearerToken == next.BearerToken })
	w.revoke(round - 1)
	w.ownWrites("after", round)
	w.becomes("all is well", func(c *fleet.Cluster) bool { return c.Health().Rotation == "" })
}

// The kubeconfig of a cluster is exchanged again and again, with useless ones in between, and each
// old credential is revoked, while everybody writes. No snapshot has a gap, goes back, lacks an
// own write or a cluster.
func TestG4G5AFleetExchangesCredentialsUnderLoadAndTheOldOnesAreRevoked(t *testing.T) {
	t.Parallel()
	const rounds = 6
	w := newRotation(t)
	w.hurry()
	for round := 1; round <= rounds; round++ {
		w.exchange(round)
	}
	for i, old := range w.issued[:rounds] {
		require.Eventually(t, func() bool { return apierrors.IsUnauthorized(w.works(old)) }, patience, 20*time.Millisecond, "%d is revoked", i)
	}
	w.ownWrites("finally", 0)
	for name := range w.remotes {
		w.arrives(name, "at-the-end")
	}
	w.settle()
	for _, c := range w.fleet.Status().Clusters {
		assert.Same(t, w.kept[c.Name], w.fleet.Cluster(c.Name))
		for _, q := range c.Watches.Queries {
			assert.Zero(t, q.Restarts, "%s of %s are listed once", q.Name, c.Name)
		}
	}
}
