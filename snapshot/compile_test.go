package snapshot_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

type labelName string

type Embedded struct{ Promoted []*corev1.Pod }

type embedded struct{ AlsoPromoted []*corev1.Pod }

type BehindPointer struct{ Remote []*corev1.Pod }

type impossible struct {
	*BehindPointer
	//lint:ignore U1000 its being here is the test
	hidden      []*corev1.Pod
	Fine        []*corev1.Pod
	Chan        chan int
	Struct      corev1.Pod
	Array       [4]corev1.Pod
	Scalars     []string
	Bytes       []byte
	Slices      [][]corev1.Pod
	Pointers    []**corev1.Pod
	Funcs       []func()
	Objects     []runtime.Object
	StringMaps  []map[string]string
	NamedKeys   []map[labelName]any
	IntKeys     map[int]corev1.Pod
	NamedKey    map[labelName]corev1.Pod
	KeysByPtr   map[*types.NamespacedName]corev1.Pod
	MapOfSlices map[string][]corev1.Pod
	Lists       []*corev1.PodList
	Ours        map[string]object.Object
	Lookups     []tables.Lookup[any]
	ToLookup    *tables.Lookup[*corev1.Pod]
	Channel     chan<- *corev1.Pod
	ToSlice     *[]*corev1.Pod
}

func TestCompileNamesTheQueryAndTheFieldThatIsImpossible(t *testing.T) {
	tests := []struct{ name, want string }{
		{"Missing", `query "Missing": snapshot_test.impossible has no field Missing`},
		{"hidden", `query "hidden": field hidden of snapshot_test.impossible is not exported`},
		{"Remote", `query "Remote": field Remote of snapshot_test.impossible is promoted through an embedded pointer`},
		{"Chan", `query "Chan": field Chan of snapshot_test.impossible has type chan int: a query fills a slice, a map, a list or a Lookup; want []T, map[K]T, Lookup[T] or a list`},
		{"Struct", `has type v1.Pod: a query fills a slice, a map, a list or a Lookup; want []*v1.Pod`},
		{"Array", `has type [4]v1.Pod: a query fills a slice, a map, a list or a Lookup; want []*v1.Pod`},
		{"Scalars", `has type []string: string cannot hold an object`},
		{"Bytes", `has type []uint8: uint8 cannot hold an object`},
		{"Slices", `has type [][]v1.Pod: []v1.Pod cannot hold an object; want []*v1.Pod`},
		{"Pointers", `has type []**v1.Pod: a pointer to a pointer cannot hold an object; want []*v1.Pod`},
		{"Funcs", `has type []func(): func() cannot hold an object`},
		{"Objects", `has type []runtime.Object: runtime.Object is an interface, which does not say what an object becomes; want []*unstructured.Unstructured or []any`},
		{"StringMaps", `has type []map[string]string: map[string]string is not a map[string]any`},
		{"NamedKeys", `map[snapshot_test.labelName]interface {} is not a map[string]any`},
		{"IntKeys", `has type map[int]v1.Pod: its keys are int; want map[types.NamespacedName]*v1.Pod`},
		{"NamedKey", `its keys are snapshot_test.labelName`},
		{"KeysByPtr", `its keys are *types.NamespacedName`},
		{"MapOfSlices", `has type map[string][]v1.Pod: []v1.Pod cannot hold an object; want map[string]*v1.Pod`},
		{"Lists", `v1.PodList is a list, not an object; want v1.PodList`},
		{"Ours", `has type map[string]kates.Object: kates.Object is an interface, which does not say what an object becomes; want []*unstructured`},
		{"Lookups", `has type []tables.Lookup[interface {}]: a Lookup is not an object; want tables.Lookup[interface {}]`},
		{"ToLookup", `has type *tables.Lookup[*k8s.io/api/core/v1.Pod]: a query fills a slice, a map, a list or a Lookup; want tables.Lookup[*k8s.io/api/core/v1.Pod]`},
		{"Channel", `has type chan<- *v1.Pod: a query fills a slice, a map, a list or a Lookup; want []*v1.Pod`},
		{"ToSlice", `has type *[]*v1.Pod: a query fills a slice, a map, a list or a Lookup; want []*v1.Pod`},
		{"", `query 1 has no name`},
		{"Fine", `query "Fine": there are two of that name`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, err := snapshot.Compile(reflect.TypeFor[impossible](), []snapshot.Query{{Name: "Fine"}, {Name: test.name}})
			require.ErrorContains(t, err, test.want)
			require.Nil(t, b)
		})
	}
}

func TestCompileWantsAStructType(t *testing.T) {
	for _, typ := range []reflect.Type{nil, reflect.TypeFor[*services](), reflect.TypeFor[int](), reflect.TypeFor[any]()} {
		_, err := snapshot.Compile(typ, nil)
		require.ErrorContains(t, err, "a snapshot is a struct, not ")
	}
}

func TestPromotedFieldsOfEmbeddedStructsAreSet(t *testing.T) {
	type outer struct {
		Embedded
		embedded
	}
	b := compile[outer](t, "Promoted", "AlsoPromoted")
	require.Equal(t, reflect.TypeFor[outer](), b.Type())

	var target outer
	v := reflect.ValueOf(&target).Elem()
	b.Set(v, 0, b.NewTable(0), nil)
	b.Set(v, 1, b.NewTable(1), nil)
	require.NotNil(t, target.Promoted)
	require.NotNil(t, target.AlsoPromoted)
}

func TestAnAbsentFieldIsNilAndAnEmptyOneIsNot(t *testing.T) {
	type both struct {
		List []*corev1.Pod
		Map  map[string]*corev1.Pod
	}
	b := compile[both](t, "List", "Map")
	var target both
	v := reflect.ValueOf(&target).Elem()
	for query := range 2 {
		b.Set(v, query, b.NewTable(query), nil)
	}
	require.Equal(t, both{List: []*corev1.Pod{}, Map: map[string]*corev1.Pod{}}, target)
	for query := range 2 {
		b.Set(v, query, nil, nil)
	}
	require.Equal(t, both{}, target)
}
