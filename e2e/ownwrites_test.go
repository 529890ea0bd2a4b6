package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates"
)

// late is how far the watches of these tests are behind, until a test sets it to nothing.
const late = time.Hour

// reader reads one query of a kind whose watch is late.
type reader struct {
	t      *testing.T
	client *kates.Client
	acc    *kates.Accumulator
	snap   struct{ Objects []*kates.Unstructured }
}

// lateReader watches a query. What the watches of the resource bring from now on comes late, and so
// does a first list that is streamed: a second reader begins before the late one.
func lateReader(t *testing.T, w *wire, c *kates.Client, q kates.Query, resource string) *reader {
	t.Helper()
	r := readerOf(t, c, q)
	w.set(resource, late)
	return r
}

// readerOf watches a query, and has read its first snapshot.
func readerOf(t *testing.T, c *kates.Client, q kates.Query) *reader {
	t.Helper()
	q.Name = "Objects"
	acc, err := c.Watch(t.Context(), q)
	require.NoError(t, err)
	r := &reader{t: t, client: c, acc: acc}
	<-acc.Changed()
	r.look("")
	return r
}

// look reads the next snapshot and returns the object of that name.
func (r *reader) look(name string) *kates.Unstructured {
	r.t.Helper()
	_, err := r.acc.Update(r.t.Context(), &r.snap)
	require.NoError(r.t, err)
	for _, o := range r.snap.Objects {
		if o.GetName() == name {
			return o
		}
	}
	return nil
}

// settled waits until the watch has caught up. It checks that nothing is held for writes or taken
// back.
func (r *reader) settled(w *wire, resource string) {
	r.t.Helper()
	before := fingerprint(r.snap.Objects)
	unchanged := func(why string) {
		changed, err := r.acc.Update(r.t.Context(), &r.snap)
		require.NoError(r.t, err)
		assert.False(r.t, changed, "G5: %s", why)
		assert.Equal(r.t, before, fingerprint(r.snap.Objects))
	}
	unchanged("the late watch has brought nothing")
	w.set(resource, 0)
	require.NoError(r.t, r.client.Sync(r.t.Context()))
	unchanged("the server has nothing new")
	w.drained(r.t, resource)
	require.NoError(r.t, r.client.Sync(r.t.Context()))
	unchanged("the late watch has nothing new to say")
	assert.Zero(r.t, r.acc.Status().Queries[0].Pending, "G6: %s", r.acc.Status())
}

func fingerprint(objects []*kates.Unstructured) (all []string) {
	for _, o := range objects {
		all = append(all, o.GetName()+"@"+o.GetResourceVersion())
	}
	return all
}

