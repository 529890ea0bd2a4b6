//go:build !kates_safe

package intern

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func FuzzAnObjectThatSharesMemoryIsTheSame(f *testing.F) {
	for _, pods := range [][2]string{
		{`{"metadata":{"name":"a","labels":{"a":"b"}}}`, `{"metadata":{"name":"a","labels":{"a":"b","c":""}},"spec":{"containers":[{"image":"x"}]}}`},
		{`{"spec":{"containers":[{"env":[{"name":"a"}]},{}]}}`, `{"spec":{"containers":[{"env":[{"name":"b"}]}],"nodeSelector":{"a":"b"}}}`},
		{`{"metadata":{"managedFields":[{"fieldsV1":{"a":1}}]}}`, `{"status":{"conditions":[{"type":"Ready"}]}}`},
	} {
		f.Add([]byte(pods[0]), []byte(pods[1]))
	}
	var table Table
	f.Fuzz(func(t *testing.T, a, b []byte) {
		read := func(data []byte) *corev1.Pod {
			p := &corev1.Pod{}
			if json.Unmarshal(data, p) != nil {
				return nil
			}
			return p
		}
		before, after := read(a), read(b)
		if before == nil || after == nil {
			return
		}
		for _, final := range []bool{false, true} {
			one, two := read(a), read(b)
			table.object(one, final)
			table.Object(two, one, final)
			if !reflect.DeepEqual(one, before) || !reflect.DeepEqual(two, after) {
				t.Fatalf("%s and %s: %v, %v", a, b, one, two)
			}
		}
	})
}
