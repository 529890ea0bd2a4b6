package e2e

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// overloaded is a proxy whose upstream answers too late: the server has stored a write of config
// maps, and the proxy answers with a code and a Retry-After. What the server refuses passes as it
// is.
type overloaded struct {
	code int

	mu     sync.Mutex
	stored []string // methods of the writes that were stored, and whose answers were replaced
}

type throughOverloaded struct {
	*overloaded
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (p throughOverloaded) WrappedRoundTripper() http.RoundTripper { return p.next }

func (p throughOverloaded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.next.RoundTrip(r)
	if err != nil || r.Method == http.MethodGet || resp.StatusCode >= 300 ||
		!strings.Contains(r.URL.Path, "/configmaps") {
		return resp, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored = append(p.stored, r.Method)
	return &http.Response{
		StatusCode: p.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/plain"}, "Retry-After": {"0"}},
		Body:   io.NopCloser(strings.NewReader("upstream request timeout")),
	}, nil
}

// config is the server's configuration, through the proxy.
func (o *overloaded) config(t *testing.T) *rest.Config {
	c := rest.CopyConfig(serverOf(t))
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return throughOverloaded{o, next} })
	return c
}

// take returns which writes were stored since it was called last.
func (o *overloaded) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	stored := o.stored
	o.stored = nil
	return stored
}

// doubtful are writes of a config map x whose data say n=0.
var doubtful = []struct {
	name, method string
	do           func(ctx context.Context, c *kates.Client, ns string) error
	done         func(all []*kates.Unstructured) bool
}{
	{"Create", http.MethodPost, func(ctx context.Context, c *kates.Client, ns string) error {
		return c.Create(ctx, withNumber(ns, "new", "1"), nil)
	}, func(all []*kates.Unstructured) bool { return len(all) == 2 }},
	{"Create with generateName", http.MethodPost, func(ctx context.Context, c *kates.Client, ns string) error {
		u := withNumber(ns, "", "1")
		u.SetGenerateName("new-")
		return c.Create(ctx, u, nil)
	}, func(all []*kates.Unstructured) bool { return len(all) == 2 }},
	{"Update", http.MethodPut, func(ctx context.Context, c *kates.Client, ns string) error {
		return c.Update(ctx, withNumber(ns, "x", "1"), nil)
	}, isOne},
	{"Upsert", http.MethodPut, func(ctx context.Context, c *kates.Client, ns string) error {
		return c.Upsert(ctx, nil, withNumber(ns, "x", "1"), nil)
	}, isOne},
	{"Patch", http.MethodPatch, func(ctx context.Context, c *kates.Client, ns string) error {
		return c.Patch(ctx, withNumber(ns, "x", ""), kates.MergePatchType, []byte(`{"data":{"n":"1"}}`), nil)
	}, isOne},
	{"Apply", http.MethodPatch, func(ctx context.Context, c *kates.Client, ns string) error {
		return c.Apply(ctx, withNumber(ns, "x", "1"), nil, kates.ForceOwnership())
	}, isOne},
	{"Modify", http.MethodPatch, func(ctx context.Context, c *kates.Client, ns string) error {
		_, err := kates.Modify(ctx, c, withNumber(ns, "x", ""), func(cm *kates.ConfigMap) error {
			n, err := strconv.Atoi(cm.Data["n"])
			cm.Data["n"] = strconv.Itoa(n + 1)
			return err
		})
		return err
	}, isOne},
	{"Delete", http.MethodDelete, func(ctx context.Context, c *kates.Client, ns string) error {
		return c.Delete(ctx, withNumber(ns, "x", ""), nil)
	}, func(all []*kates.Unstructured) bool { return len(all) == 0 }},
}

func isOne(all []*kates.Unstructured) bool { return len(all) == 1 && dataOf(all[0], "n") == "1" }

func withNumber(ns, name, n string) *kates.Unstructured {
	u := object(configMaps, ns, name, nil)
	u.Object["data"] = map[string]any{"n": n}
	return u
}

func TestG4AWriteThatWasStoredAndAnswered5xxIsNotSentAgainAndTheWatchTells(t *testing.T) {
	t.Parallel()
	for i, w := range doubtful {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			ns, ctx := namespace(t), t.Context()
			maps := foreign(t).Resource(configMaps).Namespace(ns)
			_, err := maps.Create(ctx, withNumber(ns, "x", "0"), metav1.CreateOptions{})
			require.NoError(t, err)
			proxy := &overloaded{code: []int{500, 502, 503, 504}[i%4]}
			c, err := tapped(kates.NewClientFromRESTConfig(proxy.config(t), kates.WithInterval(0)))
			require.NoError(t, err)
			t.Cleanup(c.Close)
			snapshots, err := kates.Watch[struct {
				All []*kates.Unstructured `kates:"configmaps"`
			}](ctx, c, kates.Query{Name: "All", Namespace: ns})
			require.NoError(t, err)
			first, err := read(ctx, snapshots)
			require.NoError(t, err)
			require.Len(t, first.All, 1)

			err = w.do(ctx, c, ns)
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
			assert.EqualValues(t, proxy.code, status.Status().Code, "%v", err)
			require.Equal(t, []string{w.method}, proxy.take(), "stored once")
			for _, q := range c.Status().Queries {
				assert.Zero(t, q.Pending+q.Unsettled, "nothing is held for it")
			}
			for snap, err := range snapshots.All(ctx) {
				require.NoError(t, err)
				if w.done(snap.All) {
					break
				}
			}
			list, err := maps.List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			stored := make([]*kates.Unstructured, 0, len(list.Items))
			for i := range list.Items {
				stored = append(stored, &list.Items[i])
			}
			assert.True(t, w.done(stored), "%v", stored)
		})
	}
}

// read returns the first snapshot.
func read[S any](ctx context.Context, snapshots *kates.Snapshots[S]) (*S, error) {
	for snap, err := range snapshots.All(ctx) {
		return snap, err
	}
	return nil, context.Cause(ctx)
}
