package snapshot_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// inner embeds a Lookup, as package kates does.
type inner[T any] struct{ tables.Lookup[T] }

type lookups struct {
	Typed    tables.Lookup[*corev1.Service]
	Values   inner[corev1.Service]
	Contents inner[map[string]any]
	Plain    tables.Lookup[*plain]
}

// lookedUp is a Lookup that was handed out, with what it must show for as long as somebody holds
// it.
type lookedUp struct {
	text func(namespace, name, selector string) string
	want map[tables.Key]string
}

var lookupSelectors = []string{"", "port=odd", "port!=odd", "port=none"}

// check compares all that can be found by name, and several selections.
func (l lookedUp) check(t *rapid.T) {
	for _, namespace := range []string{"", "a", "a-b", "b", "z"} {
		for _, name := range []string{"a", "b", "aa", "ab", "none"} {
			if got, want := l.text(namespace, name, ""), l.want[tables.Key{Namespace: namespace, Name: name}]; got != want {
				t.Fatalf("%s/%s is %q, want %q", namespace, name, got, want)
			}
		}
		for _, s := range lookupSelectors {
			selector, _ := labels.Parse(s)
			want := ""
			for _, key := range slices.SortedFunc(maps.Keys(l.want), object.Compare) {
				port := labels.Set{"port": "even"}
				if v := l.want[key]; v[len(v)-1]%2 == 1 {
					port["port"] = "odd"
				}
				if (namespace == "" || key.Namespace == namespace) && selector.Matches(port) {
					want += l.want[key] + " "
				}
			}
			if got := l.text(namespace, "", s); got != want {
				t.Fatalf("%q in %q are %q, want %q", s, namespace, got, want)
			}
		}
	}
}

func textOf[T any](l interface {
	Get(namespace, name string) (T, error)
	List(namespace string, selector labels.Selector) ([]T, error)
}, port func(T) int64) func(string, string, string) string {
	return func(namespace, name, selector string) (text string) {
		if name != "" {
			if elem, err := l.Get(namespace, name); err == nil {
				return fmt.Sprint(port(elem))
			}
			return ""
		}
		var s labels.Selector
		if selector != "" {
			s, _ = labels.Parse(selector)
		}
		all, err := l.List(namespace, s)
		if err != nil {
			return err.Error()
		}
		for _, elem := range all {
			text += fmt.Sprint(port(elem)) + " "
		}
		return text
	}
}

// texts returns functions that read the Lookups of a struct, one per query.
func (l lookups) texts() []func(string, string, string) string {
	return []func(string, string, string) string{
		textOf(l.Typed, func(s *corev1.Service) int64 { return int64(s.Spec.Ports[0].Port) }),
		textOf(l.Values, func(s corev1.Service) int64 { return int64(s.Spec.Ports[0].Port) }),
		textOf(l.Contents, func(m map[string]any) int64 {
			return m["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["port"].(int64)
		}),
		textOf(l.Plain, func(p *plain) int64 { return int64(p.Spec.Ports[0].Port) }),
	}
}

// The test draws changes of a Lookup of each form. At the end it compares every Lookup that was
// handed out with what it had to show then.
func TestG9G10ALookupShowsOneStateForEver(t *testing.T) {
	b := compile[lookups](t, "Typed", "Values", "Contents", "Plain")
	rapid.Check(t, func(t *rapid.T) {
		query, port := rapid.IntRange(0, 3).Draw(t, "query"), int64(0)
		table, now := b.NewTable(query), map[tables.Key]string{}
		var all []lookedUp
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			var changes []tables.Change
			keys := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) tables.Key {
				return tables.Key{
					Namespace: rapid.SampledFrom([]string{"", "a", "a-b", "b"}).Draw(t, "namespace"),
					Name:      rapid.StringMatching("[ab]{1,2}").Draw(t, "name"),
				}
			}), 0, 8, rapid.ID[tables.Key]).Draw(t, "keys")
			for _, key := range keys {
				c := tables.Change{Key: key}
				if delete(now, key); rapid.Bool().Draw(t, "shown") {
					port++
					now[key] = fmt.Sprint(port)
					parity := map[string]string{"port": []string{"even", "odd"}[port%2]}
					if u, s := untyped(key.Namespace, key.Name, port), typed(key.Namespace, key.Name, int32(port)); query < 2 && rapid.Bool().Draw(t, "typed") {
						s.Labels = parity
						c.Row = rowOf(b, query, s)
					} else {
						u.SetLabels(parity)
						c.Row = rowOf(b, query, u)
					}
				}
				changes = append(changes, c)
			}
			table.Apply(changes)
			var target lookups
			b.Set(reflect.ValueOf(&target).Elem(), query, table, nil)
			all = append(all, lookedUp{target.texts()[query], maps.Clone(now)})
		}
		for _, l := range all {
			l.check(t)
		}
	})
}

func TestALookupIsEqualWhereNothingHasChangedAndWhereThereIsNoKind(t *testing.T) {
	b := compile[lookups](t, "Typed")
	table := b.NewTable(0)
	table.Apply([]tables.Change{changeOf(b, 0, typed("a", "x", 80))})
	var one, other lookups
	set := func(l *lookups) { b.Set(reflect.ValueOf(l).Elem(), 0, table, nil) }
	set(&one)
	set(&other)
	require.Equal(t, one.Typed, other.Typed)
	require.True(t, one.Typed == other.Typed && one.Typed.Available())
	table.Apply([]tables.Change{changeOf(b, 0, typed("a", "x", 81))})
	set(&other)
	require.False(t, one.Typed == other.Typed)

	b.Set(reflect.ValueOf(&one).Elem(), 0, nil, nil)
	require.False(t, one.Typed.Available())
	_, err := one.Typed.Get("a", "x")
	require.True(t, apierrors.IsNotFound(err), err)
	all, err := one.Typed.List("", nil)
	require.NoError(t, err)
	require.Empty(t, all)
	b.Set(reflect.ValueOf(&other).Elem(), 0, nil, nil)
	require.True(t, one.Typed == other.Typed)
}

// noted records the look-ups.
type noted []string

func (n *noted) Named(key tables.Key) { *n = append(*n, key.String()) }
func (n *noted) Selected(namespace string, selector labels.Selector) {
	*n = append(*n, fmt.Sprint(namespace, " ", selector))
}

func TestEveryLookUpIsRecordedAbsenceIncludedWhereSomebodyAsksForIt(t *testing.T) {
	b := compile[lookups](t, "Typed")
	table := b.NewTable(0)
	table.Apply([]tables.Change{changeOf(b, 0, typed("a", "x", 80))})
	var plain, recorded lookups
	var reads noted
	b.Set(reflect.ValueOf(&recorded).Elem(), 0, table, &reads)
	b.Set(reflect.ValueOf(&plain).Elem(), 0, table, nil)
	for _, l := range []lookups{plain, recorded} {
		got, _ := l.Typed.Get("a", "x")
		require.Equal(t, int32(80), got.Spec.Ports[0].Port)
		_, _ = l.Typed.Get("a", "none")
		_, _ = l.Typed.List("a", nil)
		_, _ = l.Typed.List("", labels.SelectorFromSet(labels.Set{"l": "v"}))
	}
	require.Equal(t, noted{"a/x", "a/none", "a <nil>", " l=v"}, reads)
}
