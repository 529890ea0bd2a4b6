package applied

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	objects "github.com/kates-go/kates/internal/object"
)

// oddFields are managedFields as no server writes them.
var oddFields = []string{
	``, `null`, `[]`, `{`, `{"f:a":null}`, `{"v:null":{}}`, `{"v:[1]":{}}`, `{"v:{}":{},"f:":{}}`, `{"k:null":{}}`, `{"k:{}":{".":{}}}`,
	`{"k:[]":{}}`, `{"k:{\"a\":null}":{}}`, `{"k:{\"a\":{\"b\":1}}":{}}`, `{"i:-1":{},"i:99999999999999999999":{}}`, `{"x:y":{}}`, `{".":{}}`,
	`{"f:metadata":{"f:labels":7}}`, `{"f:a":{"f:a":{"f:a":{}}},"f:a":{}}`, `{"v:1e999":{}}`, "{\"f:\xff\":{}}",
}

// ownedBy returns whether fields are just those of an object in JSON; false if that is none.
func ownedBy(fields, object string, whole bool) bool {
	u := &unstructured.Unstructured{}
	if utiljson.Unmarshal([]byte(object), &u.Object) != nil || u.Object == nil {
		return false
	}
	for _, detail := range []Detail{NoContent, ShownContent, GivenContent} {
		check := &Check{
			Whole:  func(fieldpath.Path, any) bool { return whole },
			Live:   func() map[string]any { return u.Object },
			Detail: detail,
		}
		if !check.OwnsJust([]byte(fields), u) {
			return false
		}
	}
	return true
}

func FuzzManagedFieldsOwnWhatAServerSaysTheyDo(f *testing.F) {
	f.Add(appliedFields, appliedObject, true)
	for _, odd := range oddFields {
		f.Add(odd, appliedObject, true)
		f.Add(`{"f:metadata":{"f:labels":{"f:a":{}},"f:finalizers":`+odd+`}}`, `{"metadata":{"labels":{"a":"b"},"finalizers":["a",null,{"a":[]}]}}`, false)
		f.Add(`{"f:spec":{"f:list":`+odd+`},"f:metadata":{}}`, `{"metadata":{},"spec":{"list":[{"a":null},{"a":[]},null,1.5]}}`, false)
	}
	f.Fuzz(func(t *testing.T, fields, object string, whole bool) {
		owned := ownedBy(fields, object, whole)
		u := map[string]any{}
		if utiljson.Unmarshal([]byte(object), &u) != nil || u == nil || !strings.HasPrefix(object, "{") {
			return
		}
		// Without schema, a server says that an object owns its fields, and its lists as a whole.
		metadata, ok := u["metadata"].(map[string]any)
		if !ok {
			return
		}
		delete(u, "apiVersion")
		delete(u, "kind")
		for _, name := range []string{"name", "namespace", "uid"} {
			delete(metadata, name)
		}
		said, err := typed.DeducedParseableType.FromUnstructured(u)
		if err != nil {
			return
		}
		set, err := said.ToFieldSet()
		if err != nil {
			return
		}
		raw, err := set.ToJSON()
		if err != nil {
			return
		}
		if !ownedBy(string(raw), object, true) && ownable(u) {
			t.Fatalf("%s does not own %s", raw, object)
		}
		var got fieldpath.Set
		if owned && got.FromJSON(strings.NewReader(fields)) != nil {
			t.Fatalf("%s owns %s, and cannot be read", fields, object)
		}
	})
}

// ownable reports whether an object has nothing that the check takes for unknown: a name of a
// field that managedFields write otherwise, or a null.
func ownable(part any) bool {
	switch part := part.(type) {
	case map[string]any:
		for name, part := range part {
			if strings.ContainsRune(name, '\ufffd') || !ownable(part) {
				return false
			}
		}
		return true
	case []any:
		for _, part := range part {
			if !ownable(part) {
				return false
			}
		}
		return true
	case nil:
		return false
	}
	return true
}

func FuzzMarksOfAnObjectAreReadWhateverItIs(f *testing.F) {
	for _, object := range []string{
		`{}`, `{"metadata":null}`, `{"metadata":7}`, `{"metadata":{"labels":{"a":7},"annotations":[],"ownerReferences":[null,7,{"uid":7}]}}`,
		`{"metadata":{"managedFields":[null,{"manager":7},{"manager":"m","operation":"Apply","fieldsV1":null}]}}`,
		`{"metadata":{"managedFields":[{"manager":"m","operation":"Apply","fieldsV1":{"f:a":{}},"time":"never"}]}}`,
		`{"metadata":{"name":"x","uid":"u","creationTimestamp":7,"deletionTimestamp":"never","generation":"x","labels":{"kates.io/owner-uid":"u"}},"status":{}}`,
	} {
		f.Add(object)
	}
	f.Fuzz(func(_ *testing.T, object string) {
		u := &unstructured.Unstructured{}
		if utiljson.Unmarshal([]byte(object), &u.Object) != nil || u.Object == nil {
			return
		}
		owner := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Root"}}
		owner.Name, owner.Namespace, owner.UID = "root", "ns", "u"
		for _, remote := range []bool{false, true} {
			s := &Set{Owner: owner, Label: "example.com/set", Annotation: "example.com/applied", Remote: remote, Scheme: runtime.NewScheme(),
				BuiltIn: func(schema.GroupVersionKind) bool { return remote }, Annotate: true}
			_ = s.Name("set", "")
			_ = FieldsOf("m", u.GetManagedFields())
			_ = recall("m", s.Annotation, u)
			_, _, _ = RemoteOwner(u)
			_, _, _ = s.MayApply(u), s.Ours(u), s.HasOtherOwners(u)
			w := &Wanted{Given: u, Key: objects.Key{Namespace: "ns", Name: "x"}}
			if s.Refer(w) == nil && s.Summarize(w) == nil {
				_ = s.Make(w)
			}
			s.Release(u.DeepCopy())
		}
	})
}
