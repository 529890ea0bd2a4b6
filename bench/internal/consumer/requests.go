package consumer

import (
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// requests records the requests to the server.
type requests struct {
	mu   sync.Mutex
	made []string
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
	return r.next.RoundTrip(q)
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (r recorder) WrappedRoundTripper() http.RoundTripper { return r.next }
