package applied

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// An applied object, and the fields that a server makes of it.
const (
	appliedObject = `{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "y", "uid": "z", "labels": {"a": "b"},
			"finalizers": ["f/a", "f/b"], "ownerReferences": [{"uid": "1", "name": "root"}]},
		"spec": {
			"number": 1, "empty": {}, "atomic": {"p": {"q": 1}}, "list": [1, 2],
			"ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "name": "dns"}],
			"nested": [{"name": "a", "env": [{"name": "E", "value": "v"}]}]
		}
	}`
	appliedFields = `{
		"f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"f/a\"": {}, "v:\"f/b\"": {}}, "f:ownerReferences": {"k:{\"uid\":\"1\"}": {}}},
		"f:spec": {
			"f:number": {}, "f:empty": {}, "f:atomic": {}, "f:list": {},
			"f:ports": {
				"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
				"k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}}
			},
			"f:nested": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:env": {"k:{\"name\":\"E\"}": {".": {}, "f:name": {}, "f:value": {}}}}}
		}
	}`
)

func TestAnApplierOwnsJustWhatItAppliesOrSomebodyHasChangedIt(t *testing.T) {
	for what, test := range map[string]struct {
		object, fields [2]string // a text that is replaced, and its replacement
		want           bool
	}{
		"nothing else":                    {want: true},
		"a field is another's":            {fields: [2]string{`"f:number": {}, `, ``}},
		"a label is another's":            {fields: [2]string{`"f:labels": {"f:a": {}}, `, ``}},
		"a field is no longer applied":    {object: [2]string{`"number": 1, `, ``}},
		"a part is no longer applied":     {object: [2]string{`"spec": {`, `"spec": {}, "other": {`}},
		"a field is new":                  {object: [2]string{`"number": 1`, `"number": 1, "another": 2`}},
		"an owner's other fields":         {fields: [2]string{`"f:number": {}`, `"f:number": {}, "f:another": {}`}},
		"an item is another's":            {fields: [2]string{`"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},`, ``}},
		"an item's field is another's":    {fields: [2]string{`"f:protocol": {}, `, ``}},
		"an item of an item is another's": {fields: [2]string{`, "f:value": {}`, ``}},
		"an item is no longer applied":    {object: [2]string{`{"port": 80}, `, ``}},
		"an item is new":                  {object: [2]string{`{"port": 80}, `, `{"port": 80}, {"port": 81}, `}},
		"a key is another":                {object: [2]string{`{"port": 80}`, `{"port": 81}`}},
		"a key that may be either's":      {object: [2]string{`{"port": 80}, `, `{"port": 80, "protocol": "TCP"}, {"port": 80}, `}},
		"items of which one leaves out what tells them apart": {
			[2]string{`{"port": 80}`, `{"port": 53}`}, [2]string{`80,\"protocol\":\"TCP`, `53,\"protocol\":\"TCP`}, true,
		},
		"an item is no longer applied beside one that it is like": {
			fields: [2]string{`"k:{\"port\":80,`, `"k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}}, "k:{\"port\":80,`},
		},
		"a default that is said":               {object: [2]string{`{"port": 80}`, `{"port": 80, "protocol": "TCP"}`}},
		"the same, and owned":                  {[2]string{`{"port": 80}`, `{"port": 80, "protocol": "TCP"}`}, [2]string{`{".": {}, "f:port": {}},`, `{".": {}, "f:port": {}, "f:protocol": {}},`}, true},
		"a value of a set is another's":        {fields: [2]string{`"v:\"f/a\"": {}, `, ``}},
		"a value of a set is new":              {object: [2]string{`"f/a", `, `"f/a", "f/c", `}},
		"what is inside of an atomic part":     {object: [2]string{`{"q": 1}`, `{"r": 2}`}, want: true},
		"a scalar that was an object":          {object: [2]string{`"labels": {"a": "b"}`, `"labels": "a"`}},
		"a list that was an object":            {object: [2]string{`"labels": {"a": "b"}`, `"labels": ["a"]`}},
		"an object that was a list":            {object: [2]string{`["f/a", "f/b"]`, `{"f/a": "f/b"}`}},
		"an item that is no object":            {object: [2]string{`{"port": 80}, `, `80, `}},
		"items by their places, which is none": {fields: [2]string{`"v:\"f/a\"": {}, "v:\"f/b\"": {}`, `"i:0": {}, "i:1": {}`}},
		"what nobody can read":                 {fields: [2]string{`{`, `[`}},
		"nobody knows":                         {fields: [2]string{appliedFields, ``}},
	} {
		t.Run(what, func(t *testing.T) {
			changed := func(text string, change [2]string) string {
				if change[0] != "" {
					require.Contains(t, text, change[0])
				}
				return strings.Replace(text, change[0], change[1], 1)
			}
			u := &unstructured.Unstructured{}
			require.NoError(t, u.UnmarshalJSON([]byte(changed(appliedObject, test.object))))
			before := u.DeepCopy()
			assert.Equal(t, test.want, (&Check{Whole: byFields, Live: func() map[string]any { return before.Object }}).OwnsJust([]byte(changed(appliedFields, test.fields)), u))
			assert.Equal(t, before, u, "it is only read")
		})
	}
}

