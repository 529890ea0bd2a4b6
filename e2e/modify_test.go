package e2e

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/kates-go/kates/kates"
)

// increment counts in a ConfigMap.
func increment(cm *corev1.ConfigMap) error {
	n, err := strconv.Atoi(cm.Data["n"])
	cm.Data["n"] = strconv.Itoa(n + 1)
	return err
}

func TestG4ModifyLosesNoIncrementAmongEightForeignWriters(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t, kates.WithNamespace(ns))
	counter := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x"}, Data: map[string]string{"n": "0"}}
	require.NoError(t, c.Create(ctx, counter, nil))
	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns}, "configmaps")
	others, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	const each = 20
	patient := retry.DefaultBackoff
	patient.Steps, patient.Factor = 100, 1.1
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range each {
				assert.NoError(t, retry.RetryOnConflict(patient, func() error {
					cm, err := others.CoreV1().ConfigMaps(ns).Get(ctx, "x", metav1.GetOptions{})
					if err == nil {
						_ = increment(cm)
						_, err = others.CoreV1().ConfigMaps(ns).Update(ctx, cm, metav1.UpdateOptions{})
					}
					return err
				}))
			}
		})
	}
	for range 2 {
		writers.Go(func() {
			for range each {
				got, err := kates.Modify(ctx, c, counter, increment)
				if !assert.NoError(t, err) {
					return
				}
				n, _ := strconv.Atoi(got.Data["n"])
				assert.LessOrEqual(t, n, 10*each)
			}
		})
	}
	writers.Wait()
	got, err := kates.Modify(ctx, c, counter, func(cm *corev1.ConfigMap) error { cm.Data["done"] = "yes"; return nil })
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(10*each), got.Data["n"])
	shown := r.look("x")
	assert.Equal(t, got.ResourceVersion, shown.GetResourceVersion())
	r.settled(w, "configmaps")
}

// countRequests counts the requests for a resource, by method.
func countRequests(w *wire, resource string) func() map[string]int {
	var mu sync.Mutex
	counts := map[string]int{}
	of := map[string]func(*http.Request) bool{}
	for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodPut, http.MethodPost} {
		of[method] = writing(method, resource)
	}
	w.hookBefore(func(r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if matches := of[r.Method]; matches != nil && matches(r) && r.URL.Query().Get("watch") == "" {
			counts[r.Method]++
		}
		return nil
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		was := counts
		counts = map[string]int{}
		return was
	}
}

