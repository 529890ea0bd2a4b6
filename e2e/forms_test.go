package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// ear is a transport that records which content types reads of one resource accepted and got.
type ear struct {
	next     http.RoundTripper
	resource string

	mu      sync.Mutex
	accepts []string
	queries []string
	got     bytes.Buffer
	status  int // the answer to every read, if not 0
	header  http.Header
	body    string
}

func (e *ear) config(base *rest.Config) *rest.Config {
	c := rest.CopyConfig(base)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		e.next = next
		return e
	})
	return c
}

func (e *ear) WrappedRoundTripper() http.RoundTripper { return e.next }

func (e *ear) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/"+e.resource) {
		return e.next.RoundTrip(r)
	}
	e.mu.Lock()
	e.accepts = append(e.accepts, r.Header.Get("Accept"))
	e.queries = append(e.queries, r.URL.RawQuery)
	answer := e.status
	e.mu.Unlock()
	if answer != 0 {
		return &http.Response{StatusCode: answer, Header: e.header, Body: io.NopCloser(strings.NewReader(e.body)), Request: r}, nil
	}
	resp, err := e.next.RoundTrip(r)
	if err == nil {
		resp.Body = &heard{resp.Body, e}
	}
	return resp, err
}

type heard struct {
	io.ReadCloser
	ear *ear
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.ear.mu.Lock()
	defer h.ear.mu.Unlock()
	h.ear.got.Write(p[:n])
	return n, err
}

// heardAll returns the accepted types, the queries, and the content received.
func (e *ear) heardAll() (accepts, queries []string, got string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.accepts...), append([]string(nil), e.queries...), e.got.String()
}

func (e *ear) client(t *testing.T, base *rest.Config, options ...kates.Option) *kates.Client {
	t.Helper()
	first := []kates.Option{kates.WithInterval(10 * time.Millisecond), katestest.DetectMutations(t)}
	c, err := tapped(kates.NewClientFromRESTConfig(e.config(base), append(first, options...)...))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

type briefs struct {
	Secrets []*kates.PartialObjectMetadata `kates:"secrets"`
	Deltas  []*kates.Delta
}

func secret(ns, name, in string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: named(ns, name), StringData: map[string]string{"k": secrecy.Mark("confidential")}}
	s.Labels = map[string]string{"in": in}
	return s
}

// confidential must not appear in an answer: the value as JSON has it and as protobuf has it.
var confidential = []string{"confidential", "Y29uZmlkZW50aWFs"}

func TestAMetadataQueryNeverGetsMoreThanMetadataOverTheWire(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]kates.Option{"streamed": nil, "paged": {kates.Tuning{Lists: kates.PagedLists, PageSize: 2}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, ctx, e := namespace(t), t.Context(), &ear{resource: "secrets"}
			other := newWire(t).client(t)
			for i := range 5 {
				require.NoError(t, other.Create(ctx, secret(ns, fmt.Sprint("s", i), "yes"), nil))
			}
			c := e.client(t, serverOf(t), options...)
			s, err := kates.Watch[briefs](ctx, c, kates.Query{Name: "Secrets", Namespace: ns, LabelSelector: "in=yes", FieldSelector: "type=Opaque"})
			require.NoError(t, err)
			var snap briefs
			awaitSnap(t, s, &snap, func(b *briefs) bool { return len(b.Secrets) == 5 })
			require.NoError(t, other.Create(ctx, secret(ns, "watched", "yes"), nil))
			awaitSnap(t, s, &snap, func(b *briefs) bool { return len(b.Secrets) == 6 })
			require.NoError(t, c.Create(ctx, secret(ns, "written", "yes"), nil))
			// the server is asked what became of it
			require.NoError(t, c.Delete(ctx, secret(ns, "s0", "yes"), nil))
			_, err = s.Update(ctx, &snap)
			require.NoError(t, err)
			require.Len(t, snap.Secrets, 6)
			require.NoError(t, c.Sync(ctx))
			for _, o := range snap.Secrets {
				assert.Equal(t, "v1/Secret", o.APIVersion+"/"+o.Kind, o.Name)
				assert.Equal(t, "yes", o.Labels["in"])
			}
			require.Len(t, snap.Deltas, 2)
			assert.Equal(t, "Secret", snap.Deltas[0].Kind)
			accepts, queries, got := e.heardAll()
			for i, accept := range accepts {
				assert.Contains(t, accept, "as=PartialObjectMetadata", queries[i])
				for media := range strings.SplitSeq(accept, ",") {
					assert.Contains(t, media, "as=PartialObjectMetadata", "nothing else is accepted")
				}
			}
			all := strings.Join(queries, "\n")
			for _, part := range []string{"limit=1", "watch=true", "metadata.name%3Ds0", map[string]string{"streamed": "sendInitialEvents=true", "paged": "continue="}[name]} {
				assert.Contains(t, all, part, "probe, watch, settling, list")
			}
			assert.Contains(t, got, "written", "something was heard")
			for _, text := range confidential {
				assert.NotContains(t, got, text)
			}
			assert.Equal(t, "metadata", s.Status().Queries[0].Form)
		})
	}
}

