package apiserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheClusterOfATestEndsWithIt(t *testing.T) {
	var c *Cluster
	t.Run("with a cluster", func(t *testing.T) {
		c = StartAPIServer(t)
		_, err := clientset(t, c.Config).CoreV1().Namespaces().Get(t.Context(), c.Namespace(t), metav1.GetOptions{})
		require.NoError(t, err)
		require.DirExists(t, c.dir)
	})
	require.NoDirExists(t, c.dir)
	_, err := net.Dial("tcp", c.Server().Address())
	require.Error(t, err)
}

// startsAndWaits makes this test binary a process that starts a cluster and waits to be killed.
const startsAndWaits = "KATES_TEST_STARTS_AND_WAITS"

func startAndWait() {
	c, err := Start(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.dir, c.Config.Host)
	select {}
}

func TestAClusterDoesNotOutliveAKilledTestProcess(t *testing.T) {
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), startsAndWaits+"=yes")
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	dir, host, found := strings.Cut(strings.TrimSpace(line), " ")
	require.True(t, found, line)
	require.DirExists(t, dir)
	address, err := url.Parse(host)
	require.NoError(t, err)
	connection, err := net.Dial("tcp", address.Host)
	require.NoError(t, err)
	require.NoError(t, connection.Close())

	require.NoError(t, process.Process.Kill())
	require.Error(t, process.Wait())
	require.Eventually(t, func() bool {
		_, err := os.Stat(dir)
		connection, dialed := net.Dial("tcp", address.Host)
		if dialed == nil {
			_ = connection.Close()
		}
		return errors.Is(err, fs.ErrNotExist) && dialed != nil
	}, startTimeout, 10*time.Millisecond)
}

func TestNamespacesOfTestsAreNamedAfterThemAndNeverMeet(t *testing.T) {
	cluster := shared.Cluster(t)
	one, other := cluster.Namespace(t), cluster.Namespace(t)
	require.NotEqual(t, one, other)
	require.Contains(t, one, "testnamespacesoftestsarenamedafterthem")
	for test, want := range map[string]string{
		"TestA":                     "testa-",
		"TestA/is_b#01":             "testa-is-b-01-",
		"Test/-":                    "test-",
		"…":                         "test-",
		strings.Repeat("Long", 100): strings.Repeat("long", 12) + "lo-",
	} {
		require.Equal(t, want, namespacePrefix(test))
	}
}

// judged is a test that must fail.
type judged struct {
	testing.TB
	deadline time.Time
	said     string
}

func (j *judged) Deadline() (time.Time, bool) { return j.deadline, !j.deadline.IsZero() }
func (j *judged) Fatal(args ...any) {
	j.said = fmt.Sprint(args...)
	runtime.Goexit()
}

// fails returns what a test says that fails at once.
func (j *judged) fails(test func(testing.TB)) string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(j)
	}()
	<-done
	return j.said
}

func TestAStartThatTakesTheTimeOfTheTestsSaysWhatToDo(t *testing.T) {
	t.Setenv("KATES_CACHE", t.TempDir()) // so that it would build
	j := &judged{TB: t, deadline: time.Now()}
	said := j.fails(func(t testing.TB) { StartAPIServer(t) })
	require.Contains(t, said, "go test -timeout")
	require.Contains(t, said, "go run github.com/kates-go/kates/kates/katestest/apiserver/cmd/apiserver")
}

func TestAStartMayTakeNearlyTheTimeOfTheTests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for left, want := range map[time.Duration]time.Duration{
			time.Hour: time.Hour - 10*time.Second, 50 * time.Second: 45 * time.Second,
		} {
			ctx, cancel := inTime(&judged{TB: t, deadline: time.Now().Add(left)})
			ends, has := ctx.Deadline()
			require.True(t, has)
			require.Equal(t, want, time.Until(ends))
			cancel()
		}
		ctx, cancel := inTime(&judged{TB: t})
		defer cancel()
		_, has := ctx.Deadline()
		require.False(t, has)
	})
}

func TestASharedClusterThatDoesNotStartFailsEachTestAndIsTriedOnce(t *testing.T) {
	s := Share(WithCRDs("no/such/folder"))
	for range 2 {
		j := &judged{TB: t}
		said := j.fails(func(t testing.TB) { s.Cluster(t) })
		require.Contains(t, said, "no such file or directory")
		s.options = nil // another try would succeed
	}
	require.Equal(t, 3, s.Run(code(3)))
}

func TestASharedClusterIsStartedOnceAndEndsWithTheTests(t *testing.T) {
	s := Share()
	var c *Cluster
	require.Equal(t, 0, s.Run(runs(func() int {
		c = s.Cluster(t)
		require.Same(t, c, s.Cluster(t))
		require.DirExists(t, c.dir)
		return 0
	})))
	require.NoDirExists(t, c.dir)
}

// running is a testing.M.
type runs func() int

func (r runs) Run() int { return r() }

func code(code int) runs { return func() int { return code } }
