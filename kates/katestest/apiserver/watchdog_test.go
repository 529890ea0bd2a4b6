package apiserver

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAServerAndItsDataDoNotOutliveAKilledTest(t *testing.T) {
	data := filepath.Join(t.TempDir(), "it's data")
	require.NoError(t, os.Mkdir(data, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "db"), []byte("written"), 0o600))
	script, err := watched(t.TempDir(), program(t, "echo started; exec sleep 600"), data)
	require.NoError(t, err)
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	require.NoError(t, out.SetReadDeadline(time.Now().Add(startTimeout)))

	// A shell plays the test process: it starts the server in the background and waits.
	test := exec.CommandContext(t.Context(), "/bin/sh", "-c", "'"+script+"' & wait")
	test.Stdout = in
	require.NoError(t, test.Start())
	require.NoError(t, in.Close())
	server := bufio.NewReader(out)
	line, err := server.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\n", line)

	require.NoError(t, test.Process.Kill())
	require.Error(t, test.Wait())
	// Now only the server holds the pipe, so the pipe ends with the server. (The process number
	// may stay if process 1 does not collect the dead.)
	_, err = io.ReadAll(server)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(data)
		return errors.Is(err, fs.ErrNotExist)
	}, startTimeout, 10*time.Millisecond)
}

func TestAWatchedProgramGetsItsArgumentsAndItsSignals(t *testing.T) {
	script, err := watched(t.TempDir(), program(t, `echo "$#:$2"; exec sleep 600`), t.TempDir())
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), script, "one", "two  words")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "2:two  words\n", line)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.ErrorContains(t, cmd.Wait(), "signal: terminated")
}
