package e2e

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// unpacked counts answers to watches that were compressed.
type unpacked struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (u unpacked) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.next.RoundTrip(r)
	if err == nil && resp.Uncompressed && r.URL.Query().Get("watch") == "true" {
		u.n.Add(1)
	}
	return resp, err
}

// WrappedRoundTripper lets others find the transport beneath.
func (u unpacked) WrappedRoundTripper() http.RoundTripper { return u.next }

// TestG1G5AStreamedListIsWholeWhetherTheServerCompressesItOrNot: servers since 1.37 compress a
// streamed list, and the events after it, for a client that asks for compressed lists.
func TestG1G5AStreamedListIsWholeWhetherTheServerCompressesItOrNot(t *testing.T) {
	t.Parallel()
	for form, watch := range map[string]func(*testing.T, *kates.Client, string) func(int){
		"typed": streamedMaps[*kates.ConfigMap], "untyped": streamedMaps[*kates.Unstructured],
		"metadata": streamedMaps[*metav1.PartialObjectMetadata],
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			ns, n := namespace(t), new(atomic.Int64)
			fill(t, ns, 20, configMaps)
			config := rest.CopyConfig(serverOf(t))
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return unpacked{next, n} })
			c, err := kates.NewClientFromRESTConfig(config, kates.Tuning{Lists: kates.StreamedLists, CompressedLists: true})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			await := watch(t, c, ns)
			await(20)
			for i := range 3 {
				put(t, testCluster, configMaps, ns, fmt.Sprint("later-", i))
				await(21 + i)
			}
			assert.Equal(t, since(t, "1.37"), n.Load() > 0, "%d watches were compressed", n.Load())
		})
	}
}

type streamedOf[T any] struct {
	ConfigMaps []T `kates:"configmaps"`
}

// streamedMaps watches the config maps of a namespace. The function that it returns waits until
// there are so many.
func streamedMaps[T any](t *testing.T, c *kates.Client, ns string) func(int) {
	s, err := kates.Watch[streamedOf[T]](t.Context(), c, kates.Query{Name: "ConfigMaps", Namespace: ns})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	var snap streamedOf[T]
	return func(n int) {
		t.Helper()
		awaitSnap(t, s, &snap, func(of *streamedOf[T]) bool { return len(of.ConfigMaps) == n })
	}
}

// TestAServerThatCompressesAStreamedListBeginsAMemberOfGzipAfterEachFlush shows the bytes that
// clients have to read: the initial list and what comes after it are members of their own.
func TestAServerThatCompressesAStreamedListBeginsAMemberOfGzipAfterEachFlush(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	put(t, testCluster, configMaps, ns, "first")
	transport, err := rest.TransportFor(serverOf(t))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(serverOf(t).Host, "/")+"/api/v1/namespaces/"+ns+"/configmaps"+
		"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", nil)
	require.NoError(t, err)
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	if !since(t, "1.37") {
		assert.Empty(t, resp.Header.Get("Content-Encoding"))
		return
	}
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	body := bufio.NewReader(resp.Body)
	members, event := 0, func() (types []string) { // of one member
		z, err := gzip.NewReader(body)
		require.NoError(t, err)
		z.Multistream(false)
		for d := json.NewDecoder(z); ; {
			var e struct{ Type string }
			if err := d.Decode(&e); err != nil {
				return types
			}
			types = append(types, e.Type)
		}
	}
	var got []string
	for len(got) == 0 || got[len(got)-1] != "BOOKMARK" {
		got = append(got, event()...)
		members++
	}
	assert.Equal(t, []string{"ADDED", "ADDED", "BOOKMARK"}[3-len(got):], got) // kube-root-ca.crt needs a controller
	put(t, testCluster, configMaps, ns, "second")
	var later []string
	for len(later) == 0 { // a bookmark may come at any time
		later = slices.DeleteFunc(event(), func(of string) bool { return of == "BOOKMARK" })
	}
	assert.Equal(t, []string{"ADDED"}, later)
	t.Logf("%d members before the change", members)
}
