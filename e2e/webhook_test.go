package e2e

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

// converter is a conversion webhook of a kind whose versions differ only in their names.
type converter struct {
	*httptest.Server
	dead atomic.Bool
	size atomic.Int64 // what it says of each object that it converts; 0: nothing
}

func newConverter(t *testing.T) *converter {
	c := &converter{}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(c.convert))
	t.Cleanup(c.Close)
	return c
}

// convert answers a ConversionReview. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion
func (c *converter) convert(w http.ResponseWriter, r *http.Request) {
	if c.dead.Load() {
		panic(http.ErrAbortHandler) // the connection breaks
	}
	var review struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Request    map[string]any `json:"request,omitempty"`
		Response   map[string]any `json:"response,omitempty"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	objects, _ := review.Request["objects"].([]any)
	for _, o := range objects {
		o.(map[string]any)["apiVersion"] = review.Request["desiredAPIVersion"]
		if size := c.size.Load(); size != 0 {
			o.(map[string]any)["size"] = size
		}
	}
	review.Response = map[string]any{"uid": review.Request["uid"], "convertedObjects": objects, "result": map[string]any{"status": "Success"}}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// of makes it the webhook of a kind that is stored as v1 and also served as v2.
func (c *converter) of(g *gadget) {
	g.t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	g.edit("/spec/versions/-", gadgetVersion("v2", false), "/spec/conversion", map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"url": c.URL, "caBundle": ca},
		},
	})
}

func TestG8AConversionWebhookThatIsDeadIsNamedAndHarmsNoOtherKind(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	g, hook := newGadget(t, f.ns), newConverter(t)
	g.install("v1")
	g.make("v1", f.ns, "a", "b")
	hook.dead.Store(true)
	hook.of(g)
	v2 := strings.Replace(g.kind, ".", ".v2.", 1)
	require.NoError(t, f.client.WaitFor(t.Context(), v2))
	others, err := f.client.Watch(t.Context(), kates.Query{Name: "Stored", Kind: strings.Replace(g.kind, ".", ".v1.", 1), Namespace: f.ns},
		kates.Query{Name: "ConfigMaps", Kind: "cm", Namespace: f.ns})
	require.NoError(t, err)
	g.follow(f, "v2", kates.Query{Kind: v2, Optional: true})
	f.says(kates.StateRetrying, "conversion webhook for "+g.group+"/v1, Kind=Gadget failed")
	f.update()
	require.Zero(t, f.updates, "G1: though it is optional")
	require.ErrorContains(t, f.acc.Ready(), "conversion webhook")
	awaitSignal(t, others.Changed())
	require.NoError(t, others.Ready(), "another kind, and the version that is stored")
	hook.dead.Store(false)
	f.arrive()
	f.quiet()

	hook.dead.Store(true)
	g.edit("/spec/names/shortNames", []any{"gdg"}) // this restarts the kind's serving
	f.says(kates.StateRetrying, "conversion webhook for "+g.group+"/v1, Kind=Gadget failed")
	f.unchanged()
	require.ErrorContains(t, f.acc.Status().Err(), "conversion webhook")
	g.make("v1", f.ns, "c")
	f.change(0)
	var snap struct {
		Stored     []*kates.Unstructured
		ConfigMaps []*kates.ConfigMap
	}
	require.Eventually(t, func() bool {
		_, err := others.Update(t.Context(), &snap)
		return err == nil && len(snap.Stored) == 3 && len(snap.ConfigMaps) == 2
	}, patience, 10*time.Millisecond, "they go on")
	f.unchanged()
	assert.NoError(t, f.acc.Ready())
	hook.dead.Store(false)
	f.arrive()
	f.quiet()
	f.client.Close()
	g.remove()
}
