// Package suite holds the scenarios that prove package kates' guarantees through its public API alone. They run on whatever
// API a [Backend] brings: client-go's bare fake in the unit tests, a real API server in the e2e tests. A scenario that needs
// what only a real server has is not among those that run on the fake.
//
// Nothing here sleeps: scenarios wait for an accumulator's signals, with a deadline that only a failure reaches.
package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/kates"
)

// Backend is an API to run the scenarios on. It serves, besides the built-in kinds, Host of getambassador.io/v3alpha1
// (hosts, namespaced, with a status subresource, and spec.hostname selectable) and Tenant of example.kates.io/v1
// (tenants, cluster-scoped).
//
// Each scenario calls the functions with the same t; all that they return for one t is about the same API and is cleaned up by
// t.Cleanup. Scenarios run in parallel.
type Backend struct {
	Name string

	// Real is whether the API has what an API server has: versions, UIDs, conflicts, finalizers, server-side apply,
	// subresources, and field selectors.
	Real bool

	// NewClient returns another client of the API.
	NewClient func(t testing.TB, options ...kates.Option) *kates.Client

	// Foreign is another program's client.
	Foreign func(t testing.TB) dynamic.Interface

	// Namespace makes a namespace that nobody else uses.
	Namespace func(t testing.TB) string

	// FailReads makes all lists and watches of a resource by NewClient's clients fail with an error that may heal, until heal is called.
	FailReads func(t testing.TB, resource string) (heal func())
}

// scenario is one subtest. Its name is the sentence it proves.
type scenario struct {
	name string
	run  func(t *testing.T, e *env)
}

// Run runs every scenario that makes sense on the back end, each as a subtest.
func Run(t *testing.T, b Backend) {
	t.Helper()
	all := [][]scenario{crudScenarios, targetScenarios, nameScenarios, bootstrapScenarios, selectorScenarios, kindScenarios,
		sharingScenarios, runtimeScenarios, deltaScenarios, ownWriteScenarios, modifyScenarios, deleteAllScenarios, controllerScenarios,
		invalidScenarios, endScenarios, getScenarios, finalizerScenarios, conditionScenarios, ownedScenarios}
	if b.Real {
		all = append(all, realScenarios)
	} else {
		all = append(all, fakeScenarios)
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

// env is what a scenario works with: a client with an interval that does not slow tests down, another program, and a namespace.
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
