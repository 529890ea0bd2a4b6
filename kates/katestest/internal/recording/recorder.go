package recording

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/client/apipath"
)

// Recorder is a transport that writes what a client reads to a file. It changes nothing of it. It
// is safe for concurrent use. Bodies of the answers are written from the goroutines that read
// them.
type Recorder struct {
	writer   *Writer
	redactor *redactor
	base     string // path of the server

	mu     sync.Mutex
	last   uint64   // the id of the latest request
	tokens [][]byte // that the client used
}

// NewRecorder returns a recorder that writes to a writer. The server's URL has the path base. If
// secrets is true, the recorder takes the data of Secrets out. The function, which may be nil,
// takes more out of any object. Several goroutines may call the function at once.
func NewRecorder(w *Writer, base string, secrets bool, more func(*unstructured.Unstructured)) *Recorder {
	return &Recorder{writer: w, redactor: newRedactor(secrets, more), base: base}
}

// Wrap puts the recorder in front of a transport.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper { return &taps{r, next} }

// taps is the recorder in front of one transport.
type taps struct {
	*Recorder
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (t *taps) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *taps) RoundTrip(req *http.Request) (*http.Response, error) {
	t.learn(req.Header.Get("Authorization"))
	what := targetOf(req.Method, req.URL.Path, req.URL.Query(), t.base)
	if what.verb == other || req.Header.Get("If-None-Match") != "" {
		return t.next.RoundTrip(req)
	}
	id, path := t.number(), req.URL.Path
	if below, ok := apipath.Within(path, t.base); ok {
		path = below // a replay has no base
	}
	accept := req.Header.Get("Accept")
	t.writer.put(head{Type: typeRequest, ID: id, Path: path, Query: req.URL.RawQuery, Accept: accept}, nil)
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		cause := causeCut
		if req.Context().Err() != nil {
			cause = causeClient
		}
		t.writer.put(head{Type: typeEnd, ID: id, Cause: cause}, nil)
		return nil, err
	}
	kind := resp.Header.Get("Content-Type")
	t.writer.put(head{Type: typeAnswer, ID: id, Status: resp.StatusCode, ContentType: kind}, nil)
	resp.Body = t.tap(id, what, resp)
	return resp, nil
}

func (r *Recorder) number() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	return r.last
}

// shortestToken is the length of the shortest token that is no common text.
const shortestToken = 16

// mostTokens bounds the tokens that are remembered. A client renews its own every hour or so.
const mostTokens = 1000

