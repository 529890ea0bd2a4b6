package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// sample is a line of the server's metrics.
type sample struct {
	labels map[string]string
	value  int
}

var metricLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)

// metric reads all samples of one metric of the server.
func metric(t testing.TB, config *rest.Config, name string) (all []sample) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/metrics", nil)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name+"{")
		if !ok {
			continue
		}
		end := strings.LastIndex(rest, "} ")
		require.Positive(t, end, lines.Text())
		value, err := strconv.ParseFloat(rest[end+2:], 64)
		require.NoError(t, err)
		s := sample{labels: map[string]string{}, value: int(value)}
		for _, m := range metricLabel.FindAllStringSubmatch(rest[:end], -1) {
			s.labels[m[1]] = m[2]
		}
		all = append(all, s)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, all, name)
	return all
}

// watchesOf returns how many watches the server serves now, by resource. The server has some of
// its own.
func watchesOf(t testing.TB, config *rest.Config) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, s := range metric(t, config, "apiserver_longrunning_requests") {
		if s.labels["verb"] == "WATCH" && s.value != 0 {
			all[s.labels["resource"]+"."+s.labels["group"]] += s.value
		}
	}
	return all
}

// poll tests the condition again and again until it is true. It fails if that takes longer than
// anybody has patience: what says what it has waited for, and is, if given, what there is instead.
// It runs in the test's own goroutine.
func poll(t testing.TB, condition func() bool, what string, is ...func() any) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); pause(t.Context(), 50*time.Millisecond) {
		if time.Now().Before(deadline) {
			continue
		}
		failure := "it does not come to be that " + what
		for _, f := range is {
			failure += fmt.Sprintf("\nthere is %+v", f())
		}
		require.Fail(t, failure)
	}
}
