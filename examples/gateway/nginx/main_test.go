package nginx

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a bound that no machine misses.
const patience = 2 * time.Minute

// site is an nginx in a folder of its own, and how to reach it.
type site struct {
	*Nginx
	t          *testing.T
	plain, tls int
}

// open opens an nginx. Without one that is installed, the test fails.
func open(t *testing.T, change func(*Options)) *site {
	t.Helper()
	s := &site{t: t, plain: freePort(t), tls: freePort(t)}
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	s.reopen(dir, change)
	return s
}

// reopen opens the folder again, as the next process of the gateway does.
func (s *site) reopen(dir string, change func(*Options)) {
	s.t.Helper()
	o := Options{Dir: dir, ReloadTimeout: patience, Logger: slog.New(slog.NewTextHandler(s.t.Output(), nil))}
	if change != nil {
		change(&o)
	}
	n, err := Open(o)
	require.NoError(s.t, err)
	s.Nginx = n
	s.t.Cleanup(func() {
		if n.lock.Fd() != ^uintptr(0) { // not closed by the test
			assert.NoError(s.t, n.Close(context.Background()))
		}
	})
}

// apply applies a configuration, after the pause between two reloads.
func (s *site) apply(c *Config) Outcome {
	s.t.Helper()
	for {
		out, err := s.Apply(s.t.Context(), clone(c))
		if err != nil {
			log, _ := os.ReadFile(s.path("error.log"))
			require.NoError(s.t, err, "%s", log)
		}
		if out.Again == 0 {
			return out
		}
		pause(s.t, out.Again)
	}
}

// clone lets a test change its configuration.
func clone(c *Config) *Config {
	cloned := *c
	cloned.Servers, cloned.Upstreams, cloned.Certificates = slices.Clone(c.Servers), maps.Clone(c.Upstreams), maps.Clone(c.Certificates)
	return &cloned
}

// pause waits for nginx' own time, which is real.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// ports are below those that connections get, so nobody takes one before nginx listens there.
// Processes at the same time begin at different ones.
var ports = 10000 + os.Getpid()*40%20000

func freePort(t *testing.T) int {
	t.Helper()
	for range 20000 {
		ports++
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports)); err == nil {
			require.NoError(t, l.Close())
			return ports
		}
	}
	t.Fatal("there is no free port")
	return 0
}

// backend is an endpoint that answers with its name and what it was asked for.
func backend(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Backend", name)
		w.Header().Set("X-Uri", r.RequestURI)
		w.Header().Set("X-Host", r.Host)
		w.Header().Set("X-From-Backend", "yes")
		for key, values := range r.Header {
			w.Header()["Got-"+key] = []string{strings.Join(values, "|")}
		}
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, name)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// client makes one request for each connection, and follows no redirects.
func (s *site) client() *http.Client {
	return &http.Client{
		Timeout: patience,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				_, port, _ := net.SplitHostPort(address)
				var d net.Dialer
				return d.DialContext(ctx, network, "127.0.0.1:"+port)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ask asks for a URL like http://host/path, at the ports of the site. It returns the answer, whose
// body is read.
func (s *site) ask(method, url string, headers ...string) (*http.Response, error) {
	port := s.plain
	if strings.HasPrefix(url, "https:") {
		port = s.tls
	}
	scheme, rest, _ := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	request, err := http.NewRequestWithContext(s.t.Context(), method, scheme+"://"+host+":"+strconv.Itoa(port)+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	request.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	client := s.client()
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer, err
}

// get is ask, which must have an answer.
func (s *site) get(url string, headers ...string) *http.Response {
	s.t.Helper()
	answer, err := s.ask(http.MethodGet, url, headers...)
	require.NoError(s.t, err)
	return answer
}

// asked is a request for a host over a connection that was made for a name in TLS.
type asked struct {
	connection, host string
	want             int // status
}

// answers makes requests, each over a connection of its own, and checks the statuses.
func (s *site) answers(all []asked) {
	s.t.Helper()
	for _, one := range all {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, fmt.Sprintf("https://%s:%d/", one.connection, s.tls), nil)
		require.NoError(s.t, err)
		request.Host = one.host
		answer, err := s.client().Do(request)
		require.NoError(s.t, err)
		answer.Body.Close()
		assert.Equal(s.t, one.want, answer.StatusCode, "%s for %s", one.connection, one.host)
	}
}

// server is a server of the site.
func (s *site) server(host string, locations ...Location) Server {
	return Server{
		Address: "127.0.0.1", Port: s.plain, Host: host, Locations: locations,
		Source: Object{Kind: "Ingress", Namespace: "shop", Name: "server-" + host},
	}
}

// to is a rule for an upstream.
func to(upstream string, conditions ...Condition) Rule {
	return Rule{
		Source:     Object{Kind: "Ingress", Namespace: "shop", Name: "to-" + upstream},
		Conditions: conditions, Backends: []Backend{{Upstream: upstream, Weight: 1}},
	}
}

func at(match PathMatch, path string, rules ...Rule) Location {
	return Location{Path: path, Match: match, Rules: rules}
}

// config has these servers, and an endpoint for each name that they use.
func (s *site) config(servers ...Server) *Config {
	c := &Config{
		Settings: Settings{Workers: 2, ConnectTimeout: patience, ReadTimeout: patience, DrainTimeout: patience, RetryEndpoints: 3, KeepConnections: 8, ProxyHeaders: true},
		Servers:  servers, Upstreams: map[string][]string{}, Certificates: map[string]Certificate{},
	}
	for _, name := range (&renderer{config: c}).used() {
		c.Upstreams[name] = []string{backend(s.t, name)}
	}
	return c
}

// workers returns the processes of nginx' workers.
func (s *site) workers() (all []string) {
	path := fmt.Sprintf("/proc/%d/task/%d/children", s.master(), s.master())
	text, err := os.ReadFile(path)
	require.NoError(s.t, err)
	return strings.Fields(string(text))
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

// eventually waits for something that nginx does in its own time. The function may end the test:
// it runs in the test's goroutine.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); pause(t, 1e7) {
		require.True(t, time.Now().Before(end), "it has not come")
	}
}

// certificate makes a certificate that signs itself.
func certificate(t testing.TB, host string) Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	chain, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return Certificate{
		Source: Object{Kind: "Secret", Namespace: "shop", Name: host},
		Chain:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain}),
		Key:    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}
