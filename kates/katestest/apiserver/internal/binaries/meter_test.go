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

func TestTheMeterTellsNowAndThenHowMuchOfHowMuchIsBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		var noted string
		m := newMeter(&said, func(state string) { noted = state })
		defer m.start()()
		tells := func(want string) {
			t.Helper()
			synctest.Wait()
			m.mu.Lock() // the meter writes with it held
			defer m.mu.Unlock()
			require.Equal(t, want, said.String())
			said.Reset()
		}
		write := func(text string) {
			t.Helper()
			n, err := m.Write([]byte(text))
			require.NoError(t, err)
			require.Equal(t, len(text), n)
			tells("")
		}
		write("go: downloading k8s.io/kubernetes v1.36.3\ngo: downloading go.etcd.io/etcd/server/v3 v3.6.8\n")
		time.Sleep(meterPause)
		tells("  after 15s: 2 modules downloaded, counting the packages\n")

		time.Sleep(time.Second)
		m.expect(1873, []string{"internal/byteorder", "k8s.io/api/core/v1", "errors"})
		tells("  after 16s: 2 modules downloaded, 1,870 of 1,873 packages built\n")
		write("internal/byteorder\nk8s.io/a")
		write("pi/core/v1\nnot/expected\n")
		time.Sleep(meterPause - time.Second)
		tells("  after 30s: 2 modules downloaded, 1,872 of 1,873 packages built\n")
		require.Equal(t, "2 modules downloaded, 1,872 of 1,873 packages built", noted)

		write("errors\n")
		time.Sleep(2 * meterPause)
		tells("  after 45s: 2 modules downloaded, all 1,873 packages built, linking\n" +
			"  after 1m0s: 2 modules downloaded, all 1,873 packages built, linking\n")
	})
}

func TestAStoppedMeterIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		m := newMeter(&said, nil)
		m.start()()
		time.Sleep(10 * meterPause)
		synctest.Wait()
		require.Empty(t, said.String())
	})
}

// blocked is a writer that writes when it is closed.
type blocked chan struct{}

func (b blocked) Write(p []byte) (int, error) {
	<-b
	return len(p), nil
}

// A test's output must not be written to after the test.
func TestTheMeterStopsAfterItsLastLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, stopped := make(blocked), make(chan struct{})
		stop := newMeter(to, nil).start()
		time.Sleep(meterPause)
		synctest.Wait()
		go func() {
			defer close(stopped)
			stop()
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("stopped while a line is written")
		default:
		}
		close(to)
		<-stopped
	})
}

func TestNumbersAreReadable(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		require.Equal(t, want, grouped(n))
	}
}

func TestMessagesOfTheCompilerPassTheMeterAndAreInTheError(t *testing.T) {
	var said bytes.Buffer
	m := newMeter(&said, nil)
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
	require.Equal(t, cause, newMeter(&said, nil).explained(cause), "nothing was said")
}
