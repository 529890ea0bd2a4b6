package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminalOf makes a terminal, and returns its two ends: what a program has as its standard input
// and output, and what the person before it has.
func terminalOf(t *testing.T, width, height uint16) (program, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = person.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	size := &unix.Winsize{Col: width, Row: height}
	require.NoError(t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, size))
	return program, person
}

// onScreen runs the program in a terminal, presses a key when a text is there, and returns the
// exit code and what was on the screen.
func onScreen(t *testing.T, text, key string, args ...string) (code int, seen string) {
	t.Helper()
	program, person := terminalOf(t, 80, 24)
	codes := make(chan int, 1)
	var errs strings.Builder
	go func() {
		all := append([]string{"snapwatch"}, args...)
		codes <- execute(context.Background(), all, streams{in: program, out: program, err: &errs}, nil)
		_ = program.Close() // the person reads the end
	}()
	var all strings.Builder
	buffer := make([]byte, 4096)
	for pressed := false; ; {
		n, err := person.Read(buffer)
		all.Write(buffer[:n])
		if err != nil { // the program is over
			break
		}
		if !pressed && strings.Contains(ansi.Strip(all.String()), text) {
			pressed = true
			_, err := io.WriteString(person, key)
			require.NoError(t, err)
		}
	}
	code = <-codes
	assert.Empty(t, errs.String())
	return code, all.String()
}

func TestTheFullScreenFollowsTheWatchUntilAKeyEndsIt(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("TERM", "xterm-256color")
	args := []string{"--replay", "../../testdata/recordings/drain.recording", "pods", "--interval=10ms"}
	code, seen := onScreen(t, "web-1-", "q", args...)
	assert.Zero(t, code)
	assert.Contains(t, ansi.Strip(seen), "synced")
	assert.NotContains(t, seen, "\x1b[32m", "no colour")
	code, _ = onScreen(t, "synced", "\x03", args...)
	assert.Equal(t, 130, code, "ctrl-C")
}
