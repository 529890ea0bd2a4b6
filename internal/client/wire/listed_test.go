package wire

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/client/connection"
	objects "github.com/kates-go/kates/internal/object"
)

var hosts = objects.Resource{
	GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "hosts"},
	Kind:                 schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Host"}, Namespaced: true,
}

var someMaps = objects.Resource{
	GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	Kind:                 schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespaced: true,
}

// answering returns the source of a resource on a server that answers each list with the next
// text, and what lists from it.
func answering(t *testing.T, r objects.Resource, form objects.Form, texts ...string) func() (names []string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text := texts[0]
		texts = texts[1:]
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	over, err := connection.Connect(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	t.Cleanup(over.Close)
	s := NewServer(connection.NewLink(over))
	s.Scheme, s.MaxObjectBytes = scheme.Scheme, 1<<20
	source := s.Source(r, "", form)
	return func() (names []string, err error) {
		_, err = source.ListItems(context.Background(), metav1.ListOptions{}, func(o runtime.Object) error {
			name := o.(objects.Object).GetName()
			if objects.Fault(o.(objects.Object)) != nil {
				name += ", which does not decode"
			}
			names = append(names, name)
			return nil
		})
		return names, err
	}
}

func listText(kind string, items ...string) string {
	return `{"kind":"` + kind + `","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
}

const (
	hostA     = `{"kind":"Host","apiVersion":"example.com/v1","metadata":{"name":"a"}}`
	kindlessA = `{"metadata":{"name":"a"}}`
)

func TestTheFirstListOfACustomKindTellsWhatItsListsAreCalled(t *testing.T) {
	for name, c := range map[string]struct {
		texts []string
		ok    []bool
	}{
		"as usual":                      {[]string{listText("HostList"), listText("HostList", hostA), listText("HostList", kindlessA)}, []bool{true, true, true}},
		"otherwise":                     {[]string{listText("Hosting"), listText("Hosting"), listText("Hosting", hostA)}, []bool{true, true, true}},
		"empty, and another":            {[]string{listText("Hosting"), listText("PodList"), listText("Hosting")}, []bool{true, false, true}},
		"full, and another":             {[]string{listText("Hosting", hostA), listText("Hostings"), listText("Hostings", kindlessA)}, []bool{true, false, false}},
		"renamed, as its objects tell":  {[]string{listText("Hosting", hostA), listText("Hostings", hostA), listText("Hostings")}, []bool{true, true, true}},
		"objects that do not say it":    {[]string{listText("Hosting", kindlessA), listText("Hosting")}, []bool{false, true}},
		"its own name":                  {[]string{listText("Host"), listText("HostList")}, []bool{false, true}},
		"as usual, and then another":    {[]string{listText("HostList"), listText("PodList"), listText("HostList")}, []bool{true, false, true}},
		"another version":               {[]string{strings.Replace(listText("HostList"), "/v1", "/v2", 1)}, []bool{false}},
		"null, as some servers say":     {[]string{`{"kind":"HostList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":null}`}, []bool{true}},
		"null behind, of what is right": {[]string{`{"items":null,"kind":"HostList","apiVersion":"example.com/v1"}`}, []bool{true}},
		"null without a kind":           {[]string{`{"items":null,"apiVersion":"example.com/v1"}`}, []bool{false}},
	} {
		list := answering(t, hosts, objects.Whole, c.texts...)
		for i, ok := range c.ok {
			_, err := list()
			assert.Equal(t, ok, err == nil, "%s, %d: %v", name, i, err)
		}
	}
}

func TestAListOfMetadataMayBeOfWholeObjectsOfTheKindAndOfNoOther(t *testing.T) {
	whole := listText("HostList", hostA)
	list := answering(t, hosts, objects.Metadata, whole, whole)
	names, err := list()
	require.NoError(t, err, "it is asked for again, as whole objects")
	assert.Equal(t, []string{"a"}, names)
	for _, other := range []string{
		`{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[]}`, `{"kind":"Status","apiVersion":"v1","code":406}`,
		`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[` + hostA + `]}`,
	} {
		list := answering(t, hosts, objects.Metadata, other,
			`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[`+kindlessA+`]}`)
		_, err := list()
		require.Error(t, err)
		names, err := list()
		require.NoError(t, err, "metadata is asked for again")
		assert.Equal(t, []string{"a"}, names)
	}
}

// A server may have stored an object that a Go type does not take. It cannot have stored what is
// no JSON.
func TestG8WhatAServerMayHaveStoredIsOneObjectThatDoesNotDecodeAndWhatNotIsABadList(t *testing.T) {
	named := func(more string) string { return `{"metadata":{"name":"b"},` + more + `}` }
	for form, kind := range map[objects.Form]string{objects.Whole: "untyped", objects.Typed: "typed", objects.Metadata: "metadata"} {
		for more, stored := range map[string]map[string]bool{
			`"data":7`:                          {"typed": true},
			`"data":{"x":99999999999999999999}`: {"typed": true},
			`"x":1e999`:                         {"untyped": true},
			`"x":{"y":1,"z":2},"w":[{"y":1}]`:   {},
			`"data":{"x":"1","x":"2"}`:          nil,
			`"data":{"x":"` + "\xc3\x28" + `"}`: nil,
			`"data":{"x":"\ud800"}`:             {},
			`"data":{"x":"1",}`:                 nil,
			`"data":[}`:                         nil,
		} {
			if kind == "metadata" && strings.Contains(more, `"x":"1","x"`) {
				continue // the decoder of metadata passes over all other fields
			}
			text := strings.NewReplacer("example.com/", "", "Host", "ConfigMap").Replace(listText("HostList", kindlessA, named(more)))
			if form == objects.Metadata {
				text = strings.NewReplacer(`"ConfigMapList","apiVersion":"v1"`, `"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"`).Replace(text)
			}
			names, err := answering(t, someMaps, form, text)()
			switch {
			case stored == nil:
				assert.ErrorIs(t, err, errDamaged, "%s %s", kind, more)
				assert.ErrorContains(t, err, `/b": it is damaged`)
			case stored[kind]:
				assert.NoError(t, err)
				assert.Equal(t, []string{"a", "b, which does not decode"}, names, "%s %s", kind, more)
			default:
				assert.NoError(t, err)
				assert.Equal(t, []string{"a", "b"}, names, "%s %s", kind, more)
			}
		}
	}
}

func TestNothingIsDecodedFromProtobufThatMayBeNestedToAnyDepth(t *testing.T) {
	type tree struct {
		Name  string
		Trees map[string][]*tree
	}
	type twice struct{ A, B struct{ C map[string]int } }
	assert.True(t, nests(reflect.TypeFor[tree]()) && nests(reflect.TypeFor[struct{ T [2]tree }]()))
	assert.False(t, nests(reflect.TypeFor[twice]()))
	nested := 0
	for kind, typ := range scheme.Scheme.AllKnownTypes() {
		if nests(typ) {
			assert.Equal(t, "scheduling.k8s.io", kind.Group, kind)
			nested++
		}
	}
	assert.Positive(t, nested)
}
