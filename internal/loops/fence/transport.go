package fence

import (
	"io"
	"net/http"
	"slices"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Transport returns a transport that sends no write under a context whose lease is over. Use it
// as the innermost wrapper of a client, as near to the wire as possible.
func Transport(next http.RoundTripper) http.RoundTripper { return &transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip refuses a write that must not be sent any more, with the error of the fence.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	lockorder.CallOut("a request")
	if of(r.Context()) == nil || slices.Contains(reads, r.Method) {
		return t.next.RoundTrip(r)
	}
	if err := Check(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // every RoundTripper closes the body
		}
		return nil, err
	}
	if r.Body == nil || r.Body == http.NoBody {
		return t.next.RoundTrip(r)
	}
	fenced := *r // r belongs to the caller
	fenced.Body = &body{r.Body, r}
	if again := r.GetBody; again != nil {
		fenced.GetBody = func() (io.ReadCloser, error) {
			b, err := again()
			if err != nil {
				return nil, err
			}
			return &body{b, r}, nil
		}
	}
	return t.next.RoundTrip(&fenced)
}

// WrappedRoundTripper returns the transport beneath.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

var reads = []string{"", http.MethodGet, http.MethodHead, http.MethodOptions}

// body is read when the connection exists. Without all of it the server has no whole request.
type body struct {
	io.ReadCloser
	request *http.Request
}

func (b *body) Read(p []byte) (int, error) {
	if err := Check(b.request.Context()); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}
