package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/kates-go/kates/internal/client/kinds/selectable"
	"github.com/kates-go/kates/kates"
)

// signingRequest returns the request of a CertificateSigningRequest, in base64.
func signingRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// authority returns a certificate of an authority as a string of JSON.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	text, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	require.NoError(t, err)
	return string(text)
}

// podsCertificate returns what a PodCertificateRequest needs beside its names, as members of JSON.
func podsCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	require.NoError(t, err)
	return `"podUID":"u","serviceAccountName":"default","serviceAccountUID":"u","nodeUID":"u","maxExpirationSeconds":86400,` +
		`"stubPKCS10Request":"` + base64.StdEncoding.EncodeToString(der) + `"`
}

// installSelectable makes a kind with three selectable fields: a string, a boolean and an
// integer. It waits until they are in the server's OpenAPI documents, which follow a moment
// later.
func (g *gadget) installSelectable() {
	g.t.Helper()
	properties, declared := map[string]any{}, []any{}
	for name, kind := range map[string]string{"s": "string", "b": "boolean", "i": "integer"} {
		properties[name] = map[string]any{"type": kind, "nullable": true}
		declared = append(declared, map[string]any{"jsonPath": ".spec." + name})
	}
	_, err := g.others().Resource(definitions).Create(g.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": g.kind},
		"spec": map[string]any{
			"group": g.group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "selectableFields": declared,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
				}},
			}},
		},
	}}, metav1.CreateOptions{})
	require.NoError(g.t, err)
	awaitDeclared(g.t, g.group+"/v1")
	require.Eventually(g.t, func() bool {
		_, err := g.others().Resource(g.resource("v1")).List(g.t.Context(), metav1.ListOptions{FieldSelector: "spec.i=1"})
		return err == nil
	}, patience, 50*time.Millisecond)
}

// awaitDeclared waits until the server's OpenAPI document of a group and version declares
// selectable fields.
func awaitDeclared(t testing.TB, groupVersion string) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(serverOf(t))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		paths, err := d.OpenAPIV3().Paths()
		if err != nil || paths["apis/"+groupVersion] == nil {
			return false
		}
		raw, err := paths["apis/"+groupVersion].Schema("application/json")
		return err == nil && strings.Contains(string(raw), "x-kubernetes-selectable-fields")
	}, patience, 50*time.Millisecond)
}

// with returns a gadget with a spec.
func (g *gadget) with(ns, name string, spec map[string]any) *kates.Unstructured {
	u := g.object("v1", ns, name, "")
	u.SetLabels(map[string]string{"of": ns})
	u.Object["spec"] = spec
	return u
}

// listsSeen counts the list requests for a resource.
func listsSeen(w *wire, resource string) int {
	return w.seen(resource, func(r request) bool { return !r.watch && r.query.Get("limit") != "1" })
}

func TestG4AnOwnWriteMovesACustomObjectByADeclaredFieldWithoutAList(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	g := newGadget(t, ns)
	g.installSelectable()
	c := w.client(t)
	require.NoError(t, c.WaitFor(ctx, g.kind))
	// inside the query, and outside of it
	for selector, specs := range map[string][2]map[string]any{
		"spec.s=red":           {{"s": "red"}, {"s": "blue"}},
		"spec.b=true":          {{"b": true}, {"b": false}},
		"spec.b=false":         {{"b": false}, {}},
		"spec.i=42":            {{"i": int64(42)}, {"i": int64(43)}},
		"spec.i=":              {{}, {"i": int64(0)}},
		"spec.s=,spec.b!=true": {{"s": ""}, {"b": true}},
	} {
		t.Run(selector, func(t *testing.T) {
			r := lateReader(t, w, c, kates.Query{Kind: g.kind, Namespace: ns, FieldSelector: selector}, "gadgets")
			defer r.acc.Close()
			before := listsSeen(w, "gadgets")
			require.NoError(t, c.Create(ctx, g.with(ns, "x", specs[1]), nil))
			require.Nil(t, r.look("x"), "created outside")
			for range 2 {
				for i, in := range []bool{true, false} {
					require.NoError(t, c.Upsert(ctx, nil, g.with(ns, "x", specs[i]), nil))
					require.Equal(t, in, r.look("x") != nil, "in: %t", in)
				}
			}
			assert.Equal(t, before, listsSeen(w, "gadgets"), "no list was needed")
			require.NoError(t, c.Delete(ctx, g.with(ns, "x", nil), nil))
			require.Nil(t, r.look("x"))
			r.settled(w, "gadgets")
		})
	}
	c.Close()
	g.remove()
}

func TestDeclaredFieldsAreJudgedAsTheServerDoes(t *testing.T) {
	t.Parallel()
	ns, d := namespace(t), unlimited(t)
	g := newGadget(t, ns)
	g.installSelectable()
	in := d.Resource(g.resource("v1")).Namespace(ns)
	var made []*unstructured.Unstructured
	for name, spec := range map[string]map[string]any{
		"empty": {}, "nothing": {"s": "", "b": false, "i": int64(0)}, "null": {"s": nil, "b": nil, "i": nil},
		"something": {"s": "x,y=z", "b": true, "i": int64(-7)}, "large": {"i": int64(9007199254740993)}, "whole": {"i": 1e10},
	} {
		got, err := in.Create(t.Context(), g.with(ns, name, spec), metav1.CreateOptions{})
		require.NoError(t, err, name)
		made = append(made, got)
	}
	f := selectable.Custom([]string{"spec.s", "spec.b", "spec.i"})
	for _, field := range f.Names() {
		parity(t, in, ns, f, field, made)
	}
	g.remove()
}

func TestG4WithoutOpenAPIAnOwnWriteIsSettledByOneList(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	g := newGadget(t, ns)
	g.installSelectable()
	c := w.client(t)
	require.NoError(t, c.WaitFor(ctx, g.kind))
	w.hookBefore(noOpenAPI)
	r := lateReader(t, w, c, kates.Query{Kind: g.kind, Namespace: ns, FieldSelector: "spec.i=42"}, "gadgets")
	before := listsSeen(w, "gadgets")
	for i, in := range []bool{true, false, true} {
		spec := map[string]any{"i": map[bool]int64{true: 42, false: 1}[in]}
		require.NoError(t, c.Upsert(ctx, nil, g.with(ns, "x", spec), nil))
		require.Equal(t, in, r.look("x") != nil)
		assert.Equal(t, before+i+1, listsSeen(w, "gadgets"), "one list for each write")
	}
	c.Close()
	g.remove()
}

var errNoOpenAPI = errors.New("no OpenAPI, says the test")

// noOpenAPI refuses the OpenAPI documents. The client then has to ask the server what a custom
// field selects.
func noOpenAPI(r *http.Request) error {
	if strings.HasPrefix(r.URL.Path, "/openapi") {
		return errNoOpenAPI
	}
	return nil
}
