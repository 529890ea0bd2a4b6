package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// wire is a transport that records requests. It can delay, stall, cut and fail reads of a
// resource.
type wire struct {
	mu       sync.Mutex
	requests []request
	delay    map[string]time.Duration // how late a watch's data comes
	failing  map[string]bool
	bodies   map[*lateBody]struct{} // open watches

	before, after hook
	base          *rest.Config
}

// passage is one client's transport through a wire.
type passage struct {
	*wire
	next http.RoundTripper
}

type request struct {
	resource string
	watch    bool
	query    url.Values
	status   int // 0 while there is no answer
}

// newWire returns a wire to the server of the test.
func newWire(t testing.TB) *wire {
	t.Helper()
	return &wire{base: serverOf(t), delay: map[string]time.Duration{}, failing: map[string]bool{}, bodies: map[*lateBody]struct{}{}}
}

// config returns the server's configuration, through the wire.
func (w *wire) config() *rest.Config {
	c := rest.CopyConfig(w.base)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return passage{w, next}
	})
	return c
}

func (w *wire) set(resource string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay[resource] = d
	for b := range w.bodies {
		b.wake()
	}
}

func (w *wire) delayOf(resource string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.delay[resource]
}

func (w *wire) fail(resource string, failing bool) {
	w.mu.Lock()
	w.failing[resource] = failing
	w.mu.Unlock()
	if failing {
		w.cut(resource)
	}
}

// cut breaks the open watches of a resource.
func (w *wire) cut(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for b := range w.bodies {
		if b.resource == resource {
			b.end(io.ErrUnexpectedEOF)
		}
	}
}

// seen counts the recorded reads of a resource for which of is true.
func (w *wire) seen(resource string, of func(request) bool) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if r.resource == resource && of(r) {
			n++
		}
	}
	return n
}

func (w *wire) openWatches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.bodies)
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (p passage) WrappedRoundTripper() http.RoundTripper { return p.next }

func (w passage) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.ask(&w.before, r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	if r.Method != http.MethodGet {
		return w.answer(r)
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	rec := request{resource: parts[len(parts)-1], watch: r.URL.Query().Get("watch") == "true", query: r.URL.Query()}
	w.mu.Lock()
	n := len(w.requests)
	w.requests = append(w.requests, rec)
	failing := w.failing[rec.resource]
	w.mu.Unlock()
	if failing {
		return &http.Response{
			StatusCode: http.StatusServiceUnavailable, Request: r, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader("switched off by the test")),
		}, nil
	}
	resp, err := w.next.RoundTrip(r)
	if err == nil {
		w.mu.Lock()
		w.requests[n].status = resp.StatusCode
		w.mu.Unlock()
	}
	if err != nil || !rec.watch || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	b := &lateBody{wire: w.wire, resource: rec.resource, body: resp.Body, notify: make(chan struct{}, 1)}
	w.mu.Lock()
	w.bodies[b] = struct{}{}
	w.mu.Unlock()
	go b.fill()
	resp.Body = b
	return resp, nil
}

// lateBody returns the data of a watch after the delay that is in force when it is read.
type lateBody struct {
	wire     *wire
	resource string
	body     io.ReadCloser
	notify   chan struct{}

	mu     sync.Mutex
	chunks []lateChunk
	err    error
	closed bool
}

type lateChunk struct {
	data []byte
	came time.Time
}

func (b *lateBody) wake() {
	select {
	case b.notify <- struct{}{}:
	default:
	}
}

func (b *lateBody) fill() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := b.body.Read(buffer)
		b.mu.Lock()
		if n > 0 && b.err == nil { // what comes after a cut is lost, like what was under way
			b.chunks = append(b.chunks, lateChunk{bytes.Clone(buffer[:n]), time.Now()})
		}
		if err != nil && b.err == nil {
			b.err = err
		}
		b.mu.Unlock()
		b.wake()
		if err != nil {
			return
		}
	}
}

// end makes the reader see an error at once.
func (b *lateBody) end(err error) {
	b.mu.Lock()
	b.chunks, b.err = nil, err
	b.mu.Unlock()
	b.wake()
}

func (b *lateBody) Read(p []byte) (int, error) {
	for {
		// before the lock: a cut takes the two locks in the other order
		delay := b.wire.delayOf(b.resource)
		b.mu.Lock()
		wait := time.Hour
		switch {
		case b.closed:
			b.mu.Unlock()
			return 0, io.ErrClosedPipe
		case len(b.chunks) > 0:
			if wait = time.Until(b.chunks[0].came.Add(delay)); wait <= 0 {
				n := copy(p, b.chunks[0].data)
				if b.chunks[0].data = b.chunks[0].data[n:]; len(b.chunks[0].data) == 0 {
					b.chunks = b.chunks[1:]
				}
				b.mu.Unlock()
				return n, nil
			}
		case b.err != nil:
			err := b.err
			b.mu.Unlock()
			return 0, err
		}
		b.mu.Unlock()
		t := time.NewTimer(wait)
		select {
		case <-b.notify:
		case <-t.C:
		}
		t.Stop()
	}
}

func (b *lateBody) Close() error {
	b.wire.mu.Lock()
	delete(b.wire.bodies, b)
	b.wire.mu.Unlock()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wake()
	return b.body.Close()
}

// client returns a client of the cluster through the wire.
func (w *wire) client(t testing.TB, options ...kates.Option) *kates.Client {
	t.Helper()
	c, err := tapped(kates.NewClientFromRESTConfig(w.config(), append([]kates.Option{kates.WithInterval(10 * time.Millisecond)}, options...)...))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// foreign returns another program's client.
func foreign(t testing.TB) dynamic.Interface {
	t.Helper()
	d, err := dynamic.NewForConfig(serverOf(t))
	require.NoError(t, err)
	return d
}
