package conformance

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/websocket"
	"sigs.k8s.io/gateway-api/conformance/utils/roundtripper"
)

// ports are those that the suite's Gateways have.
var ports = []int{80, 443, 8080, 8081, 8082, 8083, 8090, 8443}

// startGateway builds the program, and runs it until the test ends. Gateways get addresses of the
// network. It returns where nginx listens for the ports that need rights, if they are missing.
func startGateway(t *testing.T, at place) map[int]int {
	dir := t.TempDir()
	program := filepath.Join(dir, "gateway")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	mapped := mappedPorts(at.Network)
	pairs := []string{"1:1"} // the flag takes the place of the default
	for from, to := range mapped {
		pairs = append(pairs, fmt.Sprintf("%d:%d", from, to))
	}
	var pool []string
	for i := range 100 {
		pool = append(pool, address(at.Network, 1, byte(i+1)))
	}
	var log bytes.Buffer
	gateway := exec.Command(program, "-kubeconfig", at.Kubeconfig, "-namespace", "default", "-listen", "",
		"-dir", filepath.Join(dir, "nginx"), "-endpoints-on-loopback",
		"-addresses", strings.Join(pool, ","), "-ports", strings.Join(pairs, ","))
	gateway.Stdout, gateway.Stderr = &log, &log
	require.NoError(t, gateway.Start())
	t.Cleanup(func() {
		require.NoError(t, gateway.Process.Signal(syscall.SIGTERM))
		if err := gateway.Wait(); err != nil || t.Failed() {
			t.Errorf("the gateway: %v\n%s", err, log.String())
		}
	})
	return mapped
}

// mappedPorts says where nginx listens for ports that this user may not listen at.
func mappedPorts(network byte) map[int]int {
	mapped := map[int]int{}
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(address(network, 0, 1), strconv.Itoa(port)))
		if err != nil {
			mapped[port] = port + 20000
			continue
		}
		_ = l.Close()
	}
	return mapped
}

// mapped sends requests to the ports where nginx listens.
type mapped struct {
	roundtripper.RoundTripper
	ports map[int]int
}

func (m *mapped) CaptureRoundTrip(r roundtripper.Request) (*roundtripper.CapturedRequest, *roundtripper.CapturedResponse, error) {
	r.Host = cmp.Or(r.Host, r.URL.Host)
	m.move(&r.URL)
	return m.RoundTripper.CaptureRoundTrip(r)
}

// Dial opens a connection for websockets.
func (m *mapped) Dial(to, protocol, origin string) (*websocket.Conn, error) {
	at, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	m.move(at)
	return websocket.Dial(at.String(), protocol, origin)
}

func (m *mapped) move(to *url.URL) {
	port, err := strconv.Atoi(to.Port())
	if err != nil {
		port = map[string]int{"http": 80, "ws": 80, "https": 443}[to.Scheme]
	}
	if at, moved := m.ports[port]; moved {
		to.Host = net.JoinHostPort(to.Hostname(), strconv.Itoa(at))
	}
}
