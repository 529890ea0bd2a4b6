package derive

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the snapshot of most tests.
type world struct {
	A, B    []item
	Objects []*metav1.PartialObjectMetadata
	Text    string
}

// item is an element with a key, and a reference to another.
type item struct {
	Key, Ref string
	N        int
}

func itemKey(x item) string { return x.Key }

func sourceA(g *Graph[world]) Collection[string, item] {
	return Slice(g, "a", func(w *world) []item { return w.A }, itemKey)
}

func sourceB(g *Graph[world]) Collection[string, item] {
	return Slice(g, "b", func(w *world) []item { return w.B }, itemKey)
}

func object(name, app string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app}}}
}

type (
	objectType = metav1.PartialObjectMetadata
	nameType   = types.NamespacedName
)

// update is an Update that has to succeed and to leave a sound graph.
func update[S any](t *testing.T, g *Graph[S], s S) *Reader {
	t.Helper()
	r, err := g.Update(&s)
	require.NoError(t, err)
	require.Empty(t, g.c.faults())
	return r
}

// all returns the valid entries of a collection.
func all[K comparable, V any](r *Reader, c Collection[K, V]) map[K]V {
	m := map[K]V{}
	for k, v := range c.All(r) {
		m[k] = v
	}
	return m
}

// invalid returns why entries are invalid.
func invalid[K comparable, V any](r *Reader, c Collection[K, V]) map[K]string {
	m := map[K]string{}
	for k, err := range c.Invalid(r) {
		m[k] = err.Error()
	}
	return m
}

// keysOf returns the keys of a group.
func keysOf[K comparable, V any](g Group[K, V]) (keys []K) {
	for k := range g.All() {
		keys = append(keys, k)
	}
	return keys
}

// journal notes which functions have run.
type journal struct{ runs []string }

func (j *journal) ran(what ...string) { j.runs = append(j.runs, strings.Join(what, " ")) }

// since returns the runs since it was called last.
func (j *journal) since() []string {
	runs := j.runs
	j.runs = nil
	return runs
}
