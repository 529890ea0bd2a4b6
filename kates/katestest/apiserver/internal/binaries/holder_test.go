package binaries

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhoWaitsSaysNowAndThenForWhom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "entry.lock")
		first, err := lock(t.Context(), path, func(holder) { t.Error("it is free") })
		require.NoError(t, err)
		var said []string
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			second, err := lock(t.Context(), path, func(by holder) { said = append(said, by.String()) })
			if err != nil {
				t.Error(err)
				return
			}
			second.release()
		}()
		time.Sleep(lockPause / 2)
		first.writeProgress("420 of 1,873 packages built")
		time.Sleep(lockPause)
		first.writeProgress("all 1,873 packages built, linking")
		time.Sleep(lockPause)
		first.release()
		<-ended
		who := fmt.Sprintf("process %d (%s), which has held the lock since %s",
			os.Getpid(), filepath.Base(os.Args[0]), first.by.Since.Local().Format(time.TimeOnly))
		require.Equal(t, []string{
			who,
			who + ": 420 of 1,873 packages built",
			who + ": all 1,873 packages built, linking",
		}, said)
	})
}

func TestAHolderThatWasKilledIsNamedWhileItsBuildGoesOn(t *testing.T) {
	gone := exec.CommandContext(t.Context(), "true")
	require.NoError(t, gone.Run())
	by := thisProcess()
	by.PID, by.Progress = gone.Process.Pid, "420 of 1,873 packages built"
	require.Contains(t, by.String(), fmt.Sprintf("process %d (", by.PID))
	require.Contains(t, by.String(), "has been killed; the build that it began has not ended")
	require.NotContains(t, by.String(), "packages", "nobody writes that anew")

	by.Host = "elsewhere.example"
	require.Contains(t, by.String(), fmt.Sprintf("process %d on elsewhere.example", by.PID))
	require.NotContains(t, by.String(), "killed", "its number means nothing on this host")
	require.Contains(t, by.String(), "420 of 1,873")
}

func TestALockWhoseHolderIsNotReadableIsWaitedForAllTheSame(t *testing.T) {
	for name, text := range map[string]string{
		"empty":       "",
		"half":        `{"pid": 12`,
		"no holder":   "locked\n",
		"other":       `{"host": "a"}`,
		"not a group": `{"pid": -1}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "entry.lock")
			first, err := lock(t.Context(), path, func(holder) { t.Error("it is free") })
			require.NoError(t, err)
			defer first.release()
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			var said string
			ctx, cancel := context.WithCancel(t.Context())
			_, err = lock(ctx, path, func(by holder) {
				said = by.String()
				cancel()
			})
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, "another process", said)
		})
	}
}

func TestALockFileNamesItsLastHolderOnlyWhileThatHoldsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "entry.lock")
	old := thisProcess()
	old.Command, old.Progress = "a-much-longer-name-of-a-command-that-was-killed", "all packages built"
	f, err := os.Create(path)
	require.NoError(t, err)
	old.write(f)
	require.Equal(t, old.Command, readHolder(f).Command)

	held, err := lock(t.Context(), path, func(holder) { t.Error("it is free") })
	require.NoError(t, err)
	require.Equal(t, filepath.Base(os.Args[0]), readHolder(f).Command)
	require.Empty(t, readHolder(f).Progress)
	held.release()
	require.Zero(t, readHolder(f))
	require.NoError(t, f.Close())
}
