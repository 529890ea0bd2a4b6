package conformance

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwconformance "sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/roundtripper"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"

	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

const class = "kates"

// TestTheGatewayConformsToTheGatewayAPI runs the tests of all features that the GatewayClass says
// the gateway has.
func TestTheGatewayConformsToTheGatewayAPI(t *testing.T) {
	log.SetLogger(zap.New(zap.WriteTo(t.Output())))
	server := apiserver.StartAPIServer(t, apiserver.WithCRDs(definitions(t)))
	n, keep, err := network()
	require.NoError(t, err)
	t.Cleanup(func() { _ = keep.Close() })
	client := startCluster(t, server.Config, n)
	moved := startGateway(t, server, n)
	options := suiteOptions(t, server.Config, n)
	options.RoundTripper = &mapped{&roundtripper.DefaultRoundTripper{TimeoutConfig: options.TimeoutConfig}, moved}
	acceptClass(t, client)
	gwconformance.RunConformanceWithOptions(t, options)
}

// definitions is the folder of the CustomResourceDefinitions of the Gateway API, in its module.
func definitions(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out)) + "/config/crd/standard"
}

// startCluster plays the cluster until the test ends.
func startCluster(t *testing.T, server *rest.Config, n byte) *kates.Client {
	client, err := kates.NewClientFromRESTConfig(server, kates.WithScheme(translate.Scheme()))
	require.NoError(t, err)
	c := &cluster{client: client, network: n, pods: map[string]*echo{}}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx) }()
	t.Cleanup(func() {
		end()
		require.NoError(t, <-ended)
		client.Close()
	})
	return client
}

// acceptClass makes the GatewayClass, and waits until the gateway has accepted it and says which
// features it has.
func acceptClass(t *testing.T, client *kates.Client) {
	c := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ControllerName: translate.Controller}}
	c.APIVersion, c.Kind, c.Name = gatewayv1.GroupVersion.String(), "GatewayClass", class
	require.NoError(t, client.Create(t.Context(), c, nil))
	type classes struct{ Classes []*gatewayv1.GatewayClass }
	snapshots, err := kates.Watch[classes](t.Context(), client)
	require.NoError(t, err)
	katestest.Until(t, snapshots, func(snap *classes) bool {
		return len(snap.Classes) == 1 && len(snap.Classes[0].Status.SupportedFeatures) > 0
	}, katestest.Within(time.Minute))
}

// suiteOptions are those of the suite, without the features: those are the ones that the
// GatewayClass says. Times are the suite's own: they pass only where something fails.
func suiteOptions(t *testing.T, server *rest.Config, n byte) suite.ConformanceOptions {
	scheme := translate.Scheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	server = rest.CopyConfig(server) // the suite changes it
	client, err := ctrl.New(server, ctrl.Options{Scheme: scheme})
	require.NoError(t, err)
	clientset, err := kubernetes.NewForConfig(server)
	require.NoError(t, err)
	ip := gatewayv1.IPAddressType
	return suite.ConformanceOptions{
		Client: client, ClientOptions: ctrl.Options{Scheme: scheme}, Clientset: clientset, RestConfig: server,
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName: class, CleanupTestResources: true, TimeoutConfig: config.DefaultTimeoutConfig(),
			UsableNetworkAddresses:   []gatewayv1.GatewaySpecAddress{{Type: &ip, Value: address(n, 1, 100)}},
			UnusableNetworkAddresses: []gatewayv1.GatewaySpecAddress{{Type: &ip, Value: "192.0.2.1"}},
		},
	}
}
