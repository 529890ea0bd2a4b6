package connection

import (
	"io"
	"net/http"
)

// maxErrorBytes is how much is read of an answer that is an error. client-go reads all of it into
// memory, however long it is. What is behind the bound is cut off: then the error is that of the
// HTTP status alone.
const maxErrorBytes = 1 << 20

// briefErrors is a transport that cuts off the errors of a server that never end.
type briefErrors struct{ next http.RoundTripper }

func (t *briefErrors) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices {
		response.Body = &cutOff{response.Body, io.LimitReader(response.Body, maxErrorBytes)}
	}
	return response, err
}

// WrappedRoundTripper returns the transport beneath.
func (t *briefErrors) WrappedRoundTripper() http.RoundTripper { return t.next }

// cutOff is the beginning of a body.
type cutOff struct {
	io.Closer
	io.Reader
}
