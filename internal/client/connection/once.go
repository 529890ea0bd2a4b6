package connection

import (
	"maps"
	"net/http"
)

// Once returns a transport whose answers do not make client-go send a write twice. Use it as the
// outermost wrapper of a client, so that it sees what client-go sees.
//
// client-go sends a request of any verb again, up to ten times, if the answer is 429 or 5xx and
// has a Retry-After. A server that says 5xx may have stored what it was sent: etcd was slow, or a
// proxy lost the answer. So for writes the header is taken off every 5xx. The writer gets the
// error, and its outcome is as unknown as if the connection had been lost. This is right for every
// verb:
//
//   - POST: a second one makes a second object (generateName), evicts twice, issues another token,
//     or says that the object exists, though the writer has made it.
//   - PUT and PATCH without a precondition: a second one overwrites what somebody wrote between the
//     two. A JSON patch may append twice.
//   - PUT and PATCH with a precondition: the second one conflicts with the first. The writer takes
//     its own write for that of another, reads the object, and makes its change once more: a
//     counter goes up twice.
//   - DELETE without a precondition: a second one deletes what was made under the name since. With
//     one the answer is "not found" or a conflict, though the writer has deleted the object.
//   - Server-side apply: a second one takes back what the field manager wrote between the two.
//
// 429 means that the server has not begun: API priority and fairness refuses before anything else,
// an eviction is refused before the pod is deleted. Such a write is sent again, when the server
// says so. Reads are always sent again.
func Once(next http.RoundTripper) http.RoundTripper { return &once{next} }

type once struct{ next http.RoundTripper }

// retryAfter is the header of an answer that makes client-go send the request again.
const retryAfter = "Retry-After"

func (t *once) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode < http.StatusInternalServerError || reads[r.Method] {
		return response, err
	}
	if response.Header.Get(retryAfter) == "" {
		return response, nil
	}
	final := *response // it may be shared
	final.Header = maps.Clone(response.Header)
	final.Header.Del(retryAfter)
	return &final, nil
}

// WrappedRoundTripper returns the transport beneath.
func (t *once) WrappedRoundTripper() http.RoundTripper { return t.next }

// reads are the methods of requests that change nothing.
var reads = map[string]bool{"": true, http.MethodGet: true, http.MethodHead: true, http.MethodOptions: true}
