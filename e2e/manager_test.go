package e2e

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kates-go/kates/controller"
)

var (
	_ manager.Runnable               = (*controller.Controller[hostParts])(nil)
	_ manager.LeaderElectionRunnable = (*controller.Controller[hostParts])(nil)
)

// managed starts a controller-runtime manager with a kates controller.
func managed(t *testing.T, r *replica, identity string, calls chan told) (end func(), done <-chan error) {
	t.Helper()
	m, err := manager.New(serverOf(t), manager.Options{
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionNamespace: r.ns, LeaderElectionID: identity, LeaderElectionReleaseOnCancel: true,
	})
	require.NoError(t, err)
	c, err := controller.New(r.client, "hosts", tell(calls), hostsIn(r.ns)...)
	require.NoError(t, err)
	require.NoError(t, m.Add(c))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	return cancel, ended
}

func TestAControllerIsARunnableOfAControllerRuntimeManagerWhereThatLeads(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	a, b := newReplica(t, ns), newReplica(t, ns)
	a.make("h", nil)
	one, two := make(chan told, 10), make(chan told, 10)
	end, done := managed(t, a, "the-manager", one)
	assert.NotEmpty(t, receive(t, one).owned)
	endOther, doneOther := managed(t, b, "the-manager", two)
	a.patchHost("h", `{"spec":{"hostname":"2-y"}}`)
	receive(t, one)
	assert.Empty(t, two, "its manager does not lead")
	end()
	assert.NoError(t, receive(t, done))
	receive(t, two)
	assert.Empty(t, a.client.Status().Queries, "nothing is left")
	endOther()
	assert.NoError(t, receive(t, doneOther))
}
