package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// The API server has no cache of its own, so that it knows only what etcd knows.
func TestG5EtcdIsCompacted(t *testing.T) {
	t.Parallel()
	c := breakable(t, "watch-cache=false")

	// What a watch missed is lost. It takes one list, and nothing is shown twice.
	t.Run("while a client is disconnected", func(t *testing.T) {
		all := watching(t, c.Config, c.Config, nil)
		for round := 1; round <= 2; round++ {
			before := map[*follower]int{}
			heal := map[*follower]func(){}
			all.each(func(f *follower) {
				before[f], heal[f] = f.whole(), f.network.Refuse()
				f.network.Reset()
			})
			all.change(round)
			require.NoError(t, c.Compact(t.Context()))
			all.each((*follower).down)
			for _, f := range heal {
				f()
			}
			all.each(func(f *follower) {
				f.arrive()
				assert.NoError(t, f.acc.Ready())
				assert.Equal(t, round, f.acc.Status().Queries[0].Restarts, "it could not be resumed")
				assert.Equal(t, before[f]+1, f.whole())
				f.quiet()
			})
		}
	})

	// The rest of a list is lost. The list begins anew, and the part that was read is not shown.
	t.Run("between the pages of a list", func(t *testing.T) {
		for _, kind := range []string{"config maps, paged", "hosts, paged"} {
			f := newFollowerOf(t, c.Config, "ns", watchers[kind].kind, nil, kates.Tuning{Lists: kates.PagedLists, PageSize: 2})
			f.change(10)
			f.change(11)
			pages := katestest.Match{Verb: "list", Resource: f.kind.Resource, Where: func(r katestest.Request) bool { return r.Query.Get("continue") != "" }}
			third := f.faults.On(pages).After(1).Times(1).Hold()
			f.start()
			f.wait(func() bool { return third.Hits() == 1 }, "the third page is asked for")
			require.NoError(t, f.others.Resource(f.kind).Namespace("ns").Delete(t.Context(), "o-10-0", metav1.DeleteOptions{}), "it is on a page that was read, or not")
			f.change(12)
			require.NoError(t, c.Compact(t.Context()))
			third.Stop()
			f.arrive()
			assert.Equal(t, 1, f.updates, "G1: no part of a list is shown")
			var answers []int
			for _, r := range f.faults.Requests(pages) {
				answers = append(answers, r.Status)
			}
			assert.Equal(t, []int{http.StatusOK, http.StatusGone}, answers)
			f.quiet()
		}
	})
}

// shortly limits every watch to a few seconds: the server sends a bookmark two seconds before it
// ends.
type shortly struct{ next http.RoundTripper }

func (s shortly) RoundTrip(r *http.Request) (*http.Response, error) {
	if q := r.URL.Query(); q.Get("watch") == "true" {
		q.Set("timeoutSeconds", "3")
		r = r.Clone(r.Context())
		r.URL.RawQuery = q.Encode()
	}
	return s.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (s shortly) WrappedRoundTripper() http.RoundTripper { return s.next }

// A watch does not go on from the last object that it has seen, since the server forgets that
// version.
func TestG5AWatchGoesOnFromTheLatestBookmark(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]kates.Option{"streamed": nil, "paged": {kates.Tuning{Lists: kates.PagedLists, PageSize: 2}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, func(c *rest.Config) {
				c.Wrap(func(next http.RoundTripper) http.RoundTripper { return shortly{next} })
			}, options...)
			f.start()
			f.change(0)
			f.arrive()
			lastRV := uint64(0)
			for _, o := range f.shown {
				lastRV = max(lastRV, number(o.objectRV))
			}
			f.anywhere()
			var bookmarkRV uint64
			require.Eventually(t, func() bool { // deletions count, too: they come before the rest
				bookmarkRV = number(f.acc.Status().Queries[0].Version)
				return bookmarkRV > lastRV+1
			}, patience, time.Millisecond)
			began := len(f.faults.Requests(resumed))
			f.wait(func() bool { return len(f.faults.Requests(resumed)) > began }, "the watch is resumed")
			resumedRV := f.faults.Requests(resumed)[began].Query.Get("resourceVersion")
			assert.GreaterOrEqual(t, number(resumedRV), bookmarkRV, "the objects are at %d", lastRV)
			assert.Equal(t, 1, f.whole())
			f.change(1)
			f.arrive()
			f.quiet()
		})
	}
}

// anywhere raises the server's version by a write that the follower does not watch.
func (f *follower) anywhere() {
	f.t.Helper()
	in := f.others.Resource(f.kind).Namespace(namespace(f.t))
	made, err := in.Create(f.t.Context(), object(f.kind, "", "x", nil), metav1.CreateOptions{})
	require.NoError(f.t, err)
	require.NoError(f.t, in.Delete(f.t.Context(), made.GetName(), metav1.DeleteOptions{}))
}
