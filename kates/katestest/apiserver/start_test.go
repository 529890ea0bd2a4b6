package apiserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates/katestest/apiserver/internal/binaries"
)

// program writes an executable shell script in a folder whose name needs quotes.
func program(t *testing.T, script string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "it's here")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
	return path
}

func TestAProcessThatDoesNotComeUpIsAnErrorWithItsLastWords(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	etcd := program(t, `[ "$1" = --help ] && exit; echo "the disk is full" >&2; exit 1`)
	_, err := start(t.Context(), binaries.Set{Etcd: etcd, APIServer: etcd}, settings{})
	require.ErrorContains(t, err, "start etcd")
	require.ErrorContains(t, err, "the disk is full")

	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left, "its data is removed")
}

func TestACancelledStartStartsNothing(t *testing.T) {
	reason := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	_, err := start(ctx, binaries.Set{}, settings{})
	require.ErrorIs(t, err, reason)
}

func TestASecondClusterIsIndependentAndStopsTwice(t *testing.T) {
	second, err := Start(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, shared.Cluster(t).Config.Host, second.Config.Host)
	require.NoError(t, second.Stop())
	require.NoError(t, second.Stop())
	require.NoError(t, second.Kill(), "nothing is left to kill")
	require.NoDirExists(t, second.dir)

	_, err = clientset(t, shared.Cluster(t).Config).Discovery().ServerVersion()
	require.NoError(t, err, "the first one still runs")
}
