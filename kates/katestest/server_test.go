package katestest_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestSuiteOnAServerInMemory runs all scenarios, with those that need an API server. The e2e tests
// run some of them on a real one, which has no controllers.
func TestSuiteOnAServerInMemory(t *testing.T) { suiteInMemory(t) }

// TestSuiteOnAServerInMemoryInUntypedStreams gets all objects into snapshots the other way.
func TestSuiteOnAServerInMemoryInUntypedStreams(t *testing.T) {
	suiteInMemory(t, kates.Tuning{UntypedStreams: true})
}

func suiteInMemory(t *testing.T, defaults ...kates.Option) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/crds/*.yaml")
	require.NoError(t, err)
	var crds strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		fmt.Fprintf(&crds, "%s\n---\n", text)
	}
	var mu sync.Mutex
	servers := map[testing.TB]*katestest.Server{}
	faults := map[testing.TB]*katestest.Faults{}
	of := func(t testing.TB) (*katestest.Server, *katestest.Faults) {
		mu.Lock()
		defer mu.Unlock()
		if servers[t] == nil {
			servers[t] = katestest.NewServer(t, katestest.WithoutControllers(), katestest.WithManifests(crds.String()))
			faults[t] = katestest.NewFaults(t, 1)
		}
		return servers[t], faults[t]
	}
	var namespaces atomic.Int64
	suite.Run(t, suite.Backend{
		Name: "server in memory", Real: true,
		NewClient: func(t testing.TB, options ...kates.Option) *kates.Client {
			s, f := of(t)
			config := rest.CopyConfig(s.Config)
			config.Wrap(f.Wrap)
			c, err := kates.NewClientFromRESTConfig(config, append(slices.Clone(defaults), options...)...)
			require.NoError(t, err)
			t.Cleanup(c.Close)
			return c
		},
		Foreign: func(t testing.TB) dynamic.Interface {
			s, _ := of(t)
			d, err := dynamic.NewForConfig(s.Config)
			require.NoError(t, err)
			return d
		},
		Config: func(t testing.TB) *rest.Config {
			s, _ := of(t)
			return s.Config
		},
		Namespace: func(t testing.TB) string {
			s, _ := of(t)
			name := fmt.Sprintf("ns-%d", namespaces.Add(1))
			require.NoError(t, s.Client(t).Create(t.Context(), &kates.Namespace{TypeMeta: kates.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: kates.ObjectMeta{Name: name}}, nil))
			return name
		},
		FailReads: func(t testing.TB, resource string) func() {
			_, f := of(t)
			rules := []*katestest.Rule{}
			for _, verb := range []string{"list", "watch"} {
				rules = append(rules, f.On(katestest.Match{Verb: verb, Resource: resource}).Status(http.StatusServiceUnavailable, "", 0))
			}
			return func() {
				for _, r := range rules {
					r.Stop()
				}
			}
		},
	})
}
