package object

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// widget is a user's type: with fields that are not exported, itself, and JSON that is not
// decoded.
type widget struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Any      any
	Func     func()
	Raw      runtime.RawExtension
	Strings  map[string]string
	Nested   map[string]*widget
	Untyped  map[string]any
	When     metav1.Time
	Bytes    []byte
	List     []widget
	Pair     [2]float64
	Count    uint8
	Complex  complex64
	hidden   string
	moment   time.Time
	quantity resource.Quantity
	labels   map[string]string
	next     *widget
}

func (w *widget) DeepCopyObject() runtime.Object { panic("nobody copies it") }

// Equal would be called by a comparison that runs the code of users.
func (w *widget) Equal(*widget) bool { panic("nobody calls it") }

func TestTheSameContentIsWhatDecodesFromOneObject(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	zone := now.In(time.FixedZone("east", 3600))
	both := func() {}
	for name, pair := range map[string][2]widget{
		"nothing":                    {},
		"nil and empty":              {{Strings: map[string]string{}, Bytes: []byte{}, List: []widget{}, Nested: map[string]*widget{}}, {}},
		"a moment in two zones":      {{When: metav1.NewTime(now)}, {When: metav1.NewTime(zone)}},
		"JSON in two texts":          {{Raw: raw(`{"a":1,"b":[2]}`)}, {Raw: raw(`{ "b": [2], "a": 1 }`)}},
		"what is nested":             {{Nested: map[string]*widget{"a": {hidden: "x"}}}, {Nested: map[string]*widget{"a": {hidden: "x"}}}},
		"untyped values":             {{Untyped: map[string]any{"a": []any{int64(1), nil, 1.5, true}}}, {Untyped: map[string]any{"a": []any{int64(1), nil, 1.5, true}}}},
		"what an interface holds":    {{Any: &widget{hidden: "x"}}, {Any: &widget{hidden: "x"}}},
		"one function":               {{}, {}},
		"hidden maps and quantities": {{labels: map[string]string{"a": "b"}, quantity: resource.MustParse("1")}, {labels: map[string]string{"a": "b"}, quantity: resource.MustParse("1")}},
		"a hidden moment":            {{moment: now}, {moment: now}},
	} {
		assert.True(t, SameContent(&pair[0], &pair[1]), name)
	}
	assert.True(t, SameContent(&widget{Any: map[string]any{"a": "b"}, Pair: [2]float64{1, 2}}, &widget{Any: map[string]any{"a": "b"}, Pair: [2]float64{1, 2}}))
	assert.False(t, SameContent(&widget{Func: both}, &widget{}))
}

func TestEachDifferenceIsAnotherContent(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one := widget{}
	for name, other := range map[string]widget{
		"a version":                 {ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}},
		"a kind":                    {TypeMeta: metav1.TypeMeta{Kind: "Widget"}},
		"a label":                   {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": ""}}},
		"managed fields":            {ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"}}}},
		"an interface":              {Any: int64(0)},
		"JSON that is not decoded":  {Raw: raw(`{}`)},
		"an entry of a map":         {Strings: map[string]string{"": ""}},
		"an entry that is nil":      {Nested: map[string]*widget{"a": nil}},
		"an untyped entry":          {Untyped: map[string]any{"a": nil}},
		"a moment":                  {When: metav1.NewTime(now)},
		"a byte":                    {Bytes: []byte{0}},
		"an element":                {List: []widget{{}}},
		"a number":                  {Pair: [2]float64{0, 1}},
		"a small number":            {Count: 1},
		"a complex number":          {Complex: 1i},
		"a hidden field":            {hidden: "x"},
		"a hidden moment":           {moment: now},
		"a hidden quantity":         {quantity: resource.MustParse("1")},
		"a hidden map":              {labels: map[string]string{"a": "b"}},
		"a pointer to what is zero": {next: &widget{}},
	} {
		assert.False(t, SameContent(&one, &other), name)
		assert.False(t, SameContent(&other, &one), name)
	}
	assert.False(t, SameContent(&one, &metav1.PartialObjectMetadata{}), "another type")
	assert.False(t, SameContent(&one, nil), "nothing")
	assert.False(t, SameContent(&widget{Any: int64(1)}, &widget{Any: "1"}), "another type in an interface")
	assert.False(t, SameContent(&widget{Raw: raw(`[9007199254740992]`)}, &widget{Raw: raw(`[9007199254740993]`)}), "as float64 they are the same")
	assert.False(t, SameContent(&widget{Strings: map[string]string{"a": "b"}}, &widget{Strings: map[string]string{"b": "b"}}))
	assert.False(t, SameContent(&widget{Nested: map[string]*widget{"a": {}}}, &widget{Nested: map[string]*widget{"b": {}}}))
	spelled := func(s string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Overhead: corev1.ResourceList{"cpu": resource.MustParse(s)}}}
	}
	assert.True(t, SameContent(spelled("1"), spelled("1000m")))
	assert.False(t, SameContent(spelled("1Ki"), spelled("1024")), "an amount in another spelling")
	assert.False(t, SameContent(spelled("1"), spelled("2")))
}

