package e2e

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
)

// leaseLog is a log that goroutines write, and the test reads.
type leaseLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *leaseLog) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *leaseLog) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	_, err = admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// leaseUsers are loops whose Leases are in another namespace than their objects. called is closed
// by their functions.
func leaseUsers(r *replica, called chan struct{}, leases string) map[string]func(context.Context) error {
	said := sync.OnceFunc(func() { close(called) })
	election := kates.LeaderElection{Namespace: leases, Name: leaseName, RetryPeriod: 200 * time.Millisecond}
	objects := kates.Query{Name: "ConfigMaps", Namespace: r.ns, Key: kates.ByName}
	each := func(_ context.Context, _ string, _ *inputs) error { said(); return nil }
	return map[string]func(context.Context) error{
		"a leader of Run": func(ctx context.Context) error {
			return kates.Run(ctx, r.client, func(context.Context, *inputs) error { said(); return nil },
				kates.Query{Name: "ConfigMaps", Namespace: r.ns}, election)
		},
		"a leader of RunEach": func(ctx context.Context) error { return kates.RunEach(ctx, r.client, each, objects, election) },
		"a shard": func(ctx context.Context) error {
			return kates.RunEach(ctx, r.client, each, objects,
				kates.Sharding{Namespace: leases, Name: "group", RetryPeriod: 200 * time.Millisecond})
		},
	}
}

// TestALeaseWhoseNamespaceIsMissingIsSaidEverywhereAndHadWhenThereIsOne: the namespace does not
// exist, then it does, then it is deleted, and then made anew.
func TestALeaseWhoseNamespaceIsMissingIsSaidEverywhereAndHadWhenThereIsOne(t *testing.T) {
	t.Parallel()
	for _, loop := range []string{"a leader of Run", "a leader of RunEach", "a shard"} {
		t.Run(loop, func(t *testing.T) {
			t.Parallel()
			ns, out := namespace(t), &leaseLog{}
			nosuch := ns + "-leases"
			missing := `namespaces "` + nosuch + `" not found`
			r := newReplica(t, ns, kates.WithLogger(slog.New(secrecy.Handler(slog.NewTextHandler(out, nil)))))
			require.NoError(t, r.client.Create(t.Context(), object(configMaps, ns, "x", nil), nil))
			start := func(ctx context.Context) (called chan struct{}, done chan error) {
				called, done = make(chan struct{}), make(chan error, 1)
				go func() { done <- leaseUsers(r, called, nosuch)[loop](ctx) }()
				return called, done
			}
			logged := func() int { return strings.Count(out.String(), "level=ERROR") }
			said := func() bool {
				ready, status := r.client.Ready(), r.client.Status().Err()
				return ready != nil && strings.Contains(ready.Error(), missing) && status != nil && strings.Contains(status.Error(), missing)
			}

			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, done := start(ctx)
			poll(t, said, "it says that the namespace is missing", func() any { return r.client.Status() })
			err := receive(t, done)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.ErrorContains(t, err, missing)
			assert.Regexp(t, "it never (led|was one of the shards)", err.Error())
			assert.Equal(t, loop != "a shard", errors.Is(err, kates.ErrNeverLed), "%v", err)
			assert.Equal(t, 1, logged(), "each transition once, not each try: %s", out)

			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			called, done := start(ctx)
			poll(t, said, "it says that the namespace is missing", func() any { return r.client.Status() })
			assert.Equal(t, 2, logged(), "%s", out)
			makeNamespace(t, nosuch)
			receive(t, called)
			poll(t, func() bool { return r.client.Ready() == nil && r.client.Status().Err() == nil }, "all is well", func() any { return r.client.Status() })
			cancel()
			require.NoError(t, receive(t, done))

			// As on a real cluster, what is in a namespace goes before the namespace.
			admin, err := kubernetes.NewForConfig(serverOf(t))
			require.NoError(t, err)
			require.NoError(t, admin.CoordinationV1().Leases(nosuch).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
			require.NoError(t, admin.CoreV1().Namespaces().Delete(t.Context(), nosuch, metav1.DeleteOptions{}))
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			called, done = start(ctx)
			poll(t, func() bool {
				err := r.client.Status().Err()
				return err != nil && strings.Contains(err.Error(), "is being terminated")
			}, "it says that the namespace is being terminated", func() any { return r.client.Status() })
			assert.NoError(t, r.client.Ready(), "it was reached once")
			namespaceController(t, nosuch)
			poll(t, func() bool {
				err := r.client.Status().Err()
				return err != nil && strings.Contains(err.Error(), missing)
			}, "it says that the namespace is missing", func() any { return r.client.Status() })
			assert.Equal(t, 3, logged(), "%s", out)
			makeNamespace(t, nosuch)
			receive(t, called)
			cancel()
			require.NoError(t, receive(t, done))
		})
	}
}