func TestG4EveryWriteMethodShowsItsEffectAtOnceThoughTheWatchIsLate(t *testing.T) {
	t.Parallel()
	w, ns := newWire(t), namespace(t)
	c := w.client(t, kates.WithNamespace(ns))
	r := lateReader(t, w, c, kates.Query{Kind: "hosts.getambassador.io", Namespace: ns}, "hosts")
	ctx := t.Context()
	host := func(kv ...any) map[string]any {
		o := map[string]any{"apiVersion": "getambassador.io/v3alpha1", "kind": "Host", "metadata": map[string]any{"name": "h"}}
		for i := 0; i < len(kv); i += 2 {
			o[kv[i].(string)] = kv[i+1]
		}
		return o
	}
	hostname := func() string {
		s, _, _ := unstructured.NestedString(r.look("h").Object, "spec", "hostname")
		return s
	}
	require.NoError(t, c.Create(ctx, host("spec", map[string]any{"hostname": "create"}), nil))
	assert.Equal(t, "create", hostname())

	var got *kates.Unstructured
	require.NoError(t, c.Get(ctx, host(), &got))
	require.NoError(t, unstructured.SetNestedField(got.Object, "update", "spec", "hostname"))
	require.NoError(t, c.Update(ctx, got, nil))
	assert.Equal(t, "update", hostname())

	require.NoError(t, c.Get(ctx, host(), &got))
	require.NoError(t, unstructured.SetNestedField(got.Object, "Ready", "status", "state"))
	require.NoError(t, c.UpdateStatus(ctx, got, nil))
	state, _, _ := unstructured.NestedString(r.look("h").Object, "status", "state")
	assert.Equal(t, "Ready", state)

	require.NoError(t, c.Patch(ctx, host(), kates.MergePatchType, []byte(`{"spec":{"hostname":"merge"}}`), nil))
	assert.Equal(t, "merge", hostname())
	require.NoError(t, c.Patch(ctx, host(), kates.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/hostname","value":"json"}]`), nil))
	assert.Equal(t, "json", hostname())
	require.NoError(t, c.Upsert(ctx, nil, host("spec", map[string]any{"hostname": "upsert"}), nil))
	assert.Equal(t, "upsert", hostname())

	err := c.Apply(ctx, host("spec", map[string]any{"hostname": "apply"}), nil)
	assert.True(t, kates.IsConflict(err), "somebody else owns the field: %v", err)
	assert.Equal(t, "upsert", hostname(), "a failed write leaves no trace")
	require.NoError(t, c.Apply(ctx, host("spec", map[string]any{"hostname": "apply"}), nil, kates.ForceOwnership(), kates.FieldManager("me")))
	assert.Equal(t, "apply", hostname())

	before := r.look("h")
	require.NoError(t, c.Patch(ctx, host(), kates.MergePatchType, []byte(`{"spec":{"hostname":"dry"}}`), nil, kates.DryRun()))
	require.NoError(t, c.Delete(ctx, host(), nil, kates.DryRun()))
	assert.Same(t, before, r.look("h"), "a dry run leaves no trace")

	require.NoError(t, c.Delete(ctx, host(), nil))
	assert.Nil(t, r.look("h"))
	require.NoError(t, c.Create(ctx, host("spec", map[string]any{"hostname": "again"}), nil))
	assert.Equal(t, "again", hostname())
	generated := host()
	generated["metadata"] = map[string]any{"generateName": "gen-"}
	require.NoError(t, c.Create(ctx, generated, &got))
	assert.NotNil(t, r.look(got.GetName()))
	r.settled(w, "hosts")
}

// deletion is an object whose deletion the server answers in a special way.
type deletion struct {
	manifest string
	resource string
	stays    bool // it stays, terminating, after a plain delete
}

var deletions = map[string]deletion{
	"ConfigMap, a Status":          {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`, "configmaps", false},
	"Secret, a Status":             {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`, "secrets", false},
	"Deployment, a Status":         {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, "deployments", false},
	"Service, the object":          {`{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"ports":[{"port":80}]}}`, "services", false},
	"ServiceAccount, the object":   {`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"x"}}`, "serviceaccounts", false},
	"an unscheduled Pod, grace 0":  {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, "pods", false},
	"a Pod on a node, with grace":  {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`, "pods", true},
	"a finalizer keeps it":         {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","finalizers":["example.com/f"]}}`, "configmaps", true},
	"a finalizer keeps a resource": {`{"apiVersion":"getambassador.io/v3alpha1","kind":"Host","metadata":{"name":"x","finalizers":["example.com/f"]}}`, "hosts", true},
}

func TestG4ADeletedObjectIsGoneOrTerminatingByEveryKindOfAnswer(t *testing.T) {
	for name, d := range deletions {
		for _, selector := range []string{"", "!none"} {
			t.Run(name+", selector "+selector, func(t *testing.T) {
				t.Parallel()
				w, ns := newWire(t), namespace(t)
				c := w.client(t, kates.WithNamespace(ns))
				if d.resource == "pods" { // pods need a service account
					require.NoError(t, c.Upsert(t.Context(), nil, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, nil))
				}
				r := lateReader(t, w, c, kates.Query{Kind: d.resource, Namespace: ns, LabelSelector: selector}, d.resource)
				for range 2 { // delete it and make it again: two UIDs
					var o map[string]any
					require.NoError(t, json.Unmarshal([]byte(d.manifest), &o))
					require.NoError(t, c.Create(t.Context(), o, nil))
					require.NotNil(t, r.look("x"))
					require.NoError(t, c.Delete(t.Context(), o, nil))
					if d.stays {
						require.NotNil(t, r.look("x"))
						require.NotNil(t, r.look("x").GetDeletionTimestamp())
						if d.resource == "pods" {
							require.NoError(t, c.Delete(t.Context(), o, nil, kates.GracePeriod(0)))
						} else {
							require.NoError(t, c.Patch(t.Context(), o, kates.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil))
						}
					}
					require.Nil(t, r.look("x"))
				}
				r.settled(w, d.resource)
			})
		}
	}
}

func TestG4AWriteThatMovesAnObjectInOrOutOfAQueryIsShown(t *testing.T) {
	t.Parallel()
	queries := map[string]kates.Query{
		"by label":                 {Kind: "hosts", LabelSelector: "in=yes"},
		"by a field of the server": {Kind: "hosts", FieldSelector: "spec.hostname=yes"},
	}
	for name, q := range queries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ns := newWire(t), namespace(t)
			q.Namespace = ns
			c := w.client(t, kates.WithNamespace(ns))
			r := lateReader(t, w, c, q, "hosts")
			h := kates.NewUnstructured("Host", "getambassador.io/v3alpha1")
			h.SetName("h")
			require.NoError(t, c.Create(t.Context(), h, nil))
			for _, in := range []string{"no", "yes", "no", "yes"} {
				patch := fmt.Sprintf(`{"metadata":{"labels":{"in":%q}},"spec":{"hostname":%q}}`, in, in)
				require.NoError(t, c.Patch(t.Context(), h, kates.MergePatchType, []byte(patch), nil))
				assert.Equal(t, in == "yes", r.look("h") != nil)
			}
			require.NoError(t, c.Delete(t.Context(), h, nil))
			assert.Nil(t, r.look("h"))
			other := h.DeepCopy()
			other.SetNamespace("default")
			other.SetName("elsewhere-" + ns)
			require.NoError(t, c.Create(t.Context(), other, nil))
			assert.Nil(t, r.look(other.GetName()), "of another namespace")
			require.NoError(t, c.Delete(t.Context(), other, nil))
			r.settled(w, "hosts")
		})
	}
}

