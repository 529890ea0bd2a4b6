package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite"
	"github.com/kates-go/kates/kates"
)

var namespaces atomic.Int64

// namespace makes a namespace that nobody else uses. It stays until the cluster ends.
func namespace(t testing.TB) string {
	t.Helper()
	return namespaceBy(t, serverOf(t))
}

func namespaceBy(t testing.TB, config *rest.Config) string {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	name := fmt.Sprintf("test-%d", namespaces.Add(1))
	_, err = c.CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return name
}

// TestSuite runs the scenarios that a real server may decide otherwise than the one in memory, on
// which all of them run, with both ways in which objects get into snapshots.
func TestSuite(t *testing.T) {
	awaitDeclared(t, "getambassador.io/v3alpha1") // it follows a moment after the kind
	for name, options := range map[string][]kates.Option{"typed": nil, "untyped": {kates.Tuning{UntypedStreams: true}}} {
		t.Run(name, func(t *testing.T) { runSuite(t, options) })
	}
}

func runSuite(t *testing.T, defaults []kates.Option) {
	var mu sync.Mutex
	wires := map[testing.TB]*wire{}
	of := func(t testing.TB) *wire {
		mu.Lock()
		defer mu.Unlock()
		if wires[t] == nil {
			wires[t] = newWire(t)
		}
		return wires[t]
	}
	suite.Run(t, suite.Backend{
		Name: "API server", Real: true, Decides: true,
		NewClient: func(t testing.TB, options ...kates.Option) *kates.Client {
			c, err := tapped(kates.NewClientFromRESTConfig(of(t).config(), append(slices.Clone(defaults), options...)...))
			require.NoError(t, err)
			t.Cleanup(c.Close)
			return c
		},
		Foreign:   foreign,
		Config:    serverOf,
		Namespace: namespace,
		FailReads: func(t testing.TB, resource string) func() {
			of(t).fail(resource, true)
			return func() { of(t).fail(resource, false) }
		},
	})
}
