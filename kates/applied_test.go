package kates

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/accumulator"
)

// What is applied, and the fields that a server makes of it.
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
		object, fields [2]string // what is replaced by what
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
			u := &Unstructured{}
			require.NoError(t, u.UnmarshalJSON([]byte(changed(appliedObject, test.object))))
			before := u.DeepCopy()
			assert.Equal(t, test.want, (&owning{whole: byFields, live: func() map[string]any { return before.Object }}).ownsJust([]byte(changed(appliedFields, test.fields)), u))
			assert.Equal(t, before, u, "it is only read")
		})
	}
}

// byFields is of a kind without maps by keys.
func byFields(fieldpath.Path, any) bool { return true }

// What is left of a part by a key when others have changed all of its own parts, is the same as a part that is owned whole.
func TestAPartOfWhichOthersHaveChangedEverythingIsNotOwned(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	known, err := shapesIn(gv, []byte(`{"components": {"schemas": {
		"other": {"x-kubernetes-map-type": "atomic", "properties": {"a": {}}},
		"thing": {"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}], "properties": {
			"metadata": {"properties": {"labels": {"additionalProperties": {"type": "string"}}}}, "whole": {"x-kubernetes-map-type": "atomic", "additionalProperties": true}, "reference": {"allOf": [{"$ref": "#/components/schemas/other"}]},
			"objects": {"additionalProperties": {"properties": {"a": {"type": "string"}}}},
			"wholes": {"additionalProperties": {"$ref": "#/components/schemas/other"}},
			"sets": {"additionalProperties": {"type": "array", "x-kubernetes-list-type": "set"}},
			"lists": {"additionalProperties": {"type": "array"}}, "free": {"x-kubernetes-preserve-unknown-fields": true},
			"parts": {"items": {"properties": {"objects": {"additionalProperties": {"type": "object"}}}}},
			"itself": {"$ref": "#/components/schemas/itself"}
		}},
		"itself": {"allOf": [{"$ref": "#/components/schemas/itself"}]}
	}}}`))
	require.NoError(t, err)
	whole := func(path fieldpath.Path, part any) bool {
		s := known.at("Thing", path)
		return s != nil && s.whole(part)
	}
	for _, test := range []struct {
		object, fields string
		want           bool
	}{
		{`"whole": {"a": 1}`, `"f:whole": {}`, true},
		{`"reference": {"a": 1}`, `"f:reference": {}`, true},
		{`"objects": {"o": {"a": "v"}}`, `"f:objects": {"f:o": {".": {}, "f:a": {}}}`, true},
		{`"objects": {"o": {"a": "v"}}`, `"f:objects": {"f:o": {}}`, false},
		{`"objects": {"o": {}}`, `"f:objects": {"f:o": {}}`, true},
		{`"wholes": {"o": {"a": "v"}}`, `"f:wholes": {"f:o": {}}`, true},
		{`"sets": {"o": ["a"]}`, `"f:sets": {"f:o": {}}`, false},
		{`"sets": {"o": []}`, `"f:sets": {"f:o": {}}`, true},
		{`"lists": {"o": ["a"]}`, `"f:lists": {"f:o": {}}`, true},
		{`"free": {"o": ["a"], "p": {"q": [1], "r": 1}}`, `"f:free": {"f:o": {}, "f:p": {".": {}, "f:q": {}, "f:r": {}}}`, true},
		{`"free": {"o": {"a": 1}}`, `"f:free": {"f:o": {}}`, false},
		{`"parts": [{"name": "x", "objects": {"o": {"a": 1}}}]`, `"f:parts": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:objects": {"f:o": {}}}}`, false},
		{`"parts": [{"name": "x", "a": 1}]`, `"f:parts": {"k:{\"name\":\"x\"}": {}}`, true},
		{`"parts": [{"a": 1}]`, `"f:parts": {"k:{\"name\":\"default\"}": {}}`, false},
		{`"undeclared": {"a": 1}`, `"f:undeclared": {}`, false},
		{`"itself": {"a": 1}`, `"f:itself": {}`, false},
	} {
		u := &Unstructured{}
		require.NoError(t, u.UnmarshalJSON([]byte(`{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"labels": {"a": "b"}}, `+test.object+`}`)))
		fields := `{"f:metadata": {"f:labels": {"f:a": {}}}, ` + test.fields + `}`
		assert.Equal(t, test.want, (&owning{whole: whole}).ownsJust([]byte(fields), u), "%s: %s", test.object, test.fields)
	}
	for kind, want := range map[schema.GroupVersionKind]bool{
		{Version: "v1", Kind: "ConfigMap"}: true, {Group: "apps", Version: "v1", Kind: "Deployment"}: true,
		{Group: "apps", Version: "v1", Kind: "ControllerRevision"}: false, gv.WithKind("Thing"): false,
	} {
		assert.Equal(t, want, ownedByFields(kind), kind)
	}
}