func TestG4AWriteThroughAnotherVersionOrGroupOfTheStoredResourceIsShown(t *testing.T) {
	t.Parallel()
	w, ns := newWire(t), namespace(t)
	c := w.client(t, kates.WithNamespace(ns))
	r := lateReader(t, w, c, kates.Query{Kind: "horizontalpodautoscalers.v2.autoscaling", Namespace: ns}, "horizontalpodautoscalers")
	hpa := map[string]any{"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"maxReplicas": 3, "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "targetCPUUtilizationPercentage": 50}}
	require.NoError(t, c.Create(t.Context(), hpa, nil))
	got := r.look("x")
	require.NotNil(t, got)
	assert.Equal(t, "autoscaling/v2", got.GetAPIVersion(), "in the watched form")
	require.NoError(t, c.Delete(t.Context(), hpa, nil))
	assert.Nil(t, r.look("x"))
	r.settled(w, "horizontalpodautoscalers")

	e := lateReader(t, w, c, kates.Query{Kind: "events.v1.events.k8s.io", Namespace: ns}, "events")
	event := &kates.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: kates.ObjectReference{Namespace: ns, Kind: "Pod", Name: "p"}, Reason: "R", Type: "Normal"}
	require.NoError(t, c.Create(t.Context(), event, nil))
	require.NotNil(t, e.look("e"))
	assert.Equal(t, "events.k8s.io/v1", e.look("e").GetAPIVersion())
	require.NoError(t, c.Delete(t.Context(), event, nil))
	assert.Nil(t, e.look("e"))
}