func TestG4OwnWritesAreInMetadataAtOnceThoughTheWatchIsLate(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	s, err := kates.Watch[briefs](ctx, c, kates.Query{Name: "Secrets", Namespace: ns, LabelSelector: "in=yes", Transform: kates.DropFields("metadata.labels")})
	require.NoError(t, err)
	var snap briefs
	awaitSnap(t, s, &snap, func(*briefs) bool { return s.Ready() == nil })
	w.set("secrets", late)
	shows := func(want bool) {
		t.Helper()
		_, err := s.Update(ctx, &snap)
		require.NoError(t, err)
		require.Equal(t, want, len(snap.Secrets) == 1)
	}
	relabel := func(in string) {
		require.NoError(t, c.Patch(ctx, secret(ns, "x", ""), kates.MergePatchType, []byte(`{"metadata":{"labels":{"in":"`+in+`"}}}`), nil))
	}
	require.NoError(t, c.Create(ctx, secret(ns, "x", "yes"), nil))
	shows(true)
	relabel("no")
	shows(false)
	relabel("yes")
	shows(true)
	shown := snap.Secrets[0]
	assert.Empty(t, shown.Labels)
	assert.Equal(t, "Secret", shown.Kind)
	w.set("secrets", 0) // a Sync that waits for a stalled watch would wait for minutes
	w.drained(t, "secrets")
	require.NoError(t, c.Sync(ctx))
	changed, err := s.Update(ctx, &snap)
	require.NoError(t, err)
	assert.False(t, changed, "G5: the late watch has nothing new to say")
	assert.Same(t, shown, snap.Secrets[0])
	assert.Zero(t, s.Status().Queries[0].Pending)
	w.set("secrets", late)
	require.NoError(t, c.Delete(ctx, secret(ns, "x", ""), nil))
	shows(false)
}

func TestATransformStripsWhatListsEventsAndOwnWritesBring(t *testing.T) {
	t.Parallel()
	ns, ctx := namespace(t), t.Context()
	other := newWire(t).client(t)
	require.NoError(t, other.Create(ctx, secret(ns, "listed", "yes"), nil))
	c := newWire(t).client(t, kates.WithTransform(kates.DropManagedFields), kates.WithManagedFields())
	type twoViews struct {
		Whole    []*kates.Secret
		Stripped []*kates.Secret
		Brief    []*kates.PartialObjectMetadata `kates:"secrets"`
	}
	s, err := kates.Watch[twoViews](ctx, c,
		kates.Query{Name: "Whole", Namespace: ns},
		kates.Query{Name: "Stripped", Namespace: ns, Transform: kates.DropFields("data", "metadata.labels")},
		kates.Query{Name: "Brief", Namespace: ns})
	require.NoError(t, err)
	var snap twoViews
	awaitSnap(t, s, &snap, func(*twoViews) bool { return s.Ready() == nil })
	require.NoError(t, other.Create(ctx, secret(ns, "watched", "yes"), nil))
	require.NoError(t, c.Create(ctx, secret(ns, "written", "yes"), nil))
	awaitSnap(t, s, &snap, func(v *twoViews) bool { return len(v.Whole) == 3 && len(v.Stripped) == 3 && len(v.Brief) == 3 })
	for i := range 3 {
		whole, stripped, brief := snap.Whole[i], snap.Stripped[i], snap.Brief[i]
		assert.Empty(t, whole.ManagedFields, "the client's default")
		assert.Contains(t, whole.Data, "k")
		assert.Empty(t, stripped.Data)
		assert.Empty(t, stripped.Labels)
		assert.NotEmpty(t, stripped.ManagedFields, "a query's own transform is in place of the default")
		assert.Empty(t, brief.ManagedFields)
	}
}

func TestG8AnObjectThatATransformRejectsIsLeftOutAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	ns, ctx := namespace(t), t.Context()
	other, c := newWire(t).client(t), newWire(t).client(t)
	require.NoError(t, other.Create(ctx, secret(ns, "bad", "panic"), nil))
	require.NoError(t, other.Create(ctx, secret(ns, "good", "yes"), nil))
	type checked struct {
		Secrets []*kates.Secret
		Invalid []kates.Invalid
	}
	s, err := kates.Watch[checked](ctx, c, kates.Query{Name: "Secrets", Namespace: ns, Transform: kates.TransformOf(func(o metav1.Object) error {
		if o.GetLabels()["in"] == "panic" {
			panic("a bug of the user's")
		}
		return nil
	})})
	require.NoError(t, err)
	var snap checked
	awaitSnap(t, s, &snap, func(v *checked) bool { return len(v.Secrets) == 1 && len(v.Invalid) == 1 })
	assert.ErrorContains(t, snap.Invalid[0].Err, "a bug of the user's")
	assert.Equal(t, "bad", snap.Invalid[0].Object.GetName())
	assert.Equal(t, "Secret", snap.Invalid[0].Object.GetKind())
	require.NoError(t, other.Patch(ctx, secret(ns, "bad", ""), kates.MergePatchType, []byte(`{"metadata":{"labels":{"in":"yes"}}}`), nil))
	awaitSnap(t, s, &snap, func(v *checked) bool { return len(v.Secrets) == 2 && len(v.Invalid) == 0 })
	require.NoError(t, c.Patch(ctx, secret(ns, "good", ""), kates.MergePatchType, []byte(`{"metadata":{"labels":{"in":"panic"}}}`), nil))
	_, err = s.Update(ctx, &snap)
	require.NoError(t, err)
	assert.Len(t, snap.Secrets, 1)
	assert.Len(t, snap.Invalid, 1, "an own write's answer, too")
}

