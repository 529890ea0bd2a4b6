// Package e2e tests the library on a real API server. Tests that need none, which inMemory lists,
// run on the server in memory. The table core has the tests that each commit has to pass.
package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/discovery"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/e2e/internal/secrecy"
	hearing "github.com/kates-go/kates/internal/client/heard"
)

// testCluster is one control plane for all tests of the package. Each test has its own
// namespaces. A test that breaks the server starts its own cluster.
var testCluster *cluster.Cluster

// clusterFlags are flags of its API server.
var clusterFlags func() []string

// patience is how long a test waits for what must come, on any machine. How soon it comes is shown
// by tests with a clock of their own (testing/synctest).
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if role := os.Getenv(replicaEnvironment); role != "" { // a test has started this process
		os.Exit(replicaMain(role))
	}
	if kubeconfig := os.Getenv(crashingKubeconfig); kubeconfig != "" {
		os.Exit(runCrashing(kubeconfig, os.Getenv(crashingNamespaces)))
	}
	if kubeconfig := os.Getenv(warmKubeconfig); kubeconfig != "" {
		os.Exit(runWarmed(kubeconfig, os.Getenv(warmPlace)))
	}
	os.Exit(secrecy.Main(func() int {
		secrecy.Logs()
		hearing.Listen(func(err error) { secrecy.Say("an error", err.Error()) })
		if err := chooseTests(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if *memoryAlone && !*coreAlone {
			return runInMemory(m)
		}
		return runWithCluster(m)
	}))
}

// runInMemory runs tests that need no cluster.
func runInMemory(m *testing.M) int {
	stop := statuses.read()
	code := m.Run()
	stop()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// runWithCluster is the body of TestMain. It uses defer, which os.Exit would skip.
func runWithCluster(m *testing.M) int {
	var err error
	var flags []string
	if clusterFlags != nil {
		flags = clusterFlags()
	}
	if testCluster, err = cluster.Start(context.Background(), flags...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	stop := statuses.read()
	code := 1
	err = testCluster.InstallCRDs(context.Background(), definitionPaths...)
	if err = cmp.Or(err, sayVersion()); err == nil {
		code = m.Run()
	}
	stop()
	err = cmp.Or(err, hearEvents())
	if stopErr := testCluster.Stop(); err == nil {
		err = stopErr
	}
	// No goroutine is ignored: envtest's goroutines end with the servers. A leaked watch does not
	// end: it retries.
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestTheClusterServesTheCustomKinds(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(testCluster.Config)
	require.NoError(t, err)
	for _, groupVersion := range []string{"getambassador.io/v3alpha1", "example.kates.io/v1"} {
		resources, err := client.ServerResourcesForGroupVersion(groupVersion)
		require.NoError(t, err)
		require.NotEmpty(t, resources.APIResources)
	}
}
