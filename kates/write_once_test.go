package kates_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// lossy is a proxy in front of a site. It answers 503 with a Retry-After to each write that the
// site has stored.
type lossy struct {
	*site
	mu     sync.Mutex
	stored map[string]int // by method
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		l.site.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	switch r.Method {
	case http.MethodPost: // each one makes an object
		name := "new-" + rand.Text()
		l.put("configmaps", name, thing("ConfigMap", name, 2))
	case http.MethodPatch: // all patches of the test are alike
		l.put("configmaps", "x", thing("ConfigMap", "x", 2))
	default:
		l.site.ServeHTTP(answer, r)
	}
	if answer.Code < 300 {
		l.mu.Lock()
		l.stored[r.Method]++
		l.mu.Unlock()
		w.Header().Set("Retry-After", "0")
		answerStatus(w, http.StatusServiceUnavailable, "the answer is lost")
		return
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// TestG4NoWriteIsStoredTwiceAndTheWatchTellsWhatBecameOfIt: the outcome is unknown, as after a
// lost connection. The write is an error and no own write.
func TestG4NoWriteIsStoredTwiceAndTheWatchTellsWhatBecameOfIt(t *testing.T) {
	writes := map[string]struct {
		method string
		count  int // config maps after it
		do     func(context.Context, *kates.Client) error
	}{
		"Create": {http.MethodPost, 2, func(ctx context.Context, c *kates.Client) error {
			return c.Create(ctx, thing("ConfigMap", "new", 2), nil)
		}},
		"Create with generateName": {http.MethodPost, 2, func(ctx context.Context, c *kates.Client) error {
			u := thing("ConfigMap", "", 2)
			u.SetGenerateName("new-")
			return c.Create(ctx, u, nil)
		}},
		"Update": {http.MethodPut, 1, func(ctx context.Context, c *kates.Client) error {
			return c.Update(ctx, thing("ConfigMap", "x", 2), nil)
		}},
		"Upsert": {http.MethodPut, 1, func(ctx context.Context, c *kates.Client) error {
			return c.Upsert(ctx, nil, thing("ConfigMap", "x", 2), nil)
		}},
		"Patch": {http.MethodPatch, 1, func(ctx context.Context, c *kates.Client) error {
			return c.Patch(ctx, thing("ConfigMap", "x", 0), types.MergePatchType, []byte(`{"metadata":{"labels":{"n":"2"}}}`), nil)
		}},
		"Apply": {http.MethodPatch, 1, func(ctx context.Context, c *kates.Client) error {
			return c.Apply(ctx, thing("ConfigMap", "x", 2), nil)
		}},
		"Modify": {http.MethodPatch, 1, func(ctx context.Context, c *kates.Client) error {
			_, err := kates.Modify(ctx, c, thing("ConfigMap", "x", 0), func(cm *kates.ConfigMap) error {
				n, err := strconv.Atoi(cm.Labels["n"])
				cm.Labels["n"] = strconv.Itoa(n + 1)
				return err
			})
			return err
		}},
		"Delete": {http.MethodDelete, 0, func(ctx context.Context, c *kates.Client) error {
			return c.Delete(ctx, thing("ConfigMap", "x", 0), nil)
		}},
		"DeleteAll": {http.MethodDelete, 0, func(ctx context.Context, c *kates.Client) error {
			return c.DeleteAll(ctx, kates.Query{Kind: "configmaps", Namespace: "ns"})
		}},
		"DynamicInterface": {http.MethodPost, 2, func(ctx context.Context, c *kates.Client) error {
			in := c.DynamicInterface().Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("ns")
			_, err := in.Create(ctx, thing("ConfigMap", "new", 2), kates.CreateOptions{})
			return err
		}},
	}
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			l := &lossy{site: newSite("uid"), stored: map[string]int{}}
			l.put("configmaps", "x", thing("ConfigMap", "x", 1))
			server := httptest.NewServer(l)
			t.Cleanup(func() {
				server.CloseClientConnections()
				server.Close()
			})
			c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: server.URL}, kates.WithInterval(0))
			require.NoError(t, err)
			defer c.Close()
			snapshots, err := kates.Watch[struct{ ConfigMaps []*kates.ConfigMap }](t.Context(), c)
			require.NoError(t, err)
			err = w.do(t.Context(), c)
			require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
			l.mu.Lock()
			stored := l.stored
			l.mu.Unlock()
			require.Equal(t, map[string]int{w.method: 1}, stored)
			for _, q := range c.Status().Queries {
				assert.Zero(t, q.Pending, "no own write")
			}
			for snap, err := range snapshots.All(t.Context()) { // ends with what the server has
				require.NoError(t, err)
				if len(snap.ConfigMaps) == w.count && (w.count != 1 || snap.ConfigMaps[0].Labels["n"] == "2") {
					break
				}
			}
		})
	}
}
