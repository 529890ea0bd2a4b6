package traffic

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
)

// healthy is a route, and what is right there.
type healthy struct {
	url     string // the host is not resolved
	service string // that answers; empty: a redirect to HTTPS
}

// wrong says what is wrong with an answer.
func (h healthy) wrong(client *http.Client) error {
	answer, err := client.Get(h.url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return fmt.Errorf("body: %w", err)
	case h.service == "" && (answer.StatusCode != http.StatusPermanentRedirect || answer.Header.Get("Location") != "https"+strings.TrimPrefix(h.url, "http")):
		return fmt.Errorf("%s, not a redirect: %v", answer.Status, answer.Header)
	case h.service != "" && (answer.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), h.service+" ")):
		return fmt.Errorf("%s, not of %s: %.100s", answer.Status, h.service, body)
	}
	return nil
}

// web returns a client that reaches all hosts at an address.
func (w *world) web(at string, change func(*http.Transport)) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: w.authority.pool()}, MaxIdleConnsPerHost: 10,
		DialContext: func(ctx context.Context, network, host string) (net.Conn, error) {
			port := plainPort
			if strings.HasSuffix(host, ":443") {
				port = tlsPort
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(at, port))
		},
	}
	change(transport)
	return &http.Client{
		Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// How clients treat connections.
func anew(t *http.Transport)  { t.DisableKeepAlives = true }
func kept(*http.Transport)    {}
func http2(t *http.Transport) { t.ForceAttemptHTTP2 = true }

// load sends requests at a moderate rate, and counts all of them.
type load struct {
	w       *world
	routes  []healthy
	targets []*target
	sent    atomic.Int64
	end     chan struct{}
	done    sync.WaitGroup

	mu     sync.Mutex
	failed []string
}

// target is a gateway that gets requests.
type target struct {
	clients []*http.Client
	left    atomic.Bool
	inside  sync.RWMutex // held for reading by requests
}

// leave takes the gateway out of the balancing before it, and waits for its requests.
func (t *target) leave() {
	t.left.Store(true)
	t.inside.Lock()
	defer t.inside.Unlock()
}

const perSecond = 200

// load sends requests to gateways until halt. All routes are right at some time before it begins.
func (w *world) load(routes []healthy, gateways ...*gateway) *load {
	w.Helper()
	l := &load{w: w, routes: routes, end: make(chan struct{})}
	for _, g := range gateways {
		t := &target{}
		for _, how := range []func(*http.Transport){anew, kept, http2} {
			t.clients = append(t.clients, w.web(g.address, how))
		}
		l.targets = append(l.targets, t)
		for _, route := range routes {
			w.eventually(func() bool { return route.wrong(t.clients[0]) == nil }, route.url)
		}
	}
	work := make(chan int)
	l.done.Go(func() { l.pace(work) })
	for range 8 {
		l.done.Go(func() {
			for n := range work {
				l.request(n)
			}
		})
	}
	l.reach(100) // it runs
	return l
}

func (l *load) pace(work chan<- int) {
	defer close(work)
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-l.end:
			return
		}
		select {
		case work <- n:
		case <-l.end:
			return
		}
	}
}

// request makes the nth request. All combinations of routes, targets and clients come.
func (l *load) request(n int) {
	route := l.routes[n%len(l.routes)]
	n /= len(l.routes)
	t := l.targets[n%len(l.targets)]
	client := t.clients[n/len(l.targets)%len(t.clients)]
	t.inside.RLock()
	defer t.inside.RUnlock()
	if t.left.Load() {
		return
	}
	err := route.wrong(client)
	l.sent.Add(1)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = append(l.failed, time.Now().Format("15:04:05.000 ")+err.Error())
	}
}

// reach waits until so many requests more have been answered.
func (l *load) reach(more int64) {
	l.w.Helper()
	until := l.sent.Load() + more
	l.w.eventually(func() bool { return l.sent.Load() >= until }, "requests are answered")
}

// halt ends the load. No request has failed.
func (l *load) halt() {
	l.w.Helper()
	l.reach(100) // after what happened last
	close(l.end)
	l.done.Wait()
	for _, t := range l.targets {
		for _, c := range t.clients {
			c.CloseIdleConnections()
		}
	}
	assert.Empty(l.w, l.failed[:min(20, len(l.failed))], "%d of %d requests failed", len(l.failed), l.sent.Load())
	l.w.Logf("%d requests, %d failed", l.sent.Load(), len(l.failed))
}
