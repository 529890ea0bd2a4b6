package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheQuickstartShowsSnapshotsAndItsOwnWrites(t *testing.T) {
	synctest.Test(t, showsSnapshots) // whose clock stands still while the program works
}

func showsSnapshots(t *testing.T) {
	var out, errs bytes.Buffer
	start := time.Now()
	require.NoError(t, run(t.Context(), []string{"-for", "3s"}, &out, &errs), errs.String())
	assert.Equal(t, 3*time.Second, time.Since(start))
	for _, want := range []string{
		"snapshot 1 ", "snapshot 2 ", "EndpointSlice", "Route added", " events into ",
		"HOST", "cart.example.com", "own write: published generation 2, in a snapshot",
	} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "\x1b", "plain when piped")
}

func TestTheWatchOfConfigMapsIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := startSimulation("shop", kates.WithInterval(time.Millisecond))
		require.NoError(t, err)
		defer s.stop()
		snapshots, err := kates.Watch[Proof](t.Context(), s.client, queries("shop")[4])
		require.NoError(t, err)
		katestest.Until(t, snapshots, func(p *Proof) bool { return len(p.Published) == 0 })
		cm := &corev1.ConfigMap{}
		cm.Name, cm.Namespace = published, "shop"
		start := time.Now()
		require.NoError(t, s.other.Create(t.Context(), cm, nil))
		katestest.Until(t, snapshots, func(p *Proof) bool { return len(p.Published) == 1 })
		assert.GreaterOrEqual(t, time.Since(start), late)
	})
}

func TestMistakesOfTheUserAreOneLine(t *testing.T) {
	for _, args := range [][]string{
		{"-kubeconfig", "/does/not/exist"},
		{"-for", "soon"},
		{"extra"},
	} {
		var out, errs bytes.Buffer
		err := run(t.Context(), args, &out, &errs)
		require.Error(t, err, args)
		assert.NotContains(t, err.Error(), "\n")
		assert.Empty(t, strings.TrimSpace(out.String()))
	}
}
