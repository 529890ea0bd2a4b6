package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Bounds are how many bytes an answer may have, decompressed: client-go reads most of them as a
// whole. 0 is no bound.
type Bounds struct {
	// Object is for an object, an error, and discovery. List is for a page of a list. An open
	// watch, and a log, may bring any number.
	Object, List int64
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
		response.Body = &boundedBody{ReadCloser: response.Body, left: most, most: most}
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
	_, path, found := strings.Cut(r.URL.Path, "/api/v1/")
	if !found {
		var group []string
		if _, path, found = strings.Cut(r.URL.Path, "/apis/"); found {
			group = strings.SplitN(path, "/", 3)
		}
		if len(group) < 3 {
			return t.Object // discovery
		}
		path = group[2]
	}
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	query := r.URL.Query()
	switch {
	case query.Get("watch") != "", last == "log":
		return 0
	case len(parts) == 1, len(parts) == 3 && parts[0] == "namespaces":
		return t.List
	}
	return t.Object
}

// errLongAnswer is an answer that is longer than its bound.
var errLongAnswer = errors.New("the server's answer is longer than the client reads (Tuning.MaxObjectBytes)")

// boundedBody is the body of an answer, up to its bound.
type boundedBody struct {
	io.ReadCloser
	left, most int64 // left is negative when the bound was passed
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d bytes", errLongAnswer, b.most)
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more says that the bound is passed
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, fmt.Errorf("%w: it has more than %d bytes", errLongAnswer, b.most)
	}
	return n, err
}
