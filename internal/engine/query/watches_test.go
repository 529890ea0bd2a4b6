package query

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/internal/object"
)

func TestASelectionThatRequiresANamespaceIsWatchedInIt(t *testing.T) {
	anyOf := func(texts ...string) (all []object.Selection) {
		for _, text := range texts {
			all = append(all, object.Selection{Fields: fields.ParseSelectorOrDie(text)})
		}
		return all
	}
	const named = "metadata.namespace=a,metadata.name=x"
	for _, c := range []struct {
		name string
		q    Query
		wide bool // the kind has no namespaces
		want []string
	}{
		{"each in its own", Query{AnyOf: anyOf(named, "metadata.namespace=b")}, false, []string{"a: metadata.name=x", "b: "}},
		{"not where another is wanted", Query{Namespaces: []string{"a", "b"}, AnyOf: anyOf(named, "metadata.name=y")}, false,
			[]string{"a: metadata.name=x", "a: metadata.name=y", "b: metadata.name=y"}},
		{"the query's own namespace", Query{Namespace: "b", AnyOf: anyOf(named)}, false, nil},
		{"what else is required stays", Query{AnyOf: anyOf(named + ",metadata.namespace!=a,metadata.namespace=c")}, false,
			[]string{"a: metadata.name=x,metadata.namespace!=a,metadata.namespace=c"}},
		{"a kind without namespaces", Query{AnyOf: anyOf(named)}, true, []string{": metadata.name=x,metadata.namespace=a"}},
		{"selected namespaces", Query{Spaces: &Spaces{}, AnyOf: anyOf(named)}, false, []string{": metadata.name=x,metadata.namespace=a"}},
		{"the query's own fields", Query{Fields: anyOf("metadata.namespace=a")[0].Fields}, false, []string{": metadata.namespace=a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, w := range c.q.Watches(object.Resource{Namespaced: !c.wide}) {
				text := ""
				if w.Fields != nil {
					terms := w.Fields.Requirements()
					slices.SortStableFunc(terms, func(a, b fields.Requirement) int { return cmp.Compare(a.Field, b.Field) })
					for i, r := range terms {
						if i > 0 {
							text += ","
						}
						text += fmt.Sprintf("%s%s%s", r.Field, r.Operator, r.Value)
					}
				}
				got = append(got, w.Namespace+": "+text)
			}
			assert.Equal(t, c.want, got)
		})
	}
}
