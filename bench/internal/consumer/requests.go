package consumer

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// requests records the requests to the server, and counts the bytes of the answers, as the client
// reads them.
type requests struct {
	mu       sync.Mutex
	made     []string
	received atomic.Int64
}

// through returns a configuration whose requests are recorded.
func (r *requests) through(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{r, next} })
	return c
}

func (r *requests) soFar() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.made...)
}

type recorder struct {
	requests *requests
	next     http.RoundTripper
}

func (r recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	r.requests.mu.Lock()
	what := q.Method + " " + q.URL.Path
	if w := q.URL.Query().Get("watch"); w == "true" || w == "1" {
		what = "WATCH " + q.URL.Path
	}
	r.requests.made = append(r.requests.made, what)
	r.requests.mu.Unlock()
	answer, err := r.next.RoundTrip(q)
	if err == nil && answer.Body != nil {
		answer.Body = counted{answer.Body, &r.requests.received}
	}
	return answer, err
}

// counted is a body whose bytes are counted.
type counted struct {
	io.ReadCloser
	read *atomic.Int64
}

func (c counted) Read(into []byte) (int, error) {
	n, err := c.ReadCloser.Read(into)
	c.read.Add(int64(n))
	return n, err
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (r recorder) WrappedRoundTripper() http.RoundTripper { return r.next }