// byFields is the answer for a kind without maps of parts by key.
func byFields(fieldpath.Path, any) bool { return true }

func TestTheOrderOfItemsIsPartOfWhatIsApplied(t *testing.T) {
	u, live := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(appliedObject)))
	for change, want := range map[[2]string]bool{
		{}:                                      true,
		{`"f/a", "f/b"`, `"f/a", "f/c", "f/b"`}: true, // others' are in between
		{`"f/a", "f/b"`, `"f/b", "f/a"`}:        false,
		{`"f/a", "f/b"`, `"f/a"`}:               false,
		{`{"port": 80}, {"port": 53, "protocol": "UDP", "name": "dns"}`, `{"port": 53, "protocol": "UDP", "name": "dns"}, {"port": 80, "protocol": "TCP"}`}: false,
		{`[1, 2]`, `[2, 1]`}:     true, // an atomic list is one value
		{`"ports"`, `"another"`}: false,
	} {
		require.NoError(t, live.UnmarshalJSON([]byte(strings.Replace(appliedObject, change[0], change[1], 1))))
		o := &Check{Whole: byFields, Live: func() map[string]any { return live.Object }}
		assert.Equal(t, want, o.OwnsJust([]byte(appliedFields), u), change)
	}
}

// TestWhatTheManagedFieldsSayOfAFieldThatIsLostIsNotGoneBy: a write drops a field while the
// schema lacks it, but the managed fields still record its owner.
func TestWhatTheManagedFieldsSayOfAFieldThatIsLostIsNotGoneBy(t *testing.T) {
	u, live := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(appliedObject)))
	for what, test := range map[string]struct {
		change       [2]string
		given, shown bool // whether it is as applied, for GivenContent and for ShownContent
	}{
		"all there":                    {given: true, shown: true},
		"a number lost":                {[2]string{`"number": 1, `, ``}, false, false},
		"another number":               {[2]string{`"number": 1`, `"number": 2`}, false, false},
		"the same number":              {[2]string{`"number": 1`, `"number": 1.0`}, true, true},
		"an empty part lost":           {[2]string{`"empty": {}, `, ``}, true, true},
		"a whole part lost":            {[2]string{`"atomic": {"p": {"q": 1}}, `, ``}, false, false},
		"what is in a whole part lost": {[2]string{`{"q": 1}`, `{}`}, false, false},
		"a default in a whole part":    {[2]string{`{"q": 1}`, `{"q": 1, "r": 2}`}, true, true},
		"a list that is shorter":       {[2]string{`[1, 2]`, `[1]`}, false, false},
		"a list lost":                  {[2]string{`"list": [1, 2],`, ``}, false, false},
		"a list that is none":          {[2]string{`[1, 2]`, `1`}, false, false},
		"a field of an item lost":      {[2]string{`, "value": "v"`, ``}, false, false},
		"a default in an item":         {[2]string{`{"port": 80}`, `{"port": 80, "protocol": "TCP"}`}, true, true},
		"a part that is no object":     {[2]string{`{"p": {"q": 1}}`, `1`}, false, false},
	} {
		require.NoError(t, live.UnmarshalJSON([]byte(strings.Replace(appliedObject, test.change[0], test.change[1], 1))))
		if test.change[0] != "" {
			require.Contains(t, appliedObject, test.change[0])
		}
		for detail, want := range map[Detail]bool{NoContent: true, ShownContent: test.shown, GivenContent: test.given} {
			o := &Check{Whole: byFields, Detail: detail, Live: func() map[string]any { return live.Object }}
			assert.Equal(t, want, o.OwnsJust([]byte(appliedFields), u), "%s, %d", what, detail)
		}
	}
	for part, empty := range map[any]bool{nil: true, false: true, "": true, int64(0): true, 0.0: true, true: false, "a": false, int64(1): false, 0.5: false} {
		assert.Equal(t, empty, zero(part), "%v", part)
	}
	assert.True(t, zero([]any{}))
	assert.True(t, zero(map[string]any{"a": map[string]any{}}))
	assert.False(t, zero([]any{""}))
	assert.False(t, zero(map[string]any{"a": ""}))
	assert.True(t, contains(map[string]any{}, map[string]any{"a": nil}), "which may be kept or not")
	set := &Set{BuiltIn: func(kind schema.GroupVersionKind) bool { return kind.Group == "" }}
	for now, want := range map[Object]Detail{
		nil: NoContent, &metav1.PartialObjectMetadata{}: NoContent, &corev1.Pod{}: ShownContent, &unstructured.Unstructured{}: GivenContent,
	} {
		assert.Equal(t, want, set.DetailOf(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, now))
	}
	assert.Equal(t, ShownContent, set.DetailOf(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, &unstructured.Unstructured{}), "quantities, say")
}

func TestSeveralFieldsThatAreNotAppliedAreFoundWithoutAPanic(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	check := &Check{Whole: func(fieldpath.Path, any) bool { return true }, Live: func() map[string]any { return u.Object }}
	assert.False(t, check.OwnsJust([]byte(`{"f:a":{"f:x":{}},"f:b":{"f:x":{}},"f:c":{},"f:d":{},"f:metadata":{}}`), u))
}
