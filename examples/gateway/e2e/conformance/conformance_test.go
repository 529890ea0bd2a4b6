package conformance

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwconformance "sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
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
// the gateway has. Then it runs those of the features that it lacks.
func TestTheGatewayConformsToTheGatewayAPI(t *testing.T) {
	log.SetLogger(zap.New(zap.WriteTo(t.Output())))
	server := apiserver.StartAPIServer(t, apiserver.WithCRDs(definitions(t)))
	n, keep, err := network()
	require.NoError(t, err)
	t.Cleanup(func() { _ = keep.Close() })
	client := startCluster(t, server.Config, n)
	at := place{Network: n, Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	kubeconfig, err := server.AdminKubeconfig()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(at.Kubeconfig, kubeconfig, 0o600))
	at.Ports = startGateway(t, at)
	acceptClass(t, client)
	t.Run("has", func(t *testing.T) { // ends with the tests that run in parallel
		runSuite(t, suiteOptions(t, at), runs)
	})
	if !t.Failed() {
		lackingTestsFail(t, at)
	}
}

// runSuite runs some tests of the suite, as gwconformance.RunConformanceWithOptions runs all.
func runSuite(t *testing.T, options suite.ConformanceOptions, runs func(suite.ConformanceTest) bool) {
	var all []suite.ConformanceTest
	for _, test := range tests.ConformanceTests {
		if runs(test) {
			all = append(all, test)
			options.SupportedFeatures = append(options.SupportedFeatures, test.Features...)
		}
	}
	options.ManifestFS = []fs.FS{&gwconformance.Manifests}
	s, err := suite.NewConformanceTestSuite(options)
	require.NoError(t, err)
	s.Setup(t, all)
	require.NoError(t, s.Run(t, all))
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
		return len(snap.Classes) == 1 && len(snap.Classes[0].Status.SupportedFeatures) == supported().Len()
	}, katestest.Within(5*time.Minute))
}

// place is where the suite finds the gateway.
type place struct {
	Kubeconfig string
	Network    byte
	Ports      map[int]int // where nginx listens, for ports that need rights
}

// suiteOptions are those of the suite, without features.
func suiteOptions(t *testing.T, at place) suite.ConformanceOptions {
	scheme := translate.Scheme()
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	server, err := clientcmd.BuildConfigFromFlags("", at.Kubeconfig)
	require.NoError(t, err)
	server.QPS = -1
	client, err := ctrl.New(server, ctrl.Options{Scheme: scheme})
	require.NoError(t, err)
	clientset, err := kubernetes.NewForConfig(server)
	require.NoError(t, err)
	ip, times := gatewayv1.IPAddressType, patience()
	dialer := &mapped{&roundtripper.DefaultRoundTripper{TimeoutConfig: times}, at.Ports}
	return suite.ConformanceOptions{
		Client: client, ClientOptions: ctrl.Options{Scheme: scheme}, Clientset: clientset, RestConfig: server,
		RoundTripper: dialer, WebSocketDialer: dialer,
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName: class, CleanupTestResources: true, TimeoutConfig: times,
			UsableNetworkAddresses:   []gatewayv1.GatewaySpecAddress{{Type: &ip, Value: address(at.Network, 1, 100)}},
			UnusableNetworkAddresses: []gatewayv1.GatewaySpecAddress{{Type: &ip, Value: "192.0.2.1"}},
		},
	}
}

// patience has longer times than the suite's own. They pass only where something fails, and a
// machine may be slow.
func patience() config.TimeoutConfig {
	const long = 5 * time.Minute
	times := config.DefaultTimeoutConfig()
	for _, each := range []*time.Duration{
		&times.DeleteTimeout, &times.GetTimeout, &times.GatewayMustHaveAddress, &times.GatewayMustHaveCondition,
		&times.GatewayStatusMustHaveListeners, &times.GatewayListenersMustHaveConditions, &times.GWCMustBeAccepted,
		&times.HTTPRouteMustNotHaveParents, &times.HTTPRouteMustHaveCondition, &times.RouteMustHaveParents,
		&times.MaxTimeToConsistency, &times.RequestTimeout, &times.LatestObservedGenerationSet, &times.DefaultTestTimeout,
	} {
		*each = long
	}
	return times
}
