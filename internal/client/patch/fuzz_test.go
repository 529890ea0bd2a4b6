package patch

import (
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/jsonform"
)

var pairsOfObjects = [][2]string{
	{`{"a":{"b":1,"c":null},"d":[1,{"e":null}]}`, `{"a":{"b":2},"d":[1,{"e":null}],"f":{"g":null}}`},
	{`{"parts":[{"name":"a","hidden":1},{"name":"b"}]}`, `{"parts":[{"name":"b","text":"x"},{"name":"a"}]}`},
	{`{"a/b":{"~":1}}`, `{"a/b":{"~":2,"~1":3,"":4}}`}, {`{"a":[]}`, `{"a":{}}`}, {`{"a":{}}`, `{"a":[{}]}`},
	{`{"tags":["1k","b"],"size":9223372036854775807}`, `{"tags":["b","a","a"],"size":-1}`},
	{`{"a":[[1,2],[3]],"b":[null]}`, `{"a":[[3],[1,2]],"b":[null,null]}`}, {`{"a":null}`, `{"a":{}}`},
}

// objectOf decodes an object; nil if it is none.
func objectOf(data []byte) obj {
	var o obj
	if jsonform.Decode(data, &o) != nil {
		return nil
	}
	return o
}

func FuzzTheDifferenceOfTwoObjectsMakesTheOtherOfTheOne(f *testing.F) {
	for _, pair := range pairsOfObjects {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		from, to := objectOf(a), objectOf(b)
		if from == nil || to == nil {
			return
		}
		want := withoutNulls(to) // a null is as good as absent
		if got := merged7396(from, Merge(from, to)); !reflect.DeepEqual(want, withoutNulls(got)) {
			t.Fatalf("%s and %s: %v", a, b, got)
		}
		if _, ok := jsonPatch(from, to); ok {
			bare := withoutNulls(from).(obj)
			operations, _ := jsonPatch(bare, want.(obj))
			got := sent(t, bare, &Patch{types.JSONPatchType, operations})
			if !reflect.DeepEqual(want, withoutNulls(got)) {
				t.Fatalf("%s and %s: %v: %v", a, b, operations, got)
			}
		}
		if !reflect.DeepEqual(from, objectOf(a)) || !reflect.DeepEqual(to, objectOf(b)) {
			t.Fatalf("%s and %s: they were modified", a, b)
		}
	})
}

func FuzzAChangeOfAViewLosesNothingThatItDoesNotShow(f *testing.F) {
	for _, pair := range pairsOfObjects {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		object, other := objectOf(a), objectOf(b)
		if object == nil || other == nil {
			return
		}
		view, ok1 := viewOf(object)
		after, ok2 := viewOf(other)
		if !ok1 || !ok2 {
			return
		}
		object = withoutNulls(object).(obj)
		read := withoutNulls(merged7396(object, Merge(object, CarryObject(object, view, after))))
		blind := Blind(view, view, after, Merge(view, CarryObject(view, view, after)))
		if blind.Unknown() || !told(object, view) {
			return
		}
		if got := withoutNulls(sent(t, object, blind)); !reflect.DeepEqual(read, got) {
			t.Fatalf("%s changed as %s: %v makes %v, want %v", a, b, blind, got, read)
		}
	})
}

// viewOf is what a Go type shows of an object.
func viewOf(o obj) (view obj, ok bool) {
	var s shown
	data, err := jsonform.Encode(o)
	if err != nil || jsonform.Decode(data, &s) != nil {
		return nil, false
	}
	if data, err = jsonform.Encode(s); err != nil {
		return nil, false
	}
	return objectOf(data), true
}

// told reports whether the view shows all that the object has, and no more: then what the view
// does not show are fields that its type lacks.
func told(object, view any) bool {
	switch v := view.(type) {
	case map[string]any:
		o, ok := object.(map[string]any)
		for key, member := range v {
			if there, has := o[key]; has && !told(there, member) || !has && proven(member) {
				return false
			}
		}
		return ok
	case []any:
		o, ok := object.([]any)
		if !ok || len(o) != len(v) {
			return false
		}
		for i := range v {
			if !told(o[i], v[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(object, view)
}

func FuzzWhatAPatchSetsIsInTheObjectThatItMakes(f *testing.F) {
	for _, patch := range []string{
		`{"a":{"b":1},"c":null}`, `[{"op":"add","path":"/a/b","value":1},{"op":"remove","path":"/a"}]`, `[null]`, `[{"op":"add","path":""}]`,
		`{"$patch":"replace","a":[{"$patch":"delete"},{"b":1}]}`, `[{"op":"add","path":"/~0~1","value":null},{"op":"move","path":"/a","from":"/b"}]`,
		"a: &x {b: 1}\nc: *x", "a: 1\na: 2", `[{"op":"replace","path":"/","value":{}}]`, `[{"op":"add","path":"/a/-1/b","value":[]}]`,
	} {
		f.Add([]byte(patch))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, pt := range []types.PatchType{types.StrategicMergePatchType, types.ApplyYAMLPatchType, types.JSONPatchType} {
			_ = Written(pt, data)
		}
		set := Written(types.MergePatchType, data)
		made, err := jsonpatch.MergePatch([]byte(`{}`), data)
		if set == nil || err != nil {
			return
		}
		if got := objectOf(made); !reflect.DeepEqual(withoutNulls(merged7396(nil, set)), withoutNulls(got)) {
			t.Fatalf("%q sets %v, and makes %v", data, set, got)
		}
	})
}

func FuzzAnUpdateIsMergedIntoAnyObject(f *testing.F) {
	for _, pair := range append(pairsOfObjects, [2]string{`{"metadata":7}`, `{"metadata":{"labels":{"a":7},"finalizers":["x"]},"spec":1,"status":2}`}) {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		target, source := &unstructured.Unstructured{Object: objectOf(a)}, &unstructured.Unstructured{Object: objectOf(b)}
		MergeUpdate(target, source)
		for section, value := range source.Object {
			switch section {
			case "apiVersion", "kind", "metadata", "status":
			default:
				if !reflect.DeepEqual(value, target.Object[section]) {
					t.Fatalf("%s of %s and %s: %v", section, a, b, target)
				}
			}
		}
		if !reflect.DeepEqual(source.Object, map[string]any(objectOf(b))) {
			t.Fatalf("%s was modified", b)
		}
		_ = Dropped(map[string]any(objectOf(a)), source.Object, target.Object)
		_ = Kept(target.Object, source.Object)
		if was, is := objectOf(a), objectOf(b); was != nil && is != nil {
			_ = KeepIdentity(was, is)
		}
	})
}
