package conditions

import (
	"encoding/json"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/base/jsonform"
)

var phases = map[Phase]bool{Current: true, InProgress: true, Failed: true, Terminating: true, Unknown: true}

func FuzzTheStatusOfAnyObjectIsOneOfFive(f *testing.F) {
	for kind := range rules {
		f.Add(kind.Group, kind.Kind, []byte(`{"metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":3,"replicas":2,"conditions":[{"type":"Ready","status":"True"}]}}`))
		f.Add(kind.Group, kind.Kind, []byte(`{"metadata":{"generation":1e300,"deletionTimestamp":"never","finalizers":[7]},"spec":{"replicas":4294967298},"status":{"conditions":[null,7,{"type":7}]}}`))
		f.Add(kind.Group, kind.Kind, []byte(`{"metadata":7,"spec":[],"status":{"conditions":{},"phase":7,"containerStatuses":[{"state":{"waiting":7}}],"loadBalancer":{"ingress":[null]}}}`))
	}
	f.Fuzz(func(t *testing.T, group, kind string, data []byte) {
		u := &unstructured.Unstructured{}
		if utiljson.Unmarshal(data, &u.Object) != nil || u.Object == nil {
			return
		}
		u.Object["kind"], u.Object["apiVersion"] = kind, "v1"
		if group != "" {
			u.Object["apiVersion"] = group + "/v1"
		}
		s := StatusOf(clientscheme.Scheme, u)
		if !phases[s.Phase] || s.Phase != Current && s.Message == "" {
			t.Fatalf("%s: %+v", data, s)
		}
		// A number may be of encoding/json, too.
		floats := &unstructured.Unstructured{}
		if text, err := json.Marshal(u.Object); err == nil && json.Unmarshal(text, &floats.Object) == nil {
			if other := StatusOf(clientscheme.Scheme, floats); other.Phase != s.Phase && s.Phase != Unknown && other.Phase != Unknown {
				t.Fatalf("%s: %+v, and with numbers of encoding/json %+v", data, s, other)
			}
		}
		// The Go type of the kind says the same, if the object decodes and nothing is lost.
		o, err := jsonform.Typed(clientscheme.Scheme, u)
		if _, untyped := o.(*unstructured.Unstructured); err != nil || o == nil || untyped {
			return
		}
		back, err := jsonform.ToUnstructured(clientscheme.Scheme, o)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if a, b := StatusOf(clientscheme.Scheme, back), StatusOf(clientscheme.Scheme, o); a != b {
			t.Fatalf("%s: %+v, and of the Go type %+v", data, a, b)
		}
	})
}

func FuzzAConditionThatIsSetIsFoundAndTheOthersStay(f *testing.F) {
	for _, object := range []string{
		`{}`, `{"status":null}`, `{"status":{"conditions":[{"type":"Ready","status":"False","observedGeneration":4294967299,"more":1}]}}`,
		`{"status":{"conditions":[null,{"type":7},{"type":"Ready","lastTransitionTime":"never"},{"type":"Other"}]},"metadata":{"generation":3}}`,
		`{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Ready"}]}}`,
	} {
		f.Add([]byte(object), "Ready", int64(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, conditionType string, generation int64) {
		var before, content map[string]any
		if utiljson.Unmarshal(data, &content) != nil || utiljson.Unmarshal(data, &before) != nil || content == nil {
			return
		}
		condition := Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: "Fuzzed", ObservedGeneration: generation}
		changed, err := Set(content, condition)
		if (err != nil || !changed) && !reflect.DeepEqual(before, content) {
			t.Fatalf("%s: it was modified, though %v", data, err)
		}
		if err != nil || !changed {
			return
		}
		found := Find(content, conditionType)
		if found == nil || found.Status != metav1.ConditionTrue || found.Reason != "Fuzzed" {
			t.Fatalf("%s: %+v", data, found)
		}
		was, _, _ := unstructured.NestedFieldNoCopy(before, "status", "conditions")
		is, _, _ := unstructured.NestedFieldNoCopy(content, "status", "conditions")
		old, _ := was.([]any)
		list := is.([]any)
		if len(list) < len(old) || len(list) > len(old)+1 {
			t.Fatalf("%s: %v", data, list)
		}
	})
}
