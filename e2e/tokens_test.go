package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// account is a service account that may read config maps in its namespace. Its tokens end with
// it.
type account struct {
	t     *testing.T
	ns    string
	admin *kubernetes.Clientset
	token string
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{t: t, ns: namespace(t), admin: newSubject(t, "").admin}
	_, err := a.admin.RbacV1().Roles(a.ns).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reads"}, Rules: []rbacv1.PolicyRule{reading("", "configmaps")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = a.admin.RbacV1().RoleBindings(a.ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reads"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reads"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.ns, Name: "reader"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	a.renew()
	return a
}

// renew makes the account and a token for it.
func (a *account) renew() {
	a.t.Helper()
	accounts := a.admin.CoreV1().ServiceAccounts(a.ns)
	_, err := accounts.Create(a.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	require.NoError(a.t, err)
	got, err := accounts.CreateToken(a.t.Context(), "reader", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(a.t, err)
	a.token = got.Status.Token
	a.valid(true)
}

// expire makes the token invalid.
func (a *account) expire() {
	a.t.Helper()
	require.NoError(a.t, a.admin.CoreV1().ServiceAccounts(a.ns).Delete(a.t.Context(), "reader", metav1.DeleteOptions{}))
	a.valid(false)
}

// valid waits until the server accepts the token, or refuses it. The server remembers a token for
// ten seconds.
func (a *account) valid(is bool) {
	a.t.Helper()
	c := anonymous(testCluster.Config)
	c.BearerToken = a.token
	d, err := dynamic.NewForConfig(c)
	require.NoError(a.t, err)
	require.Eventually(a.t, func() bool {
		_, err := d.Resource(configMaps).Namespace(a.ns).List(a.t.Context(), metav1.ListOptions{})
		return is && err == nil || !is && apierrors.IsUnauthorized(err)
	}, patience, 200*time.Millisecond)
}

// anonymous returns the configuration without credentials.
func anonymous(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.CertData, c.KeyData, c.CertFile, c.KeyFile = nil, nil, "", ""
	return c
}

// bearer sends the current token, as a credential plugin does.
type bearer struct {
	token atomic.Value
	next  http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.next }

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token.Load().(string))
	return b.next.RoundTrip(r)
}

func TestG8AnExpiredTokenIsToldAndARotatedOneHealsWithoutAGap(t *testing.T) {
	t.Parallel()
	for name, provide := range map[string]func(t *testing.T, c *rest.Config) (rotate func(token string)){
		"a file": func(t *testing.T, c *rest.Config) func(string) {
			c.BearerTokenFile = filepath.Join(t.TempDir(), "token")
			return func(token string) {
				require.NoError(t, os.WriteFile(c.BearerTokenFile+".new", []byte(token), 0o600))
				require.NoError(t, os.Rename(c.BearerTokenFile+".new", c.BearerTokenFile))
			}
		},
		"a transport": func(_ *testing.T, c *rest.Config) func(string) {
			b := &bearer{}
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				b.next = next
				return b
			})
			return func(token string) { b.token.Store(token) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			var rotate func(string)
			f := newFollower(t, func(c *rest.Config) {
				*c = *anonymous(c)
				rotate = provide(t, c)
				rotate(a.token)
			})
			f.ns = a.ns
			f.change(0)
			f.start()
			f.arrive()
			a.expire()
			f.change(1)
			f.arrive() // an open watch continues
			f.now(reads).Cut(0)
			f.says(kates.StateRetrying, "Unauthorized")
			f.change(2)
			pause(t.Context(), time.Second)
			f.unchanged()
			assert.ErrorContains(t, f.acc.Status().Err(), "Unauthorized")
			assert.NoError(t, f.acc.Ready())
			_, err := f.client.Watch(t.Context(), kates.Query{Name: "Objects", Kind: "nonsense.example.com"})
			require.ErrorIs(t, err, kates.ErrIncompleteDiscovery, "nobody knows")
			a.renew()
			f.says(kates.StateRetrying, "Unauthorized") // it does not heal by itself
			rotate(a.token)
			f.arrive()
			f.quiet()
		})
	}
}
