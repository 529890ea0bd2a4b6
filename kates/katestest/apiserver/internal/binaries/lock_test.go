package binaries

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWaitingForAnotherBuilderEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "entry.lock")
	held, err := lock(t.Context(), path, func(holder) { t.Error("it is free") })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = lock(ctx, path, func(holder) { cancel() })
	require.ErrorIs(t, err, context.Canceled)

	held.release()
	held, err = lock(t.Context(), path, func(holder) { t.Error("it is free again") })
	require.NoError(t, err)
	held.release()
}

func TestABuildWhoseBuilderWasKilledHoldsTheLockUntilItEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "entry.lock")
	first, err := lock(t.Context(), path, func(holder) { t.Error("it is free") })
	require.NoError(t, err)
	build := exec.CommandContext(t.Context(), "cat") // until its input ends
	build.ExtraFiles = []*os.File{first.file}
	in, err := build.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, build.Start())
	require.NoError(t, first.file.Close(), "as the system does when the builder is killed")

	var waited bool
	second, err := lock(t.Context(), path, func(holder) {
		waited = true
		require.NoError(t, in.Close())
		require.NoError(t, build.Wait())
	})
	require.NoError(t, err)
	require.True(t, waited)
	second.release()
}

func TestTheGoCommandInheritsTheLock(t *testing.T) {
	goTool, err := exec.LookPath("go")
	require.NoError(t, err)
	path := t.TempDir()
	script := "#!/bin/sh\ntest -e /dev/fd/3 || { echo no lock; exit 1; }\nexec '" + goTool + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(path, "go"), []byte(script), 0o700))
	r, cache := fakeSources(t), t.TempDir()
	t.Setenv("PATH", path+string(filepath.ListSeparator)+os.Getenv("PATH"))
	_, err = r.ensure(t.Context(), cache, io.Discard)
	require.NoError(t, err)
}

func TestABuildThatHasNotEndedDoesNotHoldAReleasedLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "entry.lock")
	first, err := lock(t.Context(), path, func(holder) { t.Error("it is free") })
	require.NoError(t, err)
	left := exec.CommandContext(t.Context(), "cat")
	left.ExtraFiles = []*os.File{first.file}
	in, err := left.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, left.Start())
	first.release()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	second, err := lock(ctx, path, func(holder) { cancel() })
	require.NoError(t, err, "it is free again")
	second.release()
	require.NoError(t, in.Close())
	require.NoError(t, left.Wait())
}
