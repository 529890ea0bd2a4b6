package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/client/connection"
	requests "github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	objects "github.com/kates-go/kates/internal/object"
)

// shardedNamespaces are where the objects of these tests are.
var shardedNamespaces = []string{"team-0", "team-1", "team-2", "team-3", "team-4", "team-5"}

// received counts the bytes of the bodies of answers.
type received struct {
	next  http.RoundTripper
	bytes *atomic.Int64
}

func (r received) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		resp.Body = countedBody{resp.Body, r.bytes}
	}
	return resp, err
}

// WrappedRoundTripper lets others find the transport beneath.
func (r received) WrappedRoundTripper() http.RoundTripper { return r.next }

type countedBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

// share is one replica's stream of a share of a resource.
type share struct {
	*streamset.Set
	resource objects.Resource
	shard    shardrange.Shard
	bytes    atomic.Int64
	listener *stream.Listener

	mu   sync.Mutex
	held map[objects.Key]string // the versions of what it shows
}

// shareOf joins the stream of a share, and waits for its first list.
func shareOf(t *testing.T, c *cluster.Cluster, form objects.Form, s *share, config stream.Config) *share {
	t.Helper()
	rc := rest.CopyConfig(c.Config)
	rc.QPS, rc.DisableCompression = -1, true
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper { return received{next, &s.bytes} })
	over, err := connection.Connect(rc)
	require.NoError(t, err)
	link := connection.NewLink(over)
	server := requests.NewServer(link)
	server.Scheme, server.StreamTyped = scheme.Scheme, config.StreamLists
	config.Source = server.Source
	s.Set, s.held = streamset.New(config), make(map[objects.Key]string)
	spec := objects.Spec{Form: form, Selection: objects.Selection{Shard: s.shard}}
	s.listener, err = s.Join(s.resource, spec, stream.ListenOptions{PerKey: true, Wake: func() {}, Trouble: func() {}})
	require.NoError(t, err)
	t.Cleanup(func() {
		s.listener.Close()
		s.Close()
		link.Close()
	})
	require.Eventually(t, func() bool { return s.listener.Status().State == stream.Synced }, patience, time.Millisecond)
	return s
}

// shows returns the versions of what the share shows.
func (s *share) shows() map[objects.Key]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.listener.Take()
	if b.Extent == audience.Everything {
		clear(s.held)
	}
	for _, c := range b.Changes {
		if c.Object == nil {
			delete(s.held, c.Key)
		} else {
			s.held[c.Key] = c.Object.GetResourceVersion()
		}
	}
	return maps.Clone(s.held)
}

// has returns the versions of those objects that are in the share.
func (s *share) has(all []unstructured.Unstructured) map[objects.Key]string {
	in := make(map[objects.Key]string)
	for i := range all {
		if u := &all[i]; s.shard.Has(u.GetNamespace(), string(u.GetUID())) {
			in[objects.Key{Namespace: u.GetNamespace(), Name: u.GetName()}] = u.GetResourceVersion()
		}
	}
	return in
}

// sharedCluster starts a cluster with objects of two kinds, each of some 2 kB.
func sharedCluster(t *testing.T, flags ...string) *cluster.Cluster {
	t.Helper()
	c := breakable(t, flags...)
	k, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	for _, name := range shardedNamespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := k.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, gvr := range []schema.GroupVersionResource{configMaps, hosts} {
		for i := range 90 {
			put(t, c, gvr, shardedNamespaces[i%len(shardedNamespaces)], fmt.Sprint("first-", i))
		}
	}
	return c
}

// put creates an object as somebody else.
func put(t *testing.T, c *cluster.Cluster, gvr schema.GroupVersionResource, ns, name string) *unstructured.Unstructured {
	t.Helper()
	d, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	u := largeObject(gvr, ns, name)
	require.Eventually(t, func() bool { // a new kind may answer 429 at first
		u, err = d.Resource(gvr).Namespace(ns).Create(t.Context(), largeObject(gvr, ns, name), metav1.CreateOptions{})
		return err == nil
	}, patience, 10*time.Millisecond)
	return u
}

// largeObject is an object of 2 kB.
func largeObject(gvr schema.GroupVersionResource, ns, name string) *unstructured.Unstructured {
	u := object(gvr, ns, name, nil)
	u.SetAnnotations(map[string]string{"text": strings.Repeat("x", 2000)})
	return u
}

