// Package suite holds the scenarios that prove package kates' guarantees through its public API
// alone. They run on the API of any [Backend]: client-go's bare fake in the unit tests, a real
// API server in the e2e tests. Scenarios that need a real server do not run on the fake.
//
// Nothing here sleeps. Scenarios wait for an accumulator's signals, with a deadline that only a
// failure reaches.
package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// Backend is an API for the scenarios. Besides the built-in kinds it serves Host of
// getambassador.io/v3alpha1 (hosts, namespaced, with a status subresource, and spec.hostname
// selectable, which OpenAPI declares if the API is Real) and Tenant of example.kates.io/v1
// (tenants, cluster-scoped).
//
// Each scenario calls the functions with the same t. What they return for one t belongs to the
// same API, and t.Cleanup removes it. Scenarios run in parallel.
type Backend struct {
	Name string

	// Real says that the API has what an API server has: versions, UIDs, conflicts, finalizers,
	// server-side apply, subresources, and field selectors.
	Real bool

	// Decides says that the API is a real server: what only the library decides runs elsewhere, on
	// a server in memory.
	Decides bool

	// NewClient returns another client of the API.
	NewClient func(t testing.TB, options ...kates.Option) *kates.Client

	// Foreign returns another program's client.
	Foreign func(t testing.TB) dynamic.Interface

	// Config is how other programs reach the API, if it is Real.
	Config func(t testing.TB) *rest.Config

	// Namespace makes a namespace that nobody else uses.
	Namespace func(t testing.TB) string

	// FailReads makes all lists and watches of a resource by NewClient's clients fail with an
	// error that can heal, until heal is called.
	FailReads func(t testing.TB, resource string) (heal func())
}

// scenario is one subtest. Its name is the sentence it proves.
type scenario struct {
	name string
	run  func(t *testing.T, e *env)
}

// Run runs every scenario that fits the back end, each as a subtest.
func Run(t *testing.T, b Backend) {
	t.Helper()
	all := [][]scenario{crudScenarios, targetScenarios, nameScenarios, bootstrapScenarios, selectorScenarios, kindScenarios,
		sharingScenarios, runtimeScenarios, structScenarios, changingScenarios, deltaScenarios, ownWriteScenarios, modifyScenarios, deleteAllScenarios, controllerScenarios,
		invalidScenarios, endScenarios, getScenarios, finalizerScenarios, conditionScenarios, ownedScenarios, keepingScenarios}
	if b.Real {
		all = append(all, realScenarios, oddNameScenarios)
	} else {
		all = append(all, fakeScenarios)
	}
	if b.Decides {
		all = decidedOf(t, all)
	}
	for _, group := range all {
		for _, s := range group {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.run(t, newEnv(t, b))
			})
		}
	}
}

// decidedOf returns the scenarios of the table decided, all of which must exist.
func decidedOf(t *testing.T, all [][]scenario) [][]scenario {
	t.Helper()
	var these []scenario
	for _, group := range all {
		for _, s := range group {
			if decided[s.name] != "" {
				these = append(these, s)
			}
		}
	}
	require.Len(t, these, len(decided), "there is a name in the table decided that no scenario has")
	return [][]scenario{these}
}

// env is what a scenario works with: a client with a short interval, another program, and a
// namespace.
type env struct {
	t       *testing.T
	ctx     context.Context
	backend Backend
	client  *kates.Client
	foreign dynamic.Interface
	ns      string
}

func newEnv(t *testing.T, b Backend) *env {
	t.Helper()
	e := &env{t: t, ctx: t.Context(), backend: b, foreign: b.Foreign(t), ns: b.Namespace(t)}
	e.client = e.newClient()
	return e
}

func (e *env) newClient(options ...kates.Option) *kates.Client {
	e.t.Helper()
	client := e.backend.NewClient(e.t, options...)
	require.NoError(e.t, client.MaxAccumulatorInterval(5*time.Millisecond))
	return client
}
