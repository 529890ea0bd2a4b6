package traffic

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

// patience is a bound that no machine misses.
const patience = 2 * time.Minute

// What all tests share.
var (
	program string // the gateway
	crds    string // the folder of those of the Gateway API
	network byte   // addresses are in 127.network.0.0/16
	shared  *apiserver.Shared
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "traffic-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "gateway")
	build := exec.Command("go", "build", "-o", program, "github.com/kates-go/kates/examples/gateway")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		panic(err)
	}
	crds = filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "standard")
	defer reserve().Close()
	shared = apiserver.Share(apiserver.WithCRDs(crds))
	return shared.Run(m)
}

// reserve takes a network for this run, so that several runs on one machine do not meet.
func reserve() net.Listener {
	var err error
	for network = 64; network < 250; network++ {
		var keep net.Listener
		if keep, err = net.Listen("tcp", net.JoinHostPort(address(0, 1), "64999")); err == nil {
			return keep
		}
	}
	panic(errors.Join(errors.New("no loopback network is free"), err))
}

// address is one of the network: 0.1 keeps it, 1.x are gateways, all others are pods.
func address(a, b byte) string { return net.IPv4(127, network, a, b).String() }

var gateways, pods atomic.Int64

func gatewayAddress() string { return address(1, byte(gateways.Add(1))) }
func podAddress() string {
	n := pods.Add(1) - 1
	return address(byte(2+n/250), byte(1+n%250))
}

// world is a namespace, and an administrator.
type world struct {
	*testing.T
	cluster   *apiserver.Cluster
	client    *kates.Client
	namespace string
	authority *authority
}

// newWorld makes a namespace in the cluster of all tests, beside which the test runs.
func newWorld(t *testing.T) *world {
	t.Parallel()
	return worldIn(t, shared.Cluster(t))
}

func worldIn(t *testing.T, cluster *apiserver.Cluster) *world {
	client, err := kates.NewClientFromRESTConfig(cluster.Config, kates.WithScheme(translate.Scheme()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	w := &world{t, cluster, client, cluster.Namespace(t), newAuthority(t)}
	class := &networkingv1.IngressClass{Spec: networkingv1.IngressClassSpec{Controller: translate.Controller}}
	class.APIVersion, class.Kind, class.Name = "networking.k8s.io/v1", "IngressClass", className
	gatewayClass := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ControllerName: translate.Controller}}
	gatewayClass.APIVersion, gatewayClass.Kind, gatewayClass.Name = gatewayv1.GroupVersion.String(), "GatewayClass", className
	require.NoError(t, client.Upsert(w.Context(), nil, class, nil)) // that of all tests
	require.NoError(t, client.Upsert(w.Context(), nil, gatewayClass, nil))
	return w
}

func (w *world) create(objects ...kates.Object) {
	w.Helper()
	for _, o := range objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(w.namespace)
		}
		require.NoError(w, w.client.Create(w.Context(), o, o))
	}
}

func (w *world) update(o kates.Object) {
	w.Helper()
	require.NoError(w, w.client.Update(w.Context(), o, o))
}

func (w *world) delete(o kates.Object) {
	w.Helper()
	require.NoError(w, w.client.Delete(w.Context(), o, nil))
}

// eventually waits. The condition is asked in the goroutine of the test, so it may use require.
func (w *world) eventually(is func() bool, what string) {
	w.Helper()
	deadline, look := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-deadline:
			require.Fail(w, "it takes too long", what)
		}
	}
}
