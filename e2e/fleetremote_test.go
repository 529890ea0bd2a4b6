package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// remote is a cluster behind an address that the test can point elsewhere.
type remote struct {
	name    string
	server  *cluster.Server
	config  *rest.Config // without faults
	direct  kubernetes.Interface
	network *katestest.Network

	hurried bool // its writers do not pause

	mu sync.Mutex
	to string // where connections go
}

func (r *remote) pointTo(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = address
}

func (r *remote) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	return r.network.DialContext(ctx, network, to)
}

// faulty is how the fleet reaches the cluster: through its network.
func (r *remote) faulty() *rest.Config {
	config := rest.CopyConfig(r.config)
	config.Dial = r.dial
	return config
}

// put writes objects of both kinds as another program, whether they exist or not.
func (r *remote) put(t require.TestingT, ctx context.Context, name string) {
	m, s := r.objects(name)
	_, err := r.direct.CoreV1().ConfigMaps("default").Create(ctx, m, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.direct.CoreV1().Secrets("default").Create(ctx, s, metav1.CreateOptions{})
	require.NoError(t, err)
}

// pass makes a cluster's etcd pass some revisions.
func (r *remote) pass(t *testing.T, n int) {
	t.Helper()
	m, _ := r.objects("keep-0")
	for i := range n {
		m.Data["round"] = fmt.Sprint(i)
		_, err := r.direct.CoreV1().ConfigMaps("default").Update(t.Context(), m, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

func (r *remote) objects(name string) (*kates.ConfigMap, *kates.Secret) {
	m, s := &kates.ConfigMap{Data: map[string]string{"of": r.name}}, &kates.Secret{StringData: map[string]string{"of": secrecy.Mark(r.name)}}
	m.Namespace, m.Name = "default", name
	s.Namespace, s.Name = "default", name
	return m, s
}

// churn creates, changes and deletes objects. A server that is down refuses.
func (r *remote) churn(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		m, _ := r.objects(fmt.Sprint("other-", rand.IntN(20)))
		maps := r.direct.CoreV1().ConfigMaps("default")
		m.Data["round"] = fmt.Sprint(i)
		switch rand.IntN(3) {
		case 0:
			_, _ = maps.Create(try, m, metav1.CreateOptions{})
		case 1:
			_, _ = maps.Update(try, m, metav1.UpdateOptions{})
		default:
			_ = maps.Delete(try, m.Name, metav1.DeleteOptions{})
		}
		cancel()
		r.pauseWriter(ctx)
	}
}

// pauseWriter keeps writers from taking the whole machine. Nothing waits for it to be right.
func (r *remote) pauseWriter(ctx context.Context) {
	if r.hurried {
		return
	}
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}
