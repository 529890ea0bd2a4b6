package kates_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
	"github.com/kates-go/kates/kates/katestest"
)

// secretOf returns a Secret in the namespace default.
func secretOf(name, kind string, labels map[string]string) *kates.Secret {
	s := &kates.Secret{Type: "Opaque", Data: map[string][]byte{"password": []byte("nobody-may-read-this")}}
	if kind != "" {
		s.Type = "kubernetes.io/tls"
		s.Data = map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}
	}
	s.Namespace, s.Name, s.Labels = "default", name, labels
	s.Annotations = map[string]string{"note": name}
	return s
}

var ca = map[string]string{"ca": "yes"}

// tlsOrCA selects Secrets by a field or a label.
var tlsOrCA = []kates.Selection{{FieldSelector: "type=kubernetes.io/tls"}, {LabelSelector: "ca"}}

func secretNames[T kates.Object](all []T) (names []string) {
	for _, o := range all {
		names = append(names, o.GetName())
	}
	return names
}

// The client receives all Secrets, and drops those that no alternative selects. An own write moves
// one in and out at once (G4).
func TestG4SecretsThatNoAlternativeSelectsAreReceivedAndNeitherHeldNorLogged(t *testing.T) {
	server := katestest.NewServer(t, katestest.WithObjects(
		secretOf("tls", "tls", nil), secretOf("marked", "", ca), secretOf("left-out", "", nil)))
	var mu sync.Mutex
	var log strings.Builder
	c := server.Client(t, kates.WithLogger(slog.New(logr.ToSlogHandler(funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		log.WriteString(prefix + args + "\n")
	}, funcr.Options{Verbosity: 10})))))
	type secrets struct {
		Typed   []*kates.Secret
		Untyped []*kates.Unstructured
	}
	s, err := kates.Watch[secrets](t.Context(), c,
		kates.Query{Name: "Typed", AnyOf: tlsOrCA}, kates.Query{Name: "Untyped", Kind: "secrets", AnyOf: tlsOrCA})
	require.NoError(t, err)
	var snap secrets
	next(t, s, &snap, func() bool { return true })
	shows := func(names ...string) {
		t.Helper()
		assert.Equal(t, names, secretNames(snap.Typed))
		assert.Equal(t, names, secretNames(snap.Untyped))
		for _, in := range inspect.Of(c).Streams {
			assert.Equal(t, len(names), in.Objects)
			assert.Equal(t, `"" "type=kubernetes.io/tls" or "ca" ""`, in.AnyOf)
			assert.Empty(t, in.Fields)
		}
	}
	shows("marked", "tls")

	other := secretOf("left-out-too", "", nil)
	require.NoError(t, server.Client(t).Create(t.Context(), other, nil))
	require.NoError(t, c.Sync(t.Context()))
	_, err = s.Update(t.Context(), &snap)
	require.NoError(t, err)
	shows("marked", "tls")
	mu.Lock()
	assert.NotContains(t, log.String(), "left-out")
	assert.NotContains(t, log.String(), "nobody-may-read-this")
	mu.Unlock()

	other.Labels = ca
	require.NoError(t, c.Update(t.Context(), other, nil))
	_, err = s.Update(t.Context(), &snap)
	require.NoError(t, err)
	assert.Equal(t, []string{"left-out-too", "marked", "tls"}, secretNames(snap.Typed))
	other.Labels = nil
	require.NoError(t, c.Update(t.Context(), other, nil))
	_, err = s.Update(t.Context(), &snap)
	require.NoError(t, err)
	assert.Equal(t, []string{"marked", "tls"}, secretNames(snap.Typed))
}

// What alternatives are read from is held, though the projection does not name it.
func TestAlternativesAreJudgedThoughOnlySomeFieldsAreKept(t *testing.T) {
	for name, c := range keepClients(t, secretOf("tls", "tls", nil), secretOf("marked", "", ca), secretOf("left-out", "", nil)) {
		t.Run(name, func(t *testing.T) {
			type secrets struct {
				Typed   []*kates.Secret
				Untyped []*kates.Unstructured
			}
			keep := kates.Keep("metadata.annotations")
			s, err := kates.Watch[secrets](t.Context(), c,
				kates.Query{Name: "Typed", AnyOf: tlsOrCA, Projection: keep},
				kates.Query{Name: "Untyped", Kind: "secrets", AnyOf: tlsOrCA, Projection: keep})
			require.NoError(t, err)
			var snap secrets
			next(t, s, &snap, func() bool { return true })
			assert.Equal(t, []string{"marked", "tls"}, secretNames(snap.Typed))
			assert.Equal(t, []string{"marked", "tls"}, secretNames(snap.Untyped))
			assert.Zero(t, snap.Typed[1].CreationTimestamp)
			assert.Equal(t, "tls", snap.Typed[1].Annotations["note"])
			assert.EqualValues(t, "kubernetes.io/tls", snap.Typed[1].Type)
		})
	}
}

func TestAListHasWhatAnyAlternativeSelects(t *testing.T) {
	elsewhere := secretOf("tls", "tls", nil)
	elsewhere.Namespace = "other"
	for name, c := range keepClients(t, secretOf("tls", "tls", nil), secretOf("marked", "", ca), secretOf("left-out", "", nil), elsewhere) {
		t.Run(name, func(t *testing.T) {
			var all []*kates.Secret
			q := kates.Query{Kind: "secrets", Namespaces: []string{"default"}, AnyOf: tlsOrCA}
			require.NoError(t, c.List(t.Context(), q, &all))
			assert.Equal(t, []string{"marked", "tls"}, secretNames(all))
			q.Namespaces, q.AnyOf = nil, []kates.Selection{{FieldSelector: "metadata.name=tls,metadata.namespace=default"}, {LabelSelector: "ca"}}
			require.NoError(t, c.List(t.Context(), q, &all))
			assert.Equal(t, []string{"marked", "tls"}, secretNames(all))
		})
	}
}

func TestAnAlternativeThatMetadataDoesNotTellIsAnErrorThatNamesItsField(t *testing.T) {
	c := katestest.NewServer(t).Client(t)
	q := kates.Query{Name: "Secrets", Kind: "secrets", MetadataOnly: true, AnyOf: tlsOrCA}
	_, err := c.Watch(t.Context(), q)
	require.ErrorContains(t, err, `query "Secrets"`)
	require.ErrorContains(t, err, `"type" of secrets`)
	q.Optional = true
	_, err = c.Watch(t.Context(), q)
	require.ErrorContains(t, err, `"type" of secrets`)
	q.AnyOf = tlsOrCA[:1] // the server judges it
	_, err = c.Watch(t.Context(), q)
	require.NoError(t, err)
}
