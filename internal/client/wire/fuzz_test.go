package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/kates-go/kates/internal/client/wire/frames"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// asText returns an object in JSON.
func asText(t *testing.T, o any) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

var strangePods = []string{
	`{"metadata":{"name":"a","managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]},"spec":{"terminationGracePeriodSeconds":4294967376}}`,
	`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null,"deletionTimestamp":"2024-01-01T00:00:00Z"},"spec":{"containers":[{"ports":[{"containerPort":80}]}]}}`,
	`{"kind":"Service","metadata":{"name":"a"}}`, `{"kind":"Pod","metadata":{"name":"a"}}`, `{"metadata":{"name":"a","name":"b"},"metadata":{"namespace":"n"}}`,
	`{"metadata":{"name":"a"},"spec":7}`, `{"metadata":{"n\u0061me":"a"},"spec":{"containers":[{"resources":{"limits":{"cpu":1e3,"memory":"1Gi"}}}]}}`,
	"{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"manager\"\xb9\"m\"}]}}",
	"{\"metadata\":{\"name\":\"\xff\",\"labels\":{\"a\":null,\"b\":\"\xff\"}}}", `{"metadata":{"name":"a"},"status":{"startTime":"2024-01-01T00:00:00.5Z"}}`,
}

func FuzzAPodIsTheSameFromJSONAndProtobufAndUntyped(f *testing.F) {
	for _, seed := range strangePods {
		f.Add([]byte(seed))
	}
	f.Add(encoded(f, realistic.Pod(1), frames.JSON))
	d := podDecoder()
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want corev1.Pod
		wantErr := utiljson.Unmarshal(raw, &want)
		left := frames.DropManagedFields(bytes.Clone(raw), frames.JSON) // what is dropped is not checked
		twice, _ := kjson.UnmarshalStrict(left, &corev1.Pod{}, kjson.DisallowDuplicateFields)
		got, err := d.decode(bytes.Clone(raw), frames.JSON)
		switch {
		case wantErr != nil:
			if p, ok := got.(*corev1.Pod); ok && json.Valid(raw) && !bytes.Contains(raw, []byte("managedFields")) {
				t.Fatalf("%q is a pod: %v, though %v", raw, p, wantErr)
			}
			return
		case len(twice) > 0, !utf8.Valid(left):
			if !errors.Is(err, errDamaged) {
				t.Fatalf("%q is damaged: %v", raw, err)
			}
			return
		case want.Name == "", want.TypeMeta != metav1.TypeMeta{} && want.TypeMeta != metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}:
			if err == nil {
				t.Fatalf("%q is a pod", raw)
			}
			return
		}
		d.finish(&want)
		proto, protoErr := want.Marshal()
		if err != nil || protoErr != nil {
			t.Fatalf("%q: %v, %v", raw, err, protoErr)
		}
		text := asText(t, &want)
		if other := asText(t, got); other != text {
			t.Fatalf("%q from JSON: %s, want %s", raw, other, text)
		}
		if got, err = d.decode(proto, frames.Protobuf); err != nil || asText(t, got) != text {
			t.Fatalf("%q from protobuf: %v, want %s: %v", raw, got, text, err)
		}
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if got, err = d.Typed(u); err != nil || asText(t, got) != text {
			t.Fatalf("%q from an untyped object: %v, want %s: %v", raw, got, text, err)
		}
	})
}

func FuzzWhatIsDecodedHasANameOrIsAnError(f *testing.F) {
	for _, seed := range strangePods {
		f.Add([]byte(seed))
	}
	f.Add(encoded(f, realistic.Pod(1), frames.Protobuf))
	d := podDecoder()
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, e := range []frames.Encoding{frames.JSON, frames.Protobuf} {
			id := frames.IdentityOf(raw, e)
			o, err := d.decode(bytes.Clone(raw), e)
			if (o == nil) == (err == nil) {
				t.Fatalf("%q: %v, %v", raw, o, err)
			}
			if err != nil {
				continue
			}
			same := func(part, read string) bool { // protobuf decodes though a part is there twice
				return part == read || read == "" && e == frames.Protobuf && objects.Fault(o) == nil
			}
			if o.GetName() == "" || !same(o.GetName(), id.Name) || !same(o.GetNamespace(), id.Namespace) {
				t.Fatalf("%q: it is named %q, and its bytes say %v", raw, o.GetName(), id)
			}
			if _, typed := o.(*corev1.Pod); typed == (objects.Fault(o) != nil) {
				t.Fatalf("%q: %T with the fault %v", raw, o, objects.Fault(o))
			}
			// What is dropped is not checked.
			left := frames.DropManagedFields(bytes.Clone(raw), e)
			if _, err := position(left, e); err != nil && objects.Fault(o) == nil {
				t.Fatalf("%q is a pod and no bookmark: %v", raw, err)
			}
		}
	})
}