func TestTheOrderOfItemsIsPartOfWhatIsApplied(t *testing.T) {
	u, live := &Unstructured{}, &Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(appliedObject)))
	for change, want := range map[[2]string]bool{
		{}:                                      true,
		{`"f/a", "f/b"`, `"f/a", "f/c", "f/b"`}: true, // others' are in between
		{`"f/a", "f/b"`, `"f/b", "f/a"`}:        false,
		{`"f/a", "f/b"`, `"f/a"`}:               false,
		{`{"port": 80}, {"port": 53, "protocol": "UDP", "name": "dns"}`, `{"port": 53, "protocol": "UDP", "name": "dns"}, {"port": 80, "protocol": "TCP"}`}: false,
		{`[1, 2]`, `[2, 1]`}:     true, // which is a value of its own, and another's if he changes it
		{`"ports"`, `"another"`}: false,
	} {
		require.NoError(t, live.UnmarshalJSON([]byte(strings.Replace(appliedObject, change[0], change[1], 1))))
		o := &owning{whole: byFields, live: func() map[string]any { return live.Object }}
		assert.Equal(t, want, o.ownsJust([]byte(appliedFields), u), change)
	}
}

// Who owns a field owns it still when it is lost by a write that was made while the schema did not have it.
func TestWhatTheManagedFieldsSayOfAFieldThatIsLostIsNotGoneBy(t *testing.T) {
	u, live := &Unstructured{}, &Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(appliedObject)))
	for what, test := range map[string]struct {
		change       [2]string
		given, shown bool // whether it is known to be as it is applied, from what tells values apart, and from what does not
	}{
		"all there":                    {given: true, shown: true},
		"a number lost":                {[2]string{`"number": 1, `, ``}, false, false},
		"another number, by default":   {[2]string{`"number": 1`, `"number": 2`}, false, true},
		"the same number":              {[2]string{`"number": 1`, `"number": 1.0`}, true, true},
		"an empty part lost":           {[2]string{`"empty": {}, `, ``}, true, true},
		"a whole part lost":            {[2]string{`"atomic": {"p": {"q": 1}}, `, ``}, false, false},
		"what is in a whole part lost": {[2]string{`{"q": 1}`, `{}`}, false, true},
		"a default in a whole part":    {[2]string{`{"q": 1}`, `{"q": 1, "r": 2}`}, true, true},
		"a list that is shorter":       {[2]string{`[1, 2]`, `[1]`}, false, true},
		"a list lost":                  {[2]string{`"list": [1, 2],`, ``}, false, false},
		"a list that is none":          {[2]string{`[1, 2]`, `1`}, false, true},
		"a field of an item lost":      {[2]string{`, "value": "v"`, ``}, false, false},
		"a default in an item":         {[2]string{`{"port": 80}`, `{"port": 80, "protocol": "TCP"}`}, true, true},
		"a part that is no object":     {[2]string{`{"p": {"q": 1}}`, `1`}, false, true},
	} {
		require.NoError(t, live.UnmarshalJSON([]byte(strings.Replace(appliedObject, test.change[0], test.change[1], 1))))
		if test.change[0] != "" {
			require.Contains(t, appliedObject, test.change[0])
		}
		for detail, want := range map[detail]bool{noContent: true, shownContent: test.shown, givenContent: test.given} {
			o := &owning{whole: byFields, detail: detail, live: func() map[string]any { return live.Object }}
			assert.Equal(t, want, o.ownsJust([]byte(appliedFields), u), "%s, %d", what, detail)
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
	for now, want := range map[accumulator.Object]detail{
		nil: noContent, &metav1.PartialObjectMetadata{}: noContent, &Pod{}: shownContent, &Unstructured{}: givenContent,
	} {
		assert.Equal(t, want, detailOf(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, now))
	}
	assert.Equal(t, shownContent, detailOf(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, &Unstructured{}), "quantities, say")
}

func TestADigestTellsEverythingThatIsAppliedApart(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]any{
		{}, {"a"}, {"a", "b"}, {"ab"}, {"a\nb"}, {[]string{"a", "b"}}, {map[string]any{"a": 1}}, {map[string]any{"a": "1"}}, {nil}, {nil, nil},
	} {
		sum, err := digest(parts...)
		require.NoError(t, err)
		assert.Len(t, sum, 22)
		assert.False(t, seen[sum], "%v", parts)
		seen[sum] = true
	}
	_, err := digest(func() {})
	assert.Error(t, err)
}