func TestAStatusAloneIsNoSignalWithGenerationChangedButInTheNextSnapshot(t *testing.T) {
	t.Parallel()
	ns, ctx := namespace(t), t.Context()
	other, c := newWire(t).client(t), newWire(t).client(t)
	d := deployment(ns)
	require.NoError(t, other.Create(ctx, d, nil))
	type view struct {
		Deployments []*kates.Deployment
	}
	q := kates.Query{Name: "Deployments", Namespace: ns}
	all, err := kates.Watch[view](ctx, c, q)
	require.NoError(t, err)
	q.Signal = kates.AnySignal(kates.GenerationChanged, kates.LabelsChanged)
	s, err := kates.Watch[view](ctx, c, q)
	require.NoError(t, err)
	var snap, seen view
	awaitSnap(t, s, &snap, func(v *view) bool { return len(v.Deployments) == 1 })
	awaitSnap(t, all, &seen, func(v *view) bool { return len(v.Deployments) == 1 })
	drain := func() {
		for len(s.Changed()) > 0 {
			<-s.Changed()
		}
	}
	drain()
	var now *kates.Deployment
	require.NoError(t, other.Get(ctx, d, &now))
	now.Status.ObservedGeneration = now.Generation
	require.NoError(t, other.UpdateStatus(ctx, now, nil))
	awaitSnap(t, all, &seen, func(v *view) bool { return v.Deployments[0].Status.ObservedGeneration > 0 })
	assert.Never(t, func() bool { return len(s.Changed()) > 0 }, 100*time.Millisecond, 10*time.Millisecond)
	changed, err := s.Update(ctx, &snap)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.NotZero(t, snap.Deployments[0].Status.ObservedGeneration)
	require.NoError(t, other.Patch(ctx, d, kates.MergePatchType, []byte(`{"spec":{"paused":true}}`), nil))
	awaitSignal(t, s.Changed())
	_, err = s.Update(ctx, &snap)
	require.NoError(t, err)
	require.NoError(t, other.Patch(ctx, d, kates.MergePatchType, []byte(`{"metadata":{"labels":{"new":"label"}}}`), nil))
	awaitSignal(t, s.Changed())
}

func awaitSignal(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(patience):
		require.Fail(t, "no signal")
	}
}

func TestWhatAServerSaysThatIsTooBusyIsInTheStatusAtOnce(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]kates.Query{"whole": {}, "metadata": {MetadataOnly: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &ear{
				resource: "secrets", status: http.StatusTooManyRequests,
				header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"60"}},
				body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,
					"message":"conversion webhook failed: connection refused","details":{"retryAfterSeconds":60}}`,
			}
			c := e.client(t, serverOf(t))
			q.Name, q.Kind, q.Namespace = "Secrets", "secrets", namespace(t)
			acc, err := c.Watch(t.Context(), q)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				return strings.Contains(acc.Status().Queries[0].Error, "conversion webhook failed: connection refused")
			}, patience, 10*time.Millisecond)
			assert.Equal(t, kates.StateRetrying, acc.Status().Queries[0].State)
			assert.Never(t, func() bool { accepts, _, _ := e.heardAll(); return len(accepts) > 1 },
				time.Second, 50*time.Millisecond, "the server said when to try again")
		})
	}
}

func TestBothFormsOfOneKindMayBeWatchedAtOnce(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	type both struct {
		Whole []*kates.Secret
		Brief map[types.NamespacedName]metav1.PartialObjectMetadata `kates:"Secret"`
	}
	s, err := kates.Watch[both](ctx, c, kates.Query{Name: "Whole", Namespace: ns}, kates.Query{Name: "Brief", Namespace: ns})
	require.NoError(t, err)
	var snap both
	awaitSnap(t, s, &snap, func(*both) bool { return s.Ready() == nil })
	w.set("secrets", late)
	require.NoError(t, c.Create(ctx, secret(ns, "x", "yes"), nil))
	_, err = s.Update(ctx, &snap)
	require.NoError(t, err)
	require.Len(t, snap.Whole, 1)
	brief := snap.Brief[types.NamespacedName{Namespace: ns, Name: "x"}]
	assert.Equal(t, snap.Whole[0].ResourceVersion, brief.ResourceVersion)
	// A watch is opened after its list, which is all that Ready waits for.
	require.Eventually(t, func() bool { return w.openWatches() == 2 }, patience, 10*time.Millisecond)
}
