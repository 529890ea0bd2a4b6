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
