package connection

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/kates-go/kates/internal/client/apipath"
)

// Bounds are how many bytes an answer may have, decompressed: client-go reads most of them as a
// whole. 0 is no bound.
type Bounds struct {
	// Object is for an object, and an error. List is for a page of a list. General is for what has no
	// objects: discovery, OpenAPI's index and documents, the version. An open watch, and the log of a
	// pod, may bring any number.
	Object, List, General int64
	// Base is the path of the server.
	Base string
}

// Transport returns a transport whose answers keep the bounds: an answer that is longer ends with
// an error.
func (b Bounds) Transport(next http.RoundTripper) http.RoundTripper { return &bounded{next, b} }

type bounded struct {
	next http.RoundTripper
	Bounds
}

func (t *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	if most := t.of(r, response.StatusCode); most > 0 {
		response.Body = &boundedBody{ReadCloser: response.Body, left: most, most: most, shared: shareOf(r.Context())}
	}
	return response, nil
}

// WrappedRoundTripper returns the transport beneath.
func (t *bounded) WrappedRoundTripper() http.RoundTripper { return t.next }

// of is the bound of the answer to a request.
func (t *bounded) of(r *http.Request, status int) int64 {
	if status >= http.StatusMultipleChoices || r.Method != http.MethodGet {
		return t.Object
	}
	p := apipath.Parse(r.URL.Path, t.Base)
	switch verb := p.Verb(r.Method, r.URL.Query()); {
	case p.Sort == apipath.General:
		return t.General
	case verb == "watch", p.Subresource == "log" && p.Resource == "pods" && p.Group == "":
		return 0
	case verb == "list":
		return t.List
	}
	return t.Object
}

// errLongAnswer is an answer that is longer than its bound.
var errLongAnswer = errors.New("the server's answer is longer than the client reads (Tuning.MaxObjectBytes)")

// boundedBody is the body of an answer, up to its bound.
type boundedBody struct {
	io.ReadCloser
	left, most int64  // left is negative when the bound was passed
	shared     *share // of a bound for several answers; nil: there is none
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d bytes", errLongAnswer, b.most)
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more says that the bound is passed
	}
	n, err := b.ReadCloser.Read(p)
	if over := b.shared.takeBytes(int64(n)); over != nil {
		return 0, over
	}
	if b.left -= int64(n); b.left < 0 {
		return n - 1, fmt.Errorf("%w: it has more than %d bytes", errLongAnswer, b.most)
	}
	return n, err
}
