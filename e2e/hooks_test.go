package e2e

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hook sees a request. It may wait. If it returns an error, the client gets the error in place of
// an answer.
type hook func(*http.Request) error

// hookBefore calls h before each request is sent. hookAfter calls it when the answer to a write
// is there.
func (w *wire) hookBefore(h hook) { w.hook(&w.before, h) }
func (w *wire) hookAfter(h hook)  { w.hook(&w.after, h) }

func (w *wire) hook(which *hook, h hook) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*which = h
}

// ask calls a hook, without the lock.
func (w *wire) ask(which *hook, r *http.Request) error {
	w.mu.Lock()
	h := *which
	w.mu.Unlock()
	if h == nil {
		return nil
	}
	return h(r)
}

// answer sends a write, and then calls the hook.
func (w passage) answer(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := w.ask(&w.after, r); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

var errLost = errors.New("connection lost by the test")

// gate holds requests until it is opened.
type gate struct {
	came chan struct{} // receives once for each request that is held
	open chan struct{}
	once sync.Once
}

func newGate(t *testing.T) *gate {
	g := &gate{came: make(chan struct{}, 100), open: make(chan struct{})}
	t.Cleanup(g.release)
	return g
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// hold returns a hook that holds the requests for which of is true.
func (g *gate) hold(of func(*http.Request) bool) hook {
	return func(r *http.Request) error {
		if !of(r) {
			return nil
		}
		g.came <- struct{}{}
		select {
		case <-g.open:
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

func writing(method, resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == method && strings.Contains(r.URL.Path+"/", "/"+resource+"/")
	}
}

// drained waits until the client has read everything that the watches of a resource have brought
// so far.
func (w *wire) drained(t *testing.T, resource string) {
	t.Helper()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		var open []*lateBody
		for b := range w.bodies {
			if b.resource == resource {
				open = append(open, b)
			}
		}
		w.mu.Unlock()
		for _, b := range open {
			b.mu.Lock()
			left := len(b.chunks)
			b.mu.Unlock()
			if left > 0 {
				return false
			}
		}
		return true
	}, patience, 5*time.Millisecond)
}
