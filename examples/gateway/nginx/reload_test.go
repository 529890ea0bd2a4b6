package nginx

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReloadsAreAtMostOneASecond(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("r.example.com", at(Prefix, "/", to("up"))))
	s.apply(c)
	for i := range 3 {
		c.Servers[0].Host = fmt.Sprintf("r%d.example.com", i)
		before := s.Stats()
		s.apply(c)
		assert.GreaterOrEqual(t, s.Stats().LastReload.Sub(before.LastReload), time.Second)
	}
	assert.Equal(t, 3, s.Stats().Reloads)
	assert.False(t, s.apply(c).Reloaded, "the same again")

	s.next = time.Now().Add(time.Hour) // as long as it takes
	c.Servers[0].Host = "waits.example.com"
	c.Upstreams["up"] = []string{backend(t, "another")}
	out, err := s.Apply(t.Context(), clone(c))
	require.NoError(t, err)
	assert.Positive(t, out.Again)
	assert.False(t, out.Active)
	assert.Equal(t, 1, out.Pushed, "endpoints do not wait")
	assert.Equal(t, 3, s.Stats().Reloads)
}

// load asks for URLs until it is stopped, and counts every request.
type load struct {
	asked  atomic.Int64
	mu     sync.Mutex
	failed []string
}

// run asks through a client until the context ends.
func (l *load) run(ctx context.Context, client *http.Client, url, host string) {
	for ctx.Err() == nil {
		request, _ := http.NewRequest(http.MethodGet, url, nil)
		request.Host = host
		answer, err := client.Do(request)
		l.asked.Add(1)
		if err == nil {
			if answer.StatusCode != http.StatusOK {
				err = errors.New(answer.Status)
			}
			answer.Body.Close()
		}
		if err != nil {
			l.mu.Lock()
			l.failed = append(l.failed, err.Error())
			l.mu.Unlock()
		}
	}
}

func TestNoRequestFailsWhileConfigurationsAndEndpointsChange(t *testing.T) {
	const reloads, changes = 30, 100
	s := open(t, nil)
	certificate := certificate(t, "z.example.com")
	c := s.config(s.server("z.example.com", at(Prefix, "/", to("up"))))
	secure := c.Servers[0]
	secure.Port, secure.TLS, secure.Certificate = s.tls, true, "z"
	c.Servers = append(c.Servers, secure)
	c.Certificates["z"] = certificate
	endpoints := []string{backend(t, "a"), backend(t, "b"), backend(t, "c")}
	s.apply(c)

	ctx, cancel := context.WithCancel(t.Context())
	var l load
	var running sync.WaitGroup
	kept := &http.Client{Timeout: patience, Transport: &http.Transport{}}
	for _, client := range []*http.Client{s.client(), kept} {
		running.Go(func() { l.run(ctx, client, fmt.Sprintf("http://127.0.0.1:%d/x", s.plain), "z.example.com") })
	}
	running.Go(func() { l.run(ctx, s.client(), fmt.Sprintf("https://z.example.com:%d/x", s.tls), "z.example.com") })
	for i := range changes {
		if i%(changes/reloads) == 0 && s.Stats().Reloads < reloads {
			c.Servers[0].Locations = []Location{at(Exact, fmt.Sprintf("/new-%d", i), to("up")), at(Prefix, "/", to("up"))}
			s.apply(c)
		}
		c.Upstreams["up"] = []string{endpoints[i%3], endpoints[(i+1)%3]}
		before := l.asked.Load()
		s.apply(c)
		eventually(t, func() bool { return l.asked.Load() > before+3 })
	}
	cancel()
	running.Wait()
	kept.CloseIdleConnections()
	t.Logf("%d requests during %d reloads and %d changes of endpoints", l.asked.Load(), s.Stats().Reloads, changes)
	assert.Empty(t, l.failed)
	assert.Equal(t, reloads, s.Stats().Reloads)
	assert.Equal(t, 1, s.Stats().Starts)
}

func TestARequestThatIsRunningOutlivesAReload(t *testing.T) {
	s := open(t, nil)
	arrived, release := make(chan struct{}), make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	slow := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
	})}
	go func() { _ = slow.Serve(l) }()
	t.Cleanup(func() { slow.Close() })
	c := s.config(s.server("d.example.com", at(Prefix, "/", to("slow"))))
	c.Upstreams["slow"] = []string{l.Addr().String()}
	s.apply(c)
	status := make(chan int, 1)
	go func() {
		answer, err := s.ask(http.MethodGet, "http://d.example.com/")
		if err != nil {
			status <- 0
			return
		}
		status <- answer.StatusCode
	}()
	<-arrived
	c.Servers[0].Host, c.Upstreams = "other.example.com", map[string][]string{"slow": nil}
	s.apply(c)
	close(release)
	assert.Equal(t, http.StatusOK, <-status)
}

func TestAFullDiskLeavesTheConfigurationThatServes(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("f.example.com", at(Prefix, "/", to("up"))))
	s.apply(c)
	active := read(t, s.path("nginx.conf"))
	pause(t, time.Until(s.next))

	changed := *c
	changed.Servers = []Server{c.Servers[0]}
	changed.Servers[0].TLS, changed.Servers[0].Certificate = true, "x"
	changed.Certificates = map[string]Certificate{"x": certificate(t, "f.example.com")}
	limit := &syscall.Rlimit{}
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, limit))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: limit.Max}))
	_, err := s.Apply(t.Context(), &changed)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, limit))
	require.ErrorIs(t, err, syscall.EFBIG, "what a full disk is to a file")
	assert.ErrorContains(t, err, "write the certificate of Secret shop/f.example.com")
	assert.Equal(t, active, read(t, s.path("nginx.conf")))
	assert.Equal(t, 200, s.get("http://f.example.com/").StatusCode)
	entries, err := os.ReadDir(s.path("certificates"))
	require.NoError(t, err)
	assert.Empty(t, entries, "half a file")
}

