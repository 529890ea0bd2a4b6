package kates_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// document answers requests for OpenAPI: with the selectable fields of lamps, or, as long as it is
// down, with a refusal.
type document struct {
	http.RoundTripper
	down *atomic.Bool
}

func (d document) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/openapi/v3") {
		return d.RoundTripper.RoundTrip(r)
	}
	code, body := http.StatusOK, `{"paths":{"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1"}}}`
	if d.down.Load() {
		code, body = http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no documents for you","code":403}`
	} else if r.URL.Path != "/openapi/v3" {
		body = `{"components":{"schemas":{"lamp":{
			"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Lamp"}],
			"x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"},{"fieldPath":"spec.lit"},{"fieldPath":"spec.period"}]}}}}`
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// lamp is a program's type of a custom kind. It lacks a field, and writes others in another way
// than the server has them.
type lamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Lit    bool            `json:"lit"`
		Period metav1.Duration `json:"period,omitempty"`
	} `json:"spec,omitempty"`
}

func (l *lamp) DeepCopyObject() runtime.Object {
	c := *l
	l.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

const lamps = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lamps, singular: lamp, kind: Lamp, listKind: LampList}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.color}, {jsonPath: .spec.lit}, {jsonPath: .spec.period}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {color: {type: string}, lit: {type: boolean}, period: {type: string}}
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: red, namespace: default}
spec: {color: red, period: 90m}
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: dark, namespace: default}
spec: {lit: false}
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: plain, namespace: default}
spec: {}
`

// lampClient returns a client of a server with lamps.
func lampClient(t *testing.T, down *atomic.Bool) *kates.Client {
	scheme := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypeWithName(gv.WithKind("Lamp"), &lamp{})
	metav1.AddToGroupVersion(scheme, gv)
	server := katestest.NewServer(t, katestest.WithScheme(scheme), katestest.WithManifests(lamps))
	config := rest.CopyConfig(server.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return document{next, down} })
	c, err := kates.NewClientFromRESTConfig(config, kates.WithScheme(scheme), kates.WithInterval(0))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// A custom kind's Go type may lack a field that the server compares, or write the value otherwise.
func TestG4AlternativesOfACustomKindAreJudgedByWhatTheServerCompares(t *testing.T) {
	for _, selector := range []string{"spec.color=red", "spec.lit=false", "spec.lit=", "spec.period=90m"} {
		t.Run(selector, func(t *testing.T) {
			c := lampClient(t, new(atomic.Bool))
			type snapshot struct {
				Server, Typed, Kept []*lamp
				Untyped             []*kates.Unstructured
			}
			either := []kates.Selection{{FieldSelector: selector}, {LabelSelector: "marked"}}
			keep := kates.Keep("spec.period")
			s, err := kates.Watch[snapshot](t.Context(), c,
				kates.Query{Name: "Server", FieldSelector: selector}, kates.Query{Name: "Typed", AnyOf: either},
				kates.Query{Name: "Untyped", Kind: "lamps", AnyOf: either},
				kates.Query{Name: "Kept", AnyOf: either, Projection: keep})
			require.NoError(t, err)
			var snap snapshot
			next(t, s, &snap, func() bool { return true })
			want := secretNames(snap.Server)
			assert.NotEmpty(t, want)
			assert.Equal(t, want, secretNames(snap.Typed), "typed")
			assert.Equal(t, want, secretNames(snap.Untyped), "untyped")
			assert.Equal(t, want, secretNames(snap.Kept), "projected")

			own := kates.NewUnstructured("Lamp", "example.com/v1")
			own.SetNamespace("default")
			own.SetName("own")
			own.Object["spec"] = map[string]any{"color": "red", "lit": false, "period": "90m"}
			require.NoError(t, c.Create(t.Context(), own, nil))
			_, err = s.Update(t.Context(), &snap)
			require.NoError(t, err)
			assert.Equal(t, secretNames(snap.Server), secretNames(snap.Typed), "an own write")
			assert.Equal(t, selector != "spec.lit=", strings.Contains(fmt.Sprint(secretNames(snap.Typed)), "own"))
		})
	}
}

// A server publishes the document of a kind a moment after the kind, or refuses it.
func TestG8AlternativesWaitForTheDocumentOfTheirFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := new(atomic.Bool)
		down.Store(true)
		c := lampClient(t, down)
		either := []kates.Selection{{FieldSelector: "spec.color=red"}, {LabelSelector: "marked"}}
		type snapshot struct{ Lamps []*lamp }
		q := kates.Query{Name: "Lamps", AnyOf: either}
		for _, err := range []error{
			c.List(t.Context(), kates.Query{Kind: "lamps", AnyOf: either}, &[]*lamp{}),
			func() error { _, err := kates.Watch[snapshot](t.Context(), c, q); return err }(),
		} {
			require.ErrorContains(t, err, `"spec.color" of lamps`)
			require.ErrorContains(t, err, "read OpenAPI of example.com/v1")
			require.NotContains(t, err.Error(), "the query does not fit its kind")
		}
		go func() {
			time.Sleep(3 * time.Second)
			down.Store(false)
		}()
		s, err := kates.Watch[snapshot](t.Context(), c, q)
		require.NoError(t, err)
		var snap snapshot
		next(t, s, &snap, func() bool { return true })
		assert.Equal(t, []string{"red"}, secretNames(snap.Lamps))
	})
}