// learn remembers a token that the client uses: no answer that has it is recorded.
func (r *Recorder) learn(authorization string) {
	_, token, _ := strings.Cut(authorization, " ")
	if token = strings.TrimSpace(token); len(token) < shortestToken {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.tokens {
		if string(known) == token {
			return
		}
	}
	if r.tokens = append(r.tokens, []byte(token)); len(r.tokens) > mostTokens {
		r.tokens = r.tokens[1:]
	}
}

// tells reports whether a text has a token of the client.
func (r *Recorder) tells(text []byte) bool {
	r.mu.Lock()
	tokens := r.tokens
	r.mu.Unlock()
	for _, token := range tokens {
		if bytes.Contains(text, token) {
			return true
		}
	}
	return false
}

// tap is the body of an answer. One goroutine reads it; Close may be called by another. Whoever
// comes last, the reader or Close, records the end: so the user's function is called without a
// lock.
type tap struct {
	recorder *Recorder
	id       uint64
	what     target
	form     string
	watch    bool
	inner    io.ReadCloser

	held  []byte // what has come, and is not recorded yet
	ended bool
	lost  bool // something was withheld; the rest is, too

	mu      sync.Mutex
	reading bool // the fields above belong to Read
	closed  bool
}

func (r *Recorder) tap(id uint64, what target, resp *http.Response) *tap {
	t := &tap{
		recorder: r, id: id, what: what, inner: resp.Body, watch: what.verb == watching && succeeded(resp.StatusCode),
		form: clausesOf(resp.Header.Get("Content-Type"))[0].form,
	}
	switch {
	case !succeeded(resp.StatusCode):
		t.what.verb = refusing
	case what.verb == unclear:
		t.withhold("its path is none of the server's API: nobody knows what is in it")
	case resp.StatusCode == http.StatusPartialContent:
		t.withhold("it is a part of an answer")
	}
	if !t.lost && resp.Header.Get("Content-Encoding") != "" {
		t.withhold("its body is compressed in a way that is not unpacked here")
	}
	return t
}

func (t *tap) Read(p []byte) (int, error) {
	if closed := t.begin(); closed {
		return t.inner.Read(p)
	}
	n, err := t.inner.Read(p)
	t.came(p[:n])
	closed := t.isClosed()
	switch {
	case closed, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		t.end(causeClient)
	case errors.Is(err, io.EOF):
		t.end(causeServer)
	case err != nil:
		t.end(causeCut)
	}
	t.mu.Lock()
	t.reading = false
	late := t.closed && !closed
	t.mu.Unlock()
	if late {
		t.end(causeClient)
	}
	return n, err
}

// begin marks the beginning of a Read.
func (t *tap) begin() (closed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading = !t.closed
	return t.closed
}

func (t *tap) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

func (t *tap) Close() error {
	err := t.inner.Close()
	t.mu.Lock()
	mine := !t.reading && !t.closed
	t.closed = true
	t.mu.Unlock()
	if mine {
		t.end(causeClient)
	}
	return err
}

// came takes bytes in. What is recorded of a watch is whole events.
func (t *tap) came(p []byte) {
	if t.lost || t.ended {
		return
	}
	t.held = append(t.held, p...)
	for t.watch && !t.lost {
		n := eventLength(t.held)
		if n == 0 {
			return
		}
		first := t.held[:n]
		t.held = bytes.Clone(t.held[n:])
		t.part(first)
	}
}

// eventLength returns how many bytes the first event has, or 0 while it is not whole. Events in
// JSON end with a line feed, which is nowhere else in them.
func eventLength(held []byte) int {
	switch {
	case len(held) == 0:
		return 0
	case held[0] >= '\t':
		return bytes.IndexByte(held, '\n') + 1
	case len(held) < 4:
		return 0
	}
	if n := int(binary.BigEndian.Uint32(held)) + 4; n <= len(held) {
		return n
	}
	return 0
}

// end records the end, once.
func (t *tap) end(cause string) {
	if t.ended {
		return
	}
	t.ended = true
	if !t.watch && len(t.held) > 0 && !t.lost {
		t.part(t.held)
	}
	t.held = nil
	t.recorder.writer.put(head{Type: typeEnd, ID: t.id, Cause: cause}, nil)
}

// part records a part, without the secrets in it.
func (t *tap) part(data []byte) {
	r := t.recorder
	var err error
	if r.redactor.concerns(t.what) || t.form == formTable {
		switch {
		case t.what.verb == asking, t.what.verb == refusing:
			err = withoutObjects(data)
		case t.form == formTable:
			err = errors.New("it is a table")
		case t.watch:
			data, err = r.redactor.event(data, t.what.resource)
		case t.what.verb == listing:
			data, err = r.redactor.list(data, t.what.resource)
		default:
			data, err = r.redactor.single(data, t.what.resource)
		}
	}
	switch {
	case err != nil:
		t.withhold(err.Error())
	case r.tells(data):
		t.withhold("it has a token of the client")
	default:
		r.writer.put(head{Type: typePart, ID: t.id}, data)
	}
}

// withhold says that something is not in the file.
func (t *tap) withhold(why string) {
	t.lost, t.held = true, nil
	t.recorder.writer.put(head{Type: typeWithheld, ID: t.id, Why: why}, nil)
}
