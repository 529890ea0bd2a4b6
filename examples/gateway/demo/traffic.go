package demo

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// traffic sends requests through the gateway, and counts what becomes of each.
type traffic struct {
	web *http.Client

	mu       sync.Mutex
	requests int
	failed   int
	failure  string        // the first one
	wanted   string        // an answer that is waited for
	came     chan struct{} // closed when it has come
}

// urls are asked for in turn.
var urls = []string{"http://shop.example.com/", "http://blog.example.com/", "https://shop.example.com/"}

// newTraffic makes traffic to a gateway on this machine, which listens at other ports than the
// URLs say.
func newTraffic(a *authority, at netip.Addr, port func(int) int) *traffic {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		_, text, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		named, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, netip.AddrPortFrom(at, uint16(port(named))).String())
	}
	return &traffic{web: &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: a.pool()}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run sends a request every few milliseconds until ctx ends, and a few at a time.
func (t *traffic) run(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, 16)
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		places <- struct{}{}
		running.Go(func() {
			t.send(ctx, urls[i%len(urls)])
			<-places
		})
	}
}

func (t *traffic) send(ctx context.Context, url string) {
	// A request that has begun is not cancelled: it would be a failure of no one.
	answers, err := t.ask(context.WithoutCancel(ctx), url)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	if err != nil {
		if t.failed++; t.failure == "" {
			t.failure = err.Error()
		}
	}
	for _, answer := range answers {
		if answer == t.wanted {
			t.wanted = ""
			close(t.came)
		}
	}
}

// ask returns what an answer shows: who has answered, and with which certificate.
func (t *traffic) ask(ctx context.Context, url string) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := t.web.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	shown := []string{strings.TrimSpace(string(text))}
	if answer.TLS != nil {
		shown = append(shown, "certificate "+answer.TLS.PeerCertificates[0].SerialNumber.String())
	}
	return shown, nil
}

// wait returns a channel that is closed when an answer comes.
func (t *traffic) wait(answer string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted, t.came = answer, make(chan struct{})
	return t.came
}

func (t *traffic) counts() (requests, failed int, failure string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requests, t.failed, t.failure
}
