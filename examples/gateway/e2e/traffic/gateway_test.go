package traffic

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/stretchr/testify/require"
)

// Where each gateway listens, at an address of its own. The ports are none that connections get.
const (
	plainPort  = "8080"
	tlsPort    = "8443"
	statusPort = "8099"
)

// gateway is a process of the program, with an nginx of its own.
type gateway struct {
	w       *world
	address string
	dir     string
	args    []string
	cmd     *exec.Cmd
	log     *output
}

// gateway returns a gateway of the world's namespace that is not started yet.
func (w *world) gateway(args ...string) *gateway {
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(w, err)
	config, err := w.cluster.AdminKubeconfig()
	require.NoError(w, err)
	require.NoError(w, os.WriteFile(filepath.Join(dir, "kubeconfig"), config, 0o600))
	g := &gateway{w: w, address: gatewayAddress(), dir: dir, log: &output{}}
	g.args = append([]string{
		"-kubeconfig", filepath.Join(dir, "kubeconfig"), "-namespace", w.namespace, "-namespaces", w.namespace,
		"-dir", filepath.Join(dir, "nginx"), "-endpoints-on-loopback", "-address", g.address,
		"-ports", "80:" + plainPort + ",443:" + tlsPort, "-listen", g.address + ":" + statusPort,
	}, args...)
	w.Cleanup(func() {
		if g.cmd != nil {
			g.stop()
		}
		if pid := g.nginx(); pid != 0 { // of a gateway that was killed
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		if w.Failed() {
			errors, _ := os.ReadFile(filepath.Join(dir, "nginx", "error.log"))
			w.Logf("gateway %s:\n%s\nnginx:\n%s", g.address, g.log, errors)
		}
		_ = os.RemoveAll(dir)
	})
	return g
}

func (g *gateway) start() {
	g.w.Helper()
	g.cmd = exec.Command(program, g.args...)
	g.cmd.Stdout, g.cmd.Stderr = g.log, g.log
	require.NoError(g.w, g.cmd.Start())
}

// serve starts it, and waits until it serves.
func (g *gateway) serve() *gateway {
	g.w.Helper()
	g.start()
	g.w.eventually(g.ready, "the gateway is ready")
	return g
}

// stop ends it gracefully, and its nginx with it.
func (g *gateway) stop() {
	g.w.Helper()
	cmd := g.cmd
	g.cmd = nil
	require.NoError(g.w, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		g.w.Errorf("the gateway ended: %v", err)
	}
}

// kill ends the process, and not its nginx.
func (g *gateway) kill() {
	g.w.Helper()
	cmd := g.cmd
	g.cmd = nil
	require.NoError(g.w, cmd.Process.Kill())
	_ = cmd.Wait()
}

// nginx returns the process of nginx' master, or 0.
func (g *gateway) nginx() int {
	text, _ := os.ReadFile(filepath.Join(g.dir, "nginx", "nginx.pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// processes are nginx' master and its workers.
func (g *gateway) processes() string {
	master := g.nginx()
	all := []string{fmt.Sprint(master)}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(g.w, err)
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(words) > 1 && words[1] == fmt.Sprint(master) {
			all = append(all, filepath.Base(filepath.Dir(path)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// page returns what the gateway says of itself, or nothing.
func (g *gateway) page(path string) (status int, text string) {
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := web.Get("http://" + g.address + ":" + statusPort + path)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	all, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all)
}

func (g *gateway) ready() bool { status, _ := g.page("/readyz"); return status == http.StatusOK }

// metric returns the value of a metric without labels.
func (g *gateway) metric(name string) float64 {
	g.w.Helper()
	_, text := g.page("/metrics")
	found := regexp.MustCompile(`(?m)^gateway_` + name + ` (\S+)$`).FindStringSubmatch(text)
	require.NotNil(g.w, found, "%s in: %s", name, text)
	value, err := strconv.ParseFloat(found[1], 64)
	require.NoError(g.w, err)
	return value
}

// output is what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