// markOf is an object of which something is remembered.
func markOf(name string) *wanted {
	return &wanted{resource: accumulator.Resource{Storage: "configmaps"}, key: accumulator.Key{Name: name}, sum: "sum"}
}

func objectAt(uid types.UID, version string) Object {
	u := NewUnstructured("ConfigMap", "v1")
	u.SetUID(uid)
	u.SetResourceVersion(version)
	return u
}

func TestAnApplyIsKnownToChangeNothingAtTheVersionThatItWasAnsweredWith(t *testing.T) {
	streams := accumulator.NewStreams(accumulator.Config{})
	defer streams.Close()
	var marks applyMarks
	w := markOf("x")
	assert.False(t, marks.at(w, "m", objectAt("u", "5")))
	marks.put(streams, w, "m", "u", "5")
	assert.True(t, marks.at(w, "m", objectAt("u", "5")))
	assert.False(t, marks.at(w, "m", objectAt("u", "6")), "another version")
	assert.False(t, marks.at(w, "m", objectAt("v", "5")), "another object")
	assert.False(t, marks.at(w, "n", objectAt("u", "5")), "another manager")
	assert.False(t, marks.at(markOf("y"), "m", objectAt("u", "5")), "another name")
	other := markOf("x")
	other.sum = "other"
	assert.False(t, marks.at(other, "m", objectAt("u", "5")), "something else is applied")
	marks.forget(w.stored())
	assert.False(t, marks.at(w, "m", objectAt("u", "5")))
}

func TestWhatIsRememberedOfAppliesIsBoundedByTheObjectsThatAreShown(t *testing.T) {
	streams := accumulator.NewStreams(accumulator.Config{})
	defer streams.Close()
	var marks applyMarks
	for i := range 10_000 { // none of which any watch shows
		marks.put(streams, markOf(fmt.Sprint("x", i)), "m", "u", "5")
	}
	assert.LessOrEqual(t, marks.count("configmaps"), 1024)
	assert.NotZero(t, marks.count("configmaps"))
	assert.Zero(t, marks.count("secrets"))
	marks.put(streams, markOf("fake"), "m", "u", "")
	assert.NotContains(t, marks.marks, markOf("fake").stored(), "without a version nothing can be known")
}

func listed(r *recollection, worth int, err error, names ...string) {
	r.objects = map[accumulator.Key]recalled{}
	for _, name := range names {
		r.objects[accumulator.Key{Name: name}] = recalled{uid: types.UID(name), version: "5"}
	}
	r.at, r.worth, r.err = time.Now(), worth, err
	close(r.done)
}

