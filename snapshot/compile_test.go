package snapshot_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

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
}

func TestCompileNamesTheQueryAndTheFieldThatIsImpossible(t *testing.T) {
	tests := []struct{ name, want string }{
		{"Missing", `query "Missing": snapshot_test.impossible has no field Missing`},
		{"hidden", `query "hidden": field hidden of snapshot_test.impossible is not exported`},
		{"Remote", `query "Remote": field Remote of snapshot_test.impossible is promoted through an embedded pointer`},
		{"Chan", `query "Chan": field Chan of snapshot_test.impossible has type chan int: it is neither a slice, nor a map, nor a list; want []T, map[K]T, Lookup[T] or a list`},
		{"Struct", `has type v1.Pod: it is neither`},
		{"Array", `has type [4]v1.Pod: it is neither`},
		{"Scalars", `has type []string: string cannot hold an object`},
		{"Bytes", `has type []uint8: uint8 cannot hold an object`},
		{"Slices", `has type [][]v1.Pod: []v1.Pod cannot hold an object`},
		{"Pointers", `has type []**v1.Pod: *v1.Pod cannot hold an object`},
		{"Funcs", `has type []func(): func() cannot hold an object`},
		{"Objects", `has type []runtime.Object: runtime.Object cannot hold an object`},
		{"StringMaps", `has type []map[string]string: map[string]string is not a map[string]any`},
		{"NamedKeys", `map[snapshot_test.labelName]interface {} is not a map[string]any`},
		{"IntKeys", `has type map[int]v1.Pod: its keys are int`},
		{"NamedKey", `its keys are snapshot_test.labelName`},
		{"KeysByPtr", `its keys are *types.NamespacedName`},
		{"MapOfSlices", `has type map[string][]v1.Pod: []v1.Pod cannot hold an object`},
		{"Lists", `v1.PodList is a list, not an object`},
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
	b.Set(v, 0, b.NewTable(0))
	b.Set(v, 1, b.NewTable(1))
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
		b.Set(v, query, b.NewTable(query))
	}
	require.Equal(t, both{List: []*corev1.Pod{}, Map: map[string]*corev1.Pod{}}, target)
	for query := range 2 {
		b.SetAbsent(v, query)
	}
	require.Equal(t, both{}, target)
}