func TestModifyStartsFromTheWatchOrTheOwnWriteWithoutAGET(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t, kates.WithNamespace(ns))
	x := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x"}, Data: map[string]string{"n": "0"}}
	require.NoError(t, c.Create(ctx, x, nil))
	requests := countRequests(w, "configmaps")
	_, err := kates.Modify(ctx, c, x, increment)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"GET": 1, "PATCH": 1}, requests(), "nothing watches it")

	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns}, "configmaps")
	requests()
	for n := 2; n < 5; n++ { // the first read is from the watch, the others are from own writes
		got, err := kates.Modify(ctx, c, x, increment)
		require.NoError(t, err)
		assert.Equal(t, strconv.Itoa(n), got.Data["n"])
		assert.Equal(t, got.ResourceVersion, r.look("x").GetResourceVersion())
		got.Data["n"] = "mine" // the result is not shared
	}
	assert.Equal(t, map[string]int{"PATCH": 3}, requests())

	got, err := kates.Modify(ctx, c, x, func(*corev1.ConfigMap) error { return nil })
	require.NoError(t, err)
	assert.Equal(t, "4", got.Data["n"])
	assert.Empty(t, requests(), "nothing is sent where nothing changes")

	// Another writer was faster, and the watch does not know it: a conflict, a GET, and another
	// try.
	_, err = foreign(t).Resource(configMaps).Namespace(ns).Patch(ctx, "x", kates.MergePatchType, []byte(`{"data":{"n":"40"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	got, err = kates.Modify(ctx, c, x, increment)
	require.NoError(t, err)
	assert.Equal(t, "41", got.Data["n"])
	assert.Equal(t, map[string]int{"GET": 1, "PATCH": 2}, requests())
	dry, err := kates.Modify(ctx, c, x, increment, kates.DryRun())
	require.NoError(t, err)
	assert.Equal(t, "42", dry.Data["n"])
	assert.Equal(t, got.ResourceVersion, r.look("x").GetResourceVersion())
	assert.Equal(t, map[string]int{"PATCH": 1}, requests())

	// The object was deleted and made again, and the watch does not know it: it is another object
	// now.
	d := foreign(t).Resource(configMaps).Namespace(ns)
	require.NoError(t, d.Delete(ctx, "x", metav1.DeleteOptions{}))
	_, err = kates.Modify(ctx, c, x, increment)
	assert.True(t, kates.IsNotFound(err), "%v", err)
	again := object(configMaps, ns, "x", nil)
	again.Object["data"] = map[string]any{"n": "7"}
	_, err = d.Create(ctx, again, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = kates.Modify(ctx, c, x, increment, kates.IfUID(got.UID))
	assert.True(t, kates.IsConflict(err), "%v", err)
	got, err = kates.Modify(ctx, c, x, increment)
	require.NoError(t, err)
	assert.Equal(t, "8", got.Data["n"])
	assert.Equal(t, got.ResourceVersion, r.look("x").GetResourceVersion())
	r.settled(w, "configmaps")
}

// oldHost is a Go type that knows only a part of the kind.
type oldHost struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Hostname string `json:"hostname,omitempty"`
		Extra    struct {
			Parts []oldPart `json:"parts,omitempty"`
		} `json:"extra"`
	} `json:"spec"`
}

type oldPart struct {
	Name string `json:"name"`
	Size int    `json:"size,omitempty"`
}

func TestFieldsThatTheGoTypeDoesNotKnowSurviveModify(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t, kates.WithNamespace(ns))
	part := func(name string, size int64) any {
		return map[string]any{"name": name, "size": size, "new": "of " + name}
	}
	u := kates.NewUnstructured("Host", "getambassador.io/v3alpha1")
	u.SetName("x")
	u.Object["spec"] = map[string]any{
		"hostname": "red", "tlsSecret": map[string]any{"name": "new"},
		"extra": map[string]any{"new": "top", "parts": []any{part("a", 1), part("b", 2), part("c", 3)}},
	}
	require.NoError(t, c.Create(ctx, u, nil))
	for _, watched := range []bool{false, true} {
		if watched {
			r := lateReader(t, w, c, kates.Query{Kind: "hosts", Namespace: ns}, "hosts")
			defer func() {
				r.look("x")
				r.settled(w, "hosts")
			}()
		}
		_, err := kates.Modify(ctx, c, u, func(h *oldHost) error {
			h.Spec.Hostname += "er"
			h.Labels = map[string]string{"l": "m"}
			h.Spec.Extra.Parts = append([]oldPart{{Name: "first" + h.Spec.Hostname}}, h.Spec.Extra.Parts...)
			h.Spec.Extra.Parts[2].Size++
			return nil
		})
		require.NoError(t, err)
		_, err = kates.Modify(ctx, c, u, func(h *oldHost) error {
			h.Spec.Extra.Parts = h.Spec.Extra.Parts[1:]
			return nil
		})
		require.NoError(t, err)
	}
	got, err := foreign(t).Resource(hosts).Namespace(ns).Get(ctx, "x", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"hostname": "rederer", "tlsSecret": map[string]any{"name": "new"},
		"extra": map[string]any{"new": "top", "parts": []any{part("a", 1), part("b", 4), part("c", 3)}},
	}, got.Object["spec"])
	assert.Equal(t, map[string]string{"l": "m"}, got.GetLabels())
	_, err = kates.Modify(ctx, c, u, func(u *unstructured.Unstructured) error {
		unstructured.RemoveNestedField(u.Object, "spec", "tlsSecret")
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, c.Get(ctx, u, &got))
	assert.NotContains(t, got.Object["spec"], "tlsSecret", "an untyped change sees all")
}

func TestG4ModifyStatusWritesTheStatusAndNothingElse(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t, kates.WithNamespace(ns))
	d := deployment(ns)
	require.NoError(t, c.Create(ctx, d, nil))
	r := lateReader(t, w, c, kates.Query{Kind: "deploy", Namespace: ns}, "deployments")
	requests := countRequests(w, "deployments")
	got, err := kates.ModifyStatus(ctx, c, d, func(d *kates.Deployment) error { d.Status.ObservedGeneration = 7; return nil })
	require.NoError(t, err)
	assert.EqualValues(t, 7, got.Status.ObservedGeneration)
	shown, _, _ := unstructured.NestedInt64(r.look("x").Object, "status", "observedGeneration")
	assert.EqualValues(t, 7, shown)
	_, err = kates.ModifyStatus(ctx, c, d, func(d *kates.Deployment) error { d.Spec.Paused, d.Status.Replicas = true, 3; return nil })
	assert.ErrorContains(t, err, "its spec was changed as well")
	assert.Equal(t, map[string]int{"PATCH": 1}, requests())
	r.settled(w, "deployments")
}