// TestG1G4G5SharesOfTwoReplicasAreAllObjectsAndNoneTwice divides the objects of a kind into two
// shares, by UID and by namespace, on a server that shards and on one that does not. Each replica
// shows its share, whatever is written, its own writes at once. Where the server shards, each
// receives about half of the bytes; the status says what the server does.
func TestG1G4G5SharesOfTwoReplicasAreAllObjectsAndNoneTwice(t *testing.T) {
	t.Parallel()
	for gate, flags := range map[string][]string{"on": {"feature-gates=ShardedListAndWatch=true"}, "off": nil} {
		t.Run("gate "+gate, func(t *testing.T) {
			t.Parallel()
			c := sharedCluster(t, flags...)
			for name, as := range map[string]struct {
				gvr  schema.GroupVersionResource
				form objects.Form
			}{
				"typed": {configMaps, objects.Typed}, "untyped": {configMaps, objects.Whole},
				"metadata": {configMaps, objects.Metadata}, "custom": {hosts, objects.Whole},
			} {
				for way, config := range map[string]stream.Config{"paged": {PageSize: 20}, "streamed": {StreamLists: true}} {
					for _, by := range []shardrange.Field{shardrange.UID, shardrange.Namespace} {
						t.Run(fmt.Sprint(name, " ", way, " ", by), func(t *testing.T) {
							sharesAreAll(t, c, shared{as.gvr, as.form, by, gate == "on"}, config)
						})
					}
				}
			}
		})
	}
}

// shared is what is shared out, and how.
type shared struct {
	gvr    schema.GroupVersionResource
	form   objects.Form
	by     shardrange.Field
	server bool // it shards
}

func sharesAreAll(t *testing.T, c *cluster.Cluster, as shared, config stream.Config) {
	d, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	all := func() []unstructured.Unstructured {
		list, err := d.Resource(as.gvr).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return list.Items
	}
	var hashes []uint64
	for _, u := range all() {
		hashes = append(hashes, shardrange.Hash(map[shardrange.Field]string{
			shardrange.UID: string(u.GetUID()), shardrange.Namespace: u.GetNamespace(),
		}[as.by]))
	}
	plan := shardrange.Plan(nil).Divide([]string{"r0", "r1"}, shardrange.Loads(hashes))
	r := objects.Resource{
		GroupVersionResource: as.gvr, Kind: kindsOf[as.gvr], Namespaced: true, Storage: as.gvr.GroupResource().String(),
	}
	whole := shareOf(t, c, as.form, &share{resource: r}, config)
	require.Equal(t, whole.has(all()), whole.shows())
	var replicas []*share
	for _, name := range []string{"r0", "r1"} {
		s := &share{resource: r, shard: shardrange.Shard{Field: as.by, Ranges: plan.Ranges(name)}}
		s = shareOf(t, c, as.form, s, config)
		replicas = append(replicas, s)
		require.Equal(t, s.has(all()), s.shows(), "the first list of %s", name)
		assert.Equal(t, as.says(config), s.listener.Status().Shard)
		part := float64(s.bytes.Load()) / float64(whole.bytes.Load())
		t.Logf("%s received %.2f of all bytes", name, part)
		if as.server {
			assert.Less(t, part, 0.75)
		}
	}

	// What others write.
	for i, ns := range shardedNamespaces {
		put(t, c, as.gvr, ns, fmt.Sprint("more-", namespaces.Add(1)))
		require.NoError(t, d.Resource(as.gvr).Namespace(ns).Delete(t.Context(), fmt.Sprint("first-", i), metav1.DeleteOptions{}))
		put(t, c, as.gvr, ns, fmt.Sprint("first-", i)) // with another UID
	}
	now := all()
	for _, s := range append(replicas, whole) {
		require.Eventually(t, func() bool { return maps.Equal(s.has(now), s.shows()) }, patience, time.Millisecond)
	}

	// What the replicas write themselves.
	for i, ns := range shardedNamespaces {
		for _, s := range replicas {
			key := objects.Key{Namespace: ns, Name: fmt.Sprint("first-", i)}
			w := s.Begin(r, key)
			u := write(t, d.Resource(as.gvr).Namespace(ns), key.Name)
			require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: coherence.Write{
				Key: key, UID: u.GetUID(), Version: u.GetResourceVersion(), Object: u,
			}}))
			assert.Equal(t, s.has([]unstructured.Unstructured{*u})[key], s.shows()[key], "an own write is shown by the share that has it")
		}
	}
	now = all()
	for _, s := range replicas {
		require.NoError(t, s.Sync(t.Context()))
		assert.Equal(t, s.has(now), s.shows())
	}
}

// write changes an object.
func write(t *testing.T, in dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := in.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	labels := map[string]string{"written": fmt.Sprint("after-", u.GetResourceVersion())}
	u.SetLabels(labels)
	u, err = in.Update(t.Context(), u, metav1.UpdateOptions{})
	require.NoError(t, err)
	return u
}

// says is the status of a share. Lists of custom kinds or of metadata, and streamed ones, do not
// say that they are shares.
func (s shared) says(config stream.Config) string {
	switch {
	case !s.server:
		return "the server does not shard: it sends the objects of all shards, and others are dropped here"
	case config.StreamLists || s.gvr == hosts || s.form == objects.Metadata:
		return "the server has sent no object of another shard"
	}
	return "the server sends this share alone"
}
