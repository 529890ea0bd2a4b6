package controller_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

func TestTheQueriesOfAControllerChangeWhileItRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "ua", "1")
		w.root("b", "ub", "1")
		w.secret("sa", "ns/a")
		w.put(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		c := &calls{}
		r := run(w, c.reconcile, bySecret)
		assert.ElementsMatch(w, []string{"ns/a ua=1 *sa @n", "ns/b ub=1 @n"}, c.taken())

		toB := kates.Query{Name: "Secrets", Key: kates.KeyOf(func(metav1.Object) []string { return []string{"ns/b"} })}
		require.NoError(w, r.Replace(w.Context(), toB, kates.Query{Name: "Nodes", LabelSelector: "x=y"}))
		r.runs()
		assert.ElementsMatch(w, []string{"ns/a ua=1", "ns/b ub=1 *sa"}, c.taken(), "both at once")

		require.NoError(w, r.Remove(w.Context(), "Secrets", "Deployments"))
		r.runs()
		assert.Contains(w, c.taken(), "ns/b ub=1")
		w.owns("a", "ua", "d")
		r.runs()
		assert.Empty(w, c.taken())
		require.NoError(w, r.Add(w.Context(), kates.Query{Name: "Deployments"}))
		r.runs()
		assert.Contains(w, c.taken(), "ns/a ua=1 +d", "what it controls has its key again")

		assert.ErrorContains(w, r.Remove(w.Context(), "Root"), "root")
		assert.ErrorContains(w, r.Replace(w.Context(), kates.Query{Name: "Info"}), "no exported field of that name that could be a query")
		assert.ErrorContains(w, r.Replace(w.Context(), kates.Query{Name: "Nodes", Kind: "pods"}), "its type")
		assert.ErrorContains(w, r.Replace(w.Context(), kates.Query{Name: "Deployments", Key: kates.ByNamespace}), "Key")

		require.NoError(w, r.Replace(w.Context(), kates.Query{Name: "Root", FieldSelector: "metadata.name=b"}))
		r.runs()
		assert.Contains(w, c.taken(), "ns/a ua=1 +d left", "it is there, though the query does not show it")
		r.stop()
		assert.ErrorIs(w, r.Replace(w.Context(), toB), kates.ErrNotRunning)
	})
}

func TestAChangeOfAQueryOfAControllerKeepsWhatItDoesNotChange(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "ua", "1")
		w.root("b", "ub", "1")
		w.secret("sa", "ns/a")
		w.secret("sb", "ns/b")
		w.owns("a", "ua", "d")
		c := &calls{}
		secrets := bySecret
		secrets.Where = kates.WhereOf(func(o metav1.Object) (bool, error) { return o.GetName() != "sb", nil })
		r := run(w, c.reconcile, secrets)
		assert.ElementsMatch(w, []string{"ns/a ua=1 +d *sa", "ns/b ub=1"}, c.taken())

		change := func(name string, f func(*kates.Query)) error { return r.Change(w.Context(), name, f) }
		require.NoError(w, change("Secrets", func(q *kates.Query) { q.Namespace = "elsewhere" }))
		r.runs()
		assert.Equal(w, []string{"ns/a ua=1 +d"}, c.taken())
		require.NoError(w, change("Secrets", func(q *kates.Query) {
			assert.Equal(w, "elsewhere", q.Namespace)
			q.Namespace = "ns"
		}))
		r.runs()
		assert.Equal(w, []string{"ns/a ua=1 +d *sa"}, c.taken(), "it has its Key and its Where")
		require.NoError(w, change("Deployments", func(q *kates.Query) {
			assert.Equal(w, kates.Query{Name: "Deployments"}, *q)
			q.Namespace = "elsewhere"
		}))
		r.runs()
		assert.Equal(w, []string{"ns/a ua=1 *sa"}, c.taken())
		require.NoError(w, change("Root", func(q *kates.Query) { q.FieldSelector = "metadata.name=b" }))
		r.runs()
		assert.Contains(w, c.taken(), "ns/a ua=1 *sa left")

		assert.ErrorContains(w, change("Info", nil), "is nil")
		none := func(*kates.Query) { w.Error("it is called") }
		for _, name := range []string{"Info", "Nothing"} {
			replaced := r.Replace(w.Context(), kates.Query{Name: name})
			assert.EqualError(w, change(name, none), strings.Replace(replaced.Error(), "replace:", "change:", 1))
		}
		require.NoError(w, r.Remove(w.Context(), "Secrets"))
		assert.ErrorContains(w, change("Secrets", none), `query "Secrets": there is no query of that name`)
		assert.ErrorContains(w, change("Root", func(q *kates.Query) { q.Kind = "nodes" }), "its type")
		r.stop()
		assert.ErrorIs(w, change("Root", none), kates.ErrNotRunning)
	})
}

// What is owned is found by the root's kind and name, so the kind stays.
func TestTheRootOfAControllerKeepsItsKind(t *testing.T) {
	type untyped struct {
		Root    *kates.Unstructured   `kates:",root"`
		Secrets []*kates.Unstructured `kates:"secrets,owned"`
	}
	inWorld(t, func(w *world) {
		w.root("a", "ua", "1")
		calls := 0
		r := run(w, func(context.Context, *untyped) (controller.Result, error) {
			calls++
			return controller.Done, nil
		}, kates.Query{Name: "Root", Kind: "configmaps"})
		assert.Equal(w, 1, calls)
		w.put(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})

		err := r.Replace(w.Context(), kates.Query{Name: "Root", Kind: "nodes"})
		require.ErrorContains(w, err, `replace: the root's kind is ConfigMap, and stays so; Node is another`)
		require.ErrorContains(w, r.Replace(w.Context(), kates.Query{Name: "Root", Kind: "unheardof"}), "unheardof")
		require.NoError(w, r.Replace(w.Context(), kates.Query{Name: "Root", Kind: "ConfigMap"}), "another name of the kind")
		w.root("b", "ub", "1")
		r.runs()
		assert.Equal(w, 2, calls)
	})
}
