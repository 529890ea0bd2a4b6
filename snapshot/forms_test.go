package snapshot_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

type (
	content map[string]any

	// plain is a user's own view of a Service. Ports has no tag, so its name matches in any
	// letter case, as in encoding/json.
	plain struct {
		Metadata struct{ Name, Namespace string } `json:"metadata"`
		Spec     struct{ Ports []struct{ Port int } }
	}

	serviceList []*corev1.Service
	serviceMap  map[types.NamespacedName]corev1.Service
)

// everyForm combines all field forms with all element types.
type everyForm struct {
	Pointers      []*corev1.Service
	Values        []corev1.Service
	NamedSlice    serviceList
	NamedMap      serviceMap
	ByName        map[types.NamespacedName]*corev1.Service
	ByUID         map[types.UID]*corev1.Service
	ByUIDValue    map[types.UID]corev1.Service
	ByString      map[string]*corev1.Service
	ByStringValue map[string]corev1.Service

	Unstructured       []*unstructured.Unstructured
	UnstructuredValues []unstructured.Unstructured
	Metadata           []*metav1.PartialObjectMetadata
	MetadataByName     map[types.NamespacedName]metav1.PartialObjectMetadata
	Contents           []map[string]any
	ContentPointers    []*map[string]any
	NamedContents      []content
	ContentByString    map[string]map[string]any
	Plain              []plain
	PlainPointers      []*plain
	PlainByUID         map[types.UID]plain

	Any         []any
	AnyByString map[string]any
	Raw         []json.RawMessage
	RawByUID    map[types.UID]*json.RawMessage
	Named       []nameAlone
	List        corev1.ServiceList
	ListPointer *corev1.ServiceList
	PlainList   struct{ Items []*plain }
	UntypedList unstructured.UnstructuredList
}

// nameAlone is a type with a JSON form of its own.
type nameAlone string

func (n *nameAlone) UnmarshalJSON(data []byte) error {
	var o struct{ Metadata struct{ Name string } }
	err := json.Unmarshal(data, &o)
	*n = nameAlone(o.Metadata.Name)
	return err
}

func fieldsOf[S any]() []string {
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[S]()) {
		fields = append(fields, f.Name)
	}
	return fields
}

// wantForms is everyForm filled with u (untyped) and s (typed), which have the same content.
func wantForms(u *unstructured.Unstructured, s *corev1.Service) everyForm {
	key, uid := object.KeyOf(s), s.UID
	meta := metav1.PartialObjectMetadata{TypeMeta: s.TypeMeta, ObjectMeta: s.ObjectMeta}
	p := plain{}
	p.Metadata.Namespace, p.Metadata.Name = s.Namespace, s.Name
	p.Spec.Ports = []struct{ Port int }{{int(s.Spec.Ports[0].Port)}}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		panic(err)
	}
	return everyForm{
		Any:                []any{u.Object},
		AnyByString:        map[string]any{s.Name: u.Object},
		Raw:                []json.RawMessage{raw},
		RawByUID:           map[types.UID]*json.RawMessage{uid: (*json.RawMessage)(&raw)},
		Named:              []nameAlone{nameAlone(s.Name)},
		List:               corev1.ServiceList{Items: []corev1.Service{*s}},
		ListPointer:        &corev1.ServiceList{Items: []corev1.Service{*s}},
		PlainList:          struct{ Items []*plain }{[]*plain{&p}},
		UntypedList:        unstructured.UnstructuredList{Items: []unstructured.Unstructured{*u}},
		Pointers:           []*corev1.Service{s},
		Values:             []corev1.Service{*s},
		NamedSlice:         serviceList{s},
		NamedMap:           serviceMap{key: *s},
		ByName:             map[types.NamespacedName]*corev1.Service{key: s},
		ByUID:              map[types.UID]*corev1.Service{uid: s},
		ByUIDValue:         map[types.UID]corev1.Service{uid: *s},
		ByString:           map[string]*corev1.Service{s.Name: s},
		ByStringValue:      map[string]corev1.Service{s.Name: *s},
		Unstructured:       []*unstructured.Unstructured{u},
		UnstructuredValues: []unstructured.Unstructured{*u},
		Metadata:           []*metav1.PartialObjectMetadata{&meta},
		MetadataByName:     map[types.NamespacedName]metav1.PartialObjectMetadata{key: meta},
		Contents:           []map[string]any{u.Object},
		ContentPointers:    []*map[string]any{&u.Object},
		NamedContents:      []content{u.Object},
		ContentByString:    map[string]map[string]any{s.Name: u.Object},
		Plain:              []plain{p},
		PlainPointers:      []*plain{&p},
		PlainByUID:         map[types.UID]plain{uid: p},
	}
}

// jsonText compares JSON by what it says.
var jsonText = cmp.Transformer("JSON", func(raw json.RawMessage) (v any) {
	if err := json.Unmarshal(raw, &v); err != nil {
		panic(err)
	}
	return v
})

func TestEveryFieldFormIsFilledFromEveryRepresentation(t *testing.T) {
	fields := fieldsOf[everyForm]()
	b := compile[everyForm](t, fields...)

	s := typed("prod", "web", 80)
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	generic, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: generic}

	for _, src := range []tables.Object{u, s} {
		var got everyForm
		for query, name := range fields {
			value, err := b.Convert(query, src)
			require.NoError(t, err, name)
			table := b.NewTable(query)
			table.Apply([]tables.Change{{Key: object.KeyOf(src), Row: &tables.Row{Source: src, Value: value}}})
			b.Set(reflect.ValueOf(&got).Elem(), query, table, nil)

			row, ok := table.Get(object.KeyOf(src))
			require.True(t, ok, name)
			require.Equal(t, value, row.Value, "what Get returns of %s", name)
		}
		require.Empty(t, cmp.Diff(wantForms(u, s), got, jsonText), "from %T", src)
	}
}

func TestStringKeysHaveTheNamespaceWhereTheQuerySpansNamespaces(t *testing.T) {
	type byString struct{ Services map[string]*corev1.Service }
	for spans, want := range map[bool][]string{false: {"global", "web"}, true: {"global", "prod/web"}} {
		b, err := snapshot.Compile(reflect.TypeFor[byString](), []snapshot.Query{{Name: "Services", SpansNamespaces: spans}})
		require.NoError(t, err)
		table := b.NewTable(0)
		table.Apply([]tables.Change{changeOf(b, 0, typed("prod", "web", 1)), changeOf(b, 0, typed("", "global", 2))})
		var got []string
		for key := range table.Value().Interface().(map[string]*corev1.Service) {
			got = append(got, key)
		}
		require.ElementsMatch(t, want, got)
	}
}

func TestG9TheFirstInOrderIsInTheMapWhereKeysCollide(t *testing.T) {
	type byString struct{ Services map[string]*corev1.Service }
	b := compile[byString](t, "Services")
	table := b.NewTable(0)
	first := typed("a", "web", 1)
	for _, s := range []*corev1.Service{typed("b", "web", 2), first, typed("c", "web", 3)} {
		table.Apply([]tables.Change{changeOf(b, 0, s)})
	}
	require.Same(t, first, table.Value().Interface().(map[string]*corev1.Service)["web"])
}