func TestAListOfWhatWasAppliedIsMadeWhereItIsWorthIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c recollections
		of := recollectable{storage: "configmaps"}
		for range 2 { // of 32 objects it is known already
			_, mine := c.find(of, func() int { return 32 })
			require.False(t, mine)
		}
		r, mine := c.find(of, func() int { return 32 })
		require.True(t, mine, "the third that is not known")
		same, mine := c.find(of, nil)
		assert.Same(t, r, same)
		assert.False(t, mine, "one lists, the others wait")
		listed(r, 2, nil, "a", "b", "c", "d")

		for _, key := range []string{"a", "b", "c"} {
			r, mine = c.find(of, nil)
			require.False(t, mine)
			o, ok := c.take(r, accumulator.Key{Name: key}, objectAt(types.UID(key), "4"))
			require.True(t, ok)
			assert.Equal(t, "5", o.version, "it may be newer than what the watch has shown")
		}
		_, ok := c.take(r, accumulator.Key{Name: "a"}, objectAt("a", "5"))
		assert.False(t, ok, "who has asked once remembers it")
		_, ok = c.take(r, accumulator.Key{Name: "d"}, objectAt("d", "6"))
		assert.False(t, ok, "it is older")
		for range 2 {
			_, mine = c.find(of, nil)
			require.False(t, mine)
		}
		r, mine = c.find(of, nil)
		require.True(t, mine, "too many were not in it")

		listed(r, 0, errors.New("broken"))
		_, mine = c.find(of, nil)
		require.False(t, mine, "not at once")
		time.Sleep(recollectionAge)
		r, mine = c.find(of, nil)
		require.True(t, mine)
		listed(r, 0, nil, "a")
		c.drop(r)
		_, ok = c.take(r, accumulator.Key{Name: "a"}, objectAt("a", "5"))
		assert.False(t, ok, "nobody has asked for it for long")
	})
}

func TestG11WhatWasListedOfAppliesIsLetGoWithItsTimerWhenTheClientCloses(t *testing.T) {
	found := map[accumulator.Key]recalled{{Name: "a"}: {uid: "a", version: "5"}}
	recollects := func(c *recollections) *recollection {
		r, _ := c.find(recollectable{}, func() int { return 0 })
		c.keep(recollectable{}, r, found, nil, true)
		close(r.done)
		return r
	}
	var c recollections
	first := recollects(&c)
	for range first.worth {
		c.find(recollectable{}, nil)
	}
	second := recollects(&c)
	require.NotSame(t, first, second)
	assert.False(t, first.timer.Stop(), "the new one has them")
	assert.Nil(t, first.objects)
	assert.NotNil(t, second.objects)
	c.close()
	assert.False(t, second.timer.Stop())
	assert.Nil(t, second.objects)
	c = recollections{}
	c.close()
	late := recollects(&c)
	assert.Nil(t, late.timer)
	assert.Nil(t, late.objects)
}

func TestAnotherObjectOfTheNameIsNotRecalled(t *testing.T) {
	var c recollections
	r := &recollection{done: make(chan struct{})}
	listed(r, 0, nil, "a")
	_, ok := c.take(r, accumulator.Key{Name: "a"}, objectAt("another", "4"))
	assert.False(t, ok)
}

func TestAnApplyThatMetADeletionIsNotRemembered(t *testing.T) {
	streams := accumulator.NewStreams(accumulator.Config{})
	defer streams.Close()
	w := markOf("x")
	for deleted, remembered := range map[bool]bool{false: true, true: false} {
		a := &ownedApply{client: &Client{core: &core{streams: streams}}, options: writeOptions{fieldManager: "m"}}
		got := objectAt("u", "5").(*Unstructured)
		if deleted {
			now := metav1.Now()
			got.SetDeletionTimestamp(&now)
		}
		a.took(w, nil, got)
		assert.Equal(t, remembered, a.client.core.applied.at(w, "m", got), "to apply it again is ErrDeleting")
	}
}
