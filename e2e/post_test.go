package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/kates/katestest"
)

// post is the way of one program's requests. It can hold writes of config maps as a network
// does: what was sent arrives later, though its sender has given up meanwhile.
type post struct {
	network *katestest.Network
	late    http.RoundTripper // delivers what was held, past the network
	left    chan struct{}     // closed when the first write is held
	leases  atomic.Int64      // how many requests for leases were made

	mu   sync.Mutex
	pass int // how many writes pass until all are held; negative: nothing is held
	held []*http.Request
}

// posted is one client's transport through a post.
type posted struct {
	*post
	next http.RoundTripper
}

func newPost(t *testing.T) *post {
	return &post{network: katestest.NewNetwork(t), left: make(chan struct{}), pass: -1}
}

// holdAfter holds all writes after the next n.
func (p *post) holdAfter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass = n
}

// deliver sends what was held, ends the holding, and returns the codes of the server's answers.
func (p *post) deliver(t *testing.T) (codes []int) {
	t.Helper()
	p.mu.Lock()
	held := p.held
	p.pass, p.held = -1, nil
	p.mu.Unlock()
	for _, r := range held {
		resp, err := p.late.RoundTrip(r)
		if assert.NoError(t, err) {
			codes = append(codes, resp.StatusCode)
			assert.NoError(t, resp.Body.Close())
		}
	}
	return codes
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (p posted) WrappedRoundTripper() http.RoundTripper { return p.next }

func (p posted) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/leases") {
		p.leases.Add(1)
	}
	if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/configmaps") {
		return p.next.RoundTrip(r)
	}
	holds, err := p.hold(r)
	if err != nil {
		return nil, err
	}
	if !holds {
		return p.next.RoundTrip(r)
	}
	<-r.Context().Done() // the sender gives up
	return nil, r.Context().Err()
}

// hold keeps a copy of the request, if all are held now.
func (p *post) hold(r *http.Request) (holds bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pass != 0 {
		p.pass = max(p.pass-1, -1)
		return false, nil
	}
	sent := r.Clone(context.WithoutCancel(r.Context()))
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return false, err
		}
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	if p.held = append(p.held, sent); len(p.held) == 1 {
		close(p.left)
	}
	return true, nil
}