// TestAnNginxThatDoesNotStartLeavesNoWorkerBehind: one whose master does not end by itself, and
// whose worker would serve on without it.
func TestAnNginxThatDoesNotStartLeavesNoWorkerBehind(t *testing.T) {
	installed, err := find(Options{})
	require.NoError(t, err)
	dir := t.TempDir()
	binary, worker := filepath.Join(dir, "nginx"), filepath.Join(dir, "worker")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *daemon*) sleep 600 & echo $! >%s.new; mv %[1]s.new %[1]s; wait;; *) exec %s \"$@\";; esac\n",
		worker, installed.binary)
	require.NoError(t, os.WriteFile(binary, []byte(script), 0o700))
	s := open(t, func(o *Options) { o.Binary = binary })
	ctx, cancel := context.WithCancel(t.Context())
	pid := make(chan int, 1)
	go func() { // until the worker is there
		for ctx.Err() == nil {
			text, _ := os.ReadFile(worker)
			if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				pid <- n
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err = s.Apply(ctx, s.config(s.server("s.example.com", at(Prefix, "/", to("up")))))
	require.ErrorContains(t, err, "start nginx")
	n := <-pid
	eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
		return err != nil || strings.Contains(string(stat), ") Z ") // nobody may have waited for it
	})
}

func TestServersAreChosenByTheirNameInTLS(t *testing.T) {
	s := open(t, nil)
	var servers []Server
	for _, host := range []string{"one.example.com", "*.two.example.com", "none.example.com"} {
		server := s.server(host, at(Prefix, "/", to("up")))
		server.Port, server.TLS, server.Certificate = s.tls, true, host
		servers = append(servers, server)
	}
	c := s.config(servers...)
	c.Certificates["one.example.com"] = certificate(t, "one.example.com")
	c.Certificates["*.two.example.com"] = certificate(t, "*.two.example.com")
	s.apply(c)
	for name, want := range map[string]string{
		"one.example.com": "one.example.com", "x.two.example.com": "*.two.example.com",
		"none.example.com": "", "other.example.com": "", "": "",
	} {
		for _, protocol := range []string{"h2", "http/1.1"} {
			conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.tls), &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{protocol}})
			if want == "" {
				assert.Error(t, err, "%q: there is no certificate", name)
				continue
			}
			require.NoError(t, err, name)
			assert.Equal(t, []string{want}, conn.ConnectionState().PeerCertificates[0].DNSNames)
			assert.Equal(t, protocol, conn.ConnectionState().NegotiatedProtocol)
			conn.Close()
		}
	}
	answer := s.get("https://one.example.com/")
	assert.Equal(t, "https", answer.Header.Get("Got-X-Forwarded-Proto"))

	// A rotation: the old certificate is on the disk no more.
	before := c.Certificates["one.example.com"].file()
	c.Certificates["one.example.com"] = certificate(t, "one.example.com")
	s.apply(c)
	assert.False(t, exists(s.path(before)))
	info, err := os.Stat(s.path(c.Certificates["one.example.com"].file()))
	require.NoError(t, err)
	assert.Equal(t, "-rw-------", info.Mode().String())
	entries, err := os.ReadDir(s.path("certificates"))
	require.NoError(t, err)
	assert.Len(t, entries, 2)
	assert.False(t, strings.Contains(read(t, s.path("nginx.conf")), "none.pem"))
}

func TestAConnectionForOneListenerReachesNoOther(t *testing.T) {
	s := open(t, nil)
	var servers []Server
	for host, listener := range map[string]string{
		"": "*", "a.example.org": "*", "*.example.com": "*.example.com", "b.example.com": "*.example.com", "one.example.com": "one.example.com", "free.example.net": "",
	} {
		server := s.server(host, at(Prefix, "/", to("up")))
		server.Port, server.TLS, server.Certificate, server.Listener = s.tls, true, "all", listener
		servers = append(servers, server)
	}
	long := strings.Repeat(strings.Repeat("x", 49)+".", 5) // 250 characters, of at most 253
	server := s.server(long+"com", at(Prefix, "/", to("up")))
	server.Port, server.TLS, server.Certificate, server.Listener = s.tls, true, "all", long+"com"
	servers = append(servers, server)
	slices.SortFunc(servers, func(a, b Server) int { return strings.Compare(a.Host, b.Host) })
	c := s.config(servers...)
	c.Certificates["all"] = certificate(t, "*")
	s.apply(c)
	s.answers([]asked{
		{"a.example.org", "a.example.org", 200},
		{"a.example.org", "other.example.org", 200},
		{"a.example.org", "one.example.com", 421},
		{"a.example.org", "free.example.net", 200},
		{"one.example.com", "one.example.com", 200},
		{"one.example.com", "b.example.com", 421},
		{"one.example.com", "a.example.org", 421},
		{"x.y.example.com", "b.example.com", 200},
		{"b.example.com", "x.example.com", 200},
		{"b.example.com", "one.example.com", 421},
		{"free.example.net", "other.example.org", 200},
	})
}
