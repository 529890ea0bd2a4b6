package binaries

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheMeterTellsNowAndThenHowFarTheBuildIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		m := newMeter(&said)
		write := func(text string) {
			t.Helper()
			n, err := m.Write([]byte(text))
			require.NoError(t, err)
			require.Equal(t, len(text), n)
		}
		write("go: downloading k8s.io/kubernetes v1.36.3\ngo: downloading go.etcd.io/etcd/server/v3 v3.6.8\n")
		write("internal/byteorder\nk8s.io/a")
		require.Empty(t, said.String())
		time.Sleep(meterPause - time.Nanosecond)
		write("pi/core/v1\n")
		require.Empty(t, said.String())
		time.Sleep(time.Nanosecond)
		write("runtime\n")
		require.Equal(t, "  after 15s: 2 modules downloaded, 3 packages compiled\n", said.String())
		write("errors\n")
		time.Sleep(4 * meterPause)
		said.Reset()
		write("io\n")
		require.Equal(t, "  after 1m15s: 2 modules downloaded, 5 packages compiled\n", said.String())
	})
}

func TestMessagesOfTheCompilerPassTheMeterAndAreInTheError(t *testing.T) {
	var said bytes.Buffer
	m := newMeter(&said)
	for i := range 2 * meterKeeps {
		fmt.Fprintf(m, "a/package\n# example.com/fake\n./main.go:%d:15: undefined: name\n", i)
	}
	fmt.Fprint(m, "killed")
	require.Equal(t, 4*meterKeeps, strings.Count(said.String(), "\n"))
	require.NotContains(t, said.String(), "a/package")

	cause := errors.New("exit status 1")
	err := m.explained(cause)
	require.ErrorIs(t, err, cause)
	require.ErrorContains(t, err, "exit status 1:\n")
	require.ErrorContains(t, err, fmt.Sprintf("./main.go:%d:15: undefined: name\nkilled", 2*meterKeeps-1))
	require.NotContains(t, err.Error(), "./main.go:0:15")
	require.Equal(t, cause, newMeter(&said).explained(cause), "nothing was said")
}
