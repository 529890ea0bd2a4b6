package trial

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/tested"
)

// ErrStopped is the error of all requests of a program that was stopped.
var ErrStopped = errors.New("the test has stopped the program")

// Crash says at which of its writes a program is stopped, counted from 1. After means that the
// server has stored the write, and the program gets no answer.
type Crash struct {
	Write int
	After bool
}

// recorder is the transport of one program.
type recorder struct {
	classify func(*http.Request) Call
	ignored  func(Call) bool
	crash    Crash
	ctx      context.Context // the program's
	cancel   context.CancelFunc
	bubble   bool

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something below has changed
	calls   []*Call       // without ignored ones
	seen    map[string]map[string]any
	clients []any
	open    int // how many calls are not over
	conns   map[net.Conn]struct{}
	writes  int
	stopped bool
	crashed *Call  // the write at which the program was stopped
	late    []Call // requests after the program has returned
	ended   bool   // it has returned
}

func newRecorder(ctx context.Context, o Options, bubble bool, crash Crash) *recorder {
	ctx, cancel := context.WithCancel(ctx)
	return &recorder{
		ctx: ctx, cancel: cancel,
		classify: o.Classify, ignored: o.Ignored, crash: crash, bubble: bubble,
		changed: make(chan struct{}), seen: map[string]map[string]any{}, conns: map[net.Conn]struct{}{},
	}
}

// wake wakes whoever waits. Called with mu held.
func (r *recorder) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// config returns the program's configuration: with the recorder, and with connections of its own.
func (r *recorder) config(of *rest.Config) *rest.Config {
	c := rest.CopyConfig(of)
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return r.keep(conn)
	}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{r, next} })
	return c
}

func (r *recorder) keep(conn net.Conn) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		_ = conn.Close() // nobody has it
		return nil, ErrStopped
	}
	r.conns[conn] = struct{}{}
	return conn, nil
}

// halt ends the program's context. What it sends from now on fails.
func (r *recorder) halt() {
	r.mu.Lock()
	r.stopped = true
	r.wake()
	r.mu.Unlock()
	r.cancel()
}

// cut is halt that also breaks the program's connections.
func (r *recorder) cut() {
	r.halt()
	r.mu.Lock()
	conns := r.conns
	r.conns = nil
	r.mu.Unlock()
	for conn := range conns {
		_ = conn.Close() // it is broken on purpose
	}
}

var _ tested.Witness = (*transport)(nil)

// transport puts a recorder in front of a transport.
type transport struct {
	recorder *recorder
	next     http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// MadeClient implements [tested.Witness].
func (t *transport) MadeClient(client any) {
	t.recorder.mu.Lock()
	defer t.recorder.mu.Unlock()
	t.recorder.clients = append(t.recorder.clients, client)
}

// onItsWay is how long a call takes at least in a bubble. The clock stands still there while the
// program works, and a program that writes the time would write the same one for ever.
const onItsWay = time.Millisecond

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	r := t.recorder
	if r.ctx.Err() != nil {
		time.Sleep(time.Millisecond) // if it tries again and again, time has to pass in a bubble
	}
	call, fate := r.begin(req)
	if fate == refused {
		if req.Body != nil {
			_ = req.Body.Close() // the contract of RoundTripper demands it
		}
		if call == r.crashedAt() {
			r.halt()
		}
		return nil, ErrStopped
	}
	if call == nil {
		return t.next.RoundTrip(req)
	}
	if r.bubble {
		time.Sleep(onItsWay)
	}
	if fate == sentOff {
		req = req.WithContext(context.WithoutCancel(req.Context()))
	}
	var a answer
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		a, err = read(resp)
	}
	r.end(call, a)
	if fate == sentOff {
		r.halt()
		if resp != nil {
			_ = resp.Body.Close() // the program does not get it
		}
		return nil, ErrStopped
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// fate is what becomes of a request.
type fate int

const (
	answered fate = iota
	refused       // not sent
	sentOff       // sent, and the program is stopped before it has the answer
)

// streams are subresources whose answers are no objects, and may have no end.
var streams = map[string]bool{"log": true, "exec": true, "attach": true, "portforward": true, "proxy": true}

// begin records a request. The call is nil if it does not count.
func (r *recorder) begin(req *http.Request) (*Call, fate) {
	c := r.classify(req)
	if c.Resource != "" && c.Name == "" && c.Verb == "create" {
		c.Name = sentName(req)
	}
	reflects := c.Verb == "watch" || c.Verb == "list"
	counts := c.Resource != "" && !reflects && !streams[c.Subresource] && !r.ignored(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		r.late = append(r.late, c)
	}
	switch {
	case r.stopped:
		return &c, refused
	case !counts:
		if !r.bubble {
			r.wake() // the program lives
		}
		return nil, answered
	}
	r.calls = append(r.calls, &c)
	defer r.wake()
	if c.writes() {
		r.writes++
		if r.writes == r.crash.Write {
			r.crashed = &c
			if !r.crash.After {
				r.stopped = true
				return &c, refused
			}
		}
	}
	c.open = true
	r.open++
	if r.crashed == &c {
		return &c, sentOff
	}
	return &c, answered
}

// end records that a call is over. Until then, nobody changes it.
func (r *recorder) end(c *Call, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.over(a)
	c.Before = r.seen[c.key()]
	if c.Object != nil {
		r.seen[c.key()] = c.Object
	}
	r.open--
	r.wake()
}

func (r *recorder) crashedAt() *Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crashed
}

// position is what a recorder has seen so far.
type position struct {
	calls, open int
	crashed     bool
	changed     <-chan struct{}
}

func (r *recorder) position() position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return position{calls: len(r.calls), open: r.open, crashed: r.crashed != nil && r.stopped, changed: r.changed}
}

// since returns copies of the calls from one on.
func (r *recorder) since(first int) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Call
	for _, c := range r.calls[first:] {
		all = append(all, *c)
	}
	return all
}