func TestG4ObserveMakesAWriteOfAnotherClientAnOwnOne(t *testing.T) {
	t.Parallel()
	w, ns := newWire(t), namespace(t)
	c := w.client(t)
	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns}, "configmaps")
	d := foreign(t).Resource(configMaps).Namespace(ns)
	made, err := d.Create(t.Context(), object(configMaps, ns, "x", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Nil(t, r.look("x"), "its watch is late")
	require.NoError(t, c.Observe(t.Context(), made))
	assert.NotNil(t, r.look("x"))
	assert.Error(t, c.Observe(t.Context(), object(configMaps, ns, "x", nil)), "without a version it says nothing")
	r.settled(w, "configmaps")
}

func TestG3G6CreateAndDelete2000TimesWhileTheWatchIsStalled(t *testing.T) {
	t.Parallel()
	w, ns := newWire(t), namespace(t)
	c := w.client(t, kates.WithNamespace(ns))
	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns}, "configmaps")
	w.set("configmaps", time.Hour)
	cm := &kates.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	for i := range 2000 {
		require.NoError(t, c.Create(t.Context(), cm, nil))
		require.NoError(t, c.Delete(t.Context(), cm, nil))
		if i%100 == 0 {
			require.Nil(t, r.look("x"))
		}
	}
	assert.LessOrEqual(t, r.acc.Status().Queries[0].Pending, 1, "G3")
	r.settled(w, "configmaps")
}

// TestG4AnUnknownOutcomeLeavesNoTraceAndTheWatchTells: the server has made the write, and the
// caller is cancelled before it has the answer.
func TestG4AnUnknownOutcomeLeavesNoTraceAndTheWatchTells(t *testing.T) {
	t.Parallel()
	type snapshot struct{ ConfigMaps []*kates.ConfigMap }
	named := func(name, value string) *kates.ConfigMap {
		return &kates.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"is": value}}
	}
	before := map[string]string{"changed": "old", "deleted": "old"}
	for name, write := range map[string]struct {
		do    func(ctx context.Context, c *kates.Client) error
		after map[string]string
	}{
		"create": {func(ctx context.Context, c *kates.Client) error { return c.Create(ctx, named("made", "new"), nil) },
			map[string]string{"changed": "old", "deleted": "old", "made": "new"}},
		"update": {func(ctx context.Context, c *kates.Client) error { return c.Update(ctx, named("changed", "new"), nil) },
			map[string]string{"changed": "new", "deleted": "old"}},
		"delete": {func(ctx context.Context, c *kates.Client) error { return c.Delete(ctx, named("deleted", ""), nil) },
			map[string]string{"changed": "old"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ns := newWire(t), namespace(t)
			c := w.client(t, kates.WithNamespace(ns))
			for name, value := range before {
				require.NoError(t, c.Create(t.Context(), named(name, value), nil))
			}
			s, err := kates.Watch[snapshot](t.Context(), c, kates.Query{Name: "ConfigMaps", Namespace: ns})
			require.NoError(t, err)
			shows := func(want map[string]string) func(*snapshot) bool {
				return func(snap *snapshot) bool {
					all := map[string]string{}
					for _, cm := range snap.ConfigMaps {
						all[cm.Name] = cm.Data["is"]
					}
					return maps.Equal(want, all)
				}
			}
			var snap snapshot
			awaitSnap(t, s, &snap, shows(before))
			w.set("configmaps", late)

			ctx, cancel := context.WithCancel(t.Context())
			answered := 0
			w.hookAfter(func(r *http.Request) error {
				answered++
				cancel()
				<-r.Context().Done()
				return r.Context().Err()
			})
			require.ErrorIs(t, write.do(ctx, c), context.Canceled)
			require.Equal(t, 1, answered, "the server has made it")
			changed, err := s.Update(t.Context(), &snap)
			require.NoError(t, err)
			assert.False(t, changed, "it leaves no trace")
			assert.True(t, shows(before)(&snap))
			assert.Zero(t, s.Status().Queries[0].Pending)

			w.hookAfter(nil)
			w.set("configmaps", 0)
			awaitSnap(t, s, &snap, shows(write.after)) // the watch tells
			assert.Zero(t, s.Status().Queries[0].Pending)
		})
	}
}
