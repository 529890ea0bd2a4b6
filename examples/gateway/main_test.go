package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMistakesOfTheUserAreOneLine(t *testing.T) {
	for _, args := range [][]string{
		{"-kubeconfig", "/does/not/exist"},
		{"-for", "soon"},
		{"-for", "-1s"},
		{"-demo-clusters", "10"},
		{"-ports", "80"},
		{"-ports", "80:70000"},
		{"-addresses", "here"},
		{"-addresses", "127.0.0.1"},
		{"-publish-address", "no name"},
		{"-publish-service", "web"},
		{"-settings", "Gateway/settings"},
		{"-namespaces", "shop"},
		{"-kubeconfig", "x", "-namespaces", "shop,a/b"},
		{"-clusters", "east"},
		{"-nginx-external"},
		{"-listen", "nowhere.invalid:x"},
		{"extra"},
	} {
		var out, errs bytes.Buffer
		err := run(t.Context(), args, &out, &errs)
		require.Error(t, err, args)
		assert.NotContains(t, err.Error(), "\n")
		assert.LessOrEqual(t, strings.Count(firstLine(errs.String()), "\n"), 1)
		assert.Empty(t, out.String(), args)
	}
}

// firstLine is what is printed before the list of all flags.
func firstLine(text string) string {
	before, _, _ := strings.Cut(text, "Usage of ")
	return before
}

func TestAPortThatIsInUseIsSaidAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	err = run(t.Context(), []string{"-listen", "", "-ports", "80:" + port}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "nginx cannot listen: listen tcp 127.0.0.1:"+port)
	require.ErrorContains(t, err, "choose other ports")
	assert.NotContains(t, err.Error(), "\n")
}

func TestAClusterThatDoesNotAnswerIsSaidAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}],
		clusters: [{name: a, cluster: {server: "http://`+l.Addr().String()+`"}}]}`), 0o600))
	err = run(t.Context(), []string{"-kubeconfig", file}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "the cluster does not answer: ")
	assert.NotContains(t, err.Error(), "\n")
}

// until cancels when all of the texts have been written.
type until struct {
	mu     sync.Mutex
	text   bytes.Buffer
	texts  []string
	cancel func()
}

func (u *until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, err := u.text.Write(p)
	for _, text := range u.texts {
		if !strings.Contains(u.text.String(), text) {
			return n, err
		}
	}
	u.cancel()
	return n, err
}

func (u *until) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.text.String()
}

// addresses is how many this process has used.
var addresses atomic.Int32

// ownAddress returns a loopback address that nobody else listens at.
func ownAddress() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 100+(pid>>8)%100, pid%256, addresses.Add(1))
}

// The demonstration has everything in it: nginx, the API, both loops, other clusters.
func TestTheDemonstrationServesEveryRequest(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out := &until{cancel: cancel, texts: []string{
		"shop/web: endpoints 2 → 4, served after ",
		"shop/web: a canary gets 30 %, served after ",
		"event: Warning Ingress shop/broken: ",
		"shop/blog: the HTTPRoute goes to blog-v2, served after ",
		"shop/shop-tls: another certificate, served after ",
		"cluster-1: one more endpoint of shop/web, served after ",
		"cluster-1: that is gone",
	}}
	var errs bytes.Buffer
	require.NoError(t, run(ctx, []string{"-listen", "127.0.0.1:0", "-address", ownAddress()}, out, &errs), errs.String())
	for _, text := range out.texts {
		assert.Contains(t, out.String(), text)
	}
	assert.Regexp(t, regexp.MustCompile(`\d requests, 0 failed\.\n$`), out.String())
	assert.NotContains(t, out.String(), "no answer shows it")
	assert.Empty(t, errs.String())
}

func TestProbesAndMetricsSayHowTheGatewayIs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out := &until{cancel: func() {}, texts: []string{"never"}}
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-listen", "127.0.0.1:0", "-address", ownAddress()}, out, io.Discard)
	}()
	var page string
	require.Eventually(t, func() bool {
		m := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/metrics`).FindStringSubmatch(out.String())
		if m != nil {
			page = m[1]
		}
		return m != nil
	}, 2*time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		text, err := ask(page, "/readyz") // not get: this is another goroutine
		return err == nil && text == "ok\n"
	}, 2*2*time.Minute, 10*time.Millisecond)
	assert.Equal(t, "ok\n", get(t, page, "/healthz"))
	assert.Contains(t, get(t, page, "/debug/kates/"), "<html")
	metrics := get(t, page, "/metrics")
	for _, want := range []string{"gateway_serving 1", "gateway_nginx_up 1", "gateway_nginx_starts_total 1", "gateway_nginx_reloads_total", "kates_clients", "go_goroutines", "process_open_fds"} {
		assert.Contains(t, metrics, want)
	}
	cancel()
	require.NoError(t, <-ended)
}

func get(t *testing.T, host, path string) string {
	t.Helper()
	text, err := ask(host, path)
	require.NoError(t, err)
	return text
}

func ask(host, path string) (string, error) {
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := web.Get("http://" + host + path)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

func TestTheStatusPageIsForThisMachineAlone(t *testing.T) {
	for from, want := range map[string]int{"127.0.0.1:5": 200, "[::1]:5": 200, "[::ffff:127.0.0.1]:5": 200, "10.0.0.1:5": 403, "": 403} {
		w := &answer{}
		local(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })).ServeHTTP(w, &http.Request{RemoteAddr: from})
		assert.Equal(t, want, w.code, from)
	}
}

type answer struct{ code int }

func (*answer) Header() http.Header         { return http.Header{} }
func (*answer) Write(p []byte) (int, error) { return len(p), nil }
func (a *answer) WriteHeader(code int)      { a.code = code }

func TestWithoutNginxTheConfigurationIsWritten(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out := &until{cancel: cancel, texts: []string{"shop/web: endpoints 4 → 2"}}
	dir := t.TempDir()
	require.NoError(t, run(ctx, []string{"-listen", "", "-nginx", "/does/not/exist", "-dir", dir}, out, io.Discard))
	assert.Contains(t, out.String(), "Nothing is served: nginx does not run")
	assert.Contains(t, out.String(), "apt-get install nginx")
	assert.NotContains(t, out.String(), "requests")
	path := filepath.Join(dir, "nginx.conf")
	assert.Contains(t, out.String(), path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), "shop.example.com")
}

func TestTheGatewaysOwnServiceIsSeenInWhateverNamespaceItIs(t *testing.T) {
	s, err := parse([]string{"-kubeconfig", "x", "-namespaces", "shop", "-publish-service", "gateway/gateway"}, io.Discard)
	require.NoError(t, err)
	for _, q := range s.queries() {
		switch q.Name {
		case "Services":
			assert.Equal(t, []string{"shop", "gateway"}, q.Namespaces)
			assert.True(t, q.Transform.IsZero(), "its status is needed")
		case "Slices", "Ingresses", "Gateways", "Routes", "Grants":
			assert.Equal(t, []string{"shop"}, q.Namespaces, q.Name)
		default:
			assert.NotContains(t, q.Namespaces, "shop", q.Name)
		}
	}
}