func TestUntypedObjectsAreComparedValueByValue(t *testing.T) {
	base := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"s": "x", "i": int64(1), "f": 1.5, "b": true, "n": nil, "l": []any{"a", map[string]any{"k": "v"}},
		}}
	}
	require.True(t, SameContent(base(), base()))
	for name, change := range map[string]func(map[string]any){
		"a string":          func(o map[string]any) { o["s"] = "y" },
		"a number":          func(o map[string]any) { o["i"] = int64(2) },
		"a fraction":        func(o map[string]any) { o["f"] = 2.5 },
		"a truth":           func(o map[string]any) { o["b"] = false },
		"null and nothing":  func(o map[string]any) { delete(o, "n"); o["m"] = nil },
		"one entry more":    func(o map[string]any) { o["more"] = nil },
		"an element":        func(o map[string]any) { o["l"].([]any)[0] = "b" },
		"one element less":  func(o map[string]any) { o["l"] = o["l"].([]any)[:1] },
		"a nested entry":    func(o map[string]any) { o["l"].([]any)[1].(map[string]any)["k"] = "w" },
		"a type":            func(o map[string]any) { o["i"] = "1" },
		"a list for a map":  func(o map[string]any) { o["l"].([]any)[1] = []any{} },
		"a map for a list":  func(o map[string]any) { o["l"] = map[string]any{} },
		"a text for a bool": func(o map[string]any) { o["b"] = "true" },
	} {
		other := base()
		change(other.Object)
		assert.False(t, SameContent(base(), other), name)
		assert.False(t, SameContent(other, base()), name)
	}
	assert.False(t, SameContent(base(), &metav1.PartialObjectMetadata{}))
}

func TestAValueThatContainsItselfEndsTheComparison(t *testing.T) {
	a, b := &widget{}, &widget{}
	a.next, b.next = a, b
	assert.False(t, SameContent(a, b))
	assert.True(t, SameContent(a, a))
	s, u := &widget{}, &widget{}
	s.Any, u.Any = &s.Any, &u.Any
	assert.False(t, SameContent(s, u))
}

func TestARealisticPodIsComparedAsApimachineryDoes(t *testing.T) {
	a, b := realistic.Pod(1), realistic.Pod(1)
	require.True(t, equality.Semantic.DeepEqual(a, b))
	assert.True(t, SameContent(a, b))
	b.Status.ContainerStatuses[0].RestartCount++
	assert.False(t, SameContent(a, b))
	assert.False(t, SameContent(realistic.Pod(1), realistic.Pod(2)))
}

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

// BenchmarkSameContent compares two equal Pods that share no memory, as a list does with each
// object whose version is held.
func BenchmarkSameContent(b *testing.B) {
	one, other := realistic.Pod(1), realistic.Pod(1)
	untyped := func(p *corev1.Pod) *unstructured.Unstructured {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		require.NoError(b, err)
		return &unstructured.Unstructured{Object: content}
	}
	uOne, uOther := untyped(one), untyped(other)
	for name, same := range map[string]func() bool{
		"typed":            func() bool { return SameContent(one, other) },
		"untyped":          func() bool { return SameContent(uOne, uOther) },
		"typed/semantic":   func() bool { return equality.Semantic.DeepEqual(one, other) },
		"untyped/semantic": func() bool { return equality.Semantic.DeepEqual(uOne.Object, uOther.Object) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !same() {
					b.Fatal("they differ")
				}
			}
		})
	}
}
