package tree

import (
	"reflect"
	"testing"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

// plain decodes as it is done without a table. It reports whether a server could have sent it.
func plain(raw []byte) (map[string]any, bool) {
	var m map[string]any
	if !utf8.Valid(raw) {
		return nil, false
	}
	twice, err := kjson.UnmarshalStrict(raw, &m, kjson.DisallowDuplicateFields)
	return m, err == nil && len(twice) == 0
}

// FuzzADecodedObjectIsTheSame decodes each text with a table that knows parts of the texts before.
func FuzzADecodedObjectIsTheSame(f *testing.F) {
	for _, raw := range []string{
		`{}`, ` { } `, `{"a":[{},[],"",1,-0,1.0,-0.0,1e5,9223372036854775808,4294967296,true,false,null]}`,
		`{"a":"\u00e9\ud83d\ude00\ud800\"\\\/\b\f\n\r\t"}`, `{"k:{\"a\":\"b\"}":{},"k:{\"a\":\"c\"}":{}}`,
		`{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`, `{"a":"1","b":"1","c":{"a":"1","b":"1"}}`, `{"a":1,"\u0061":1}`,
		`[]`, `null`, `{"a":01}`, `{"a":1e999}`, `{"a":-}`, `{"a":1.}`, `{"a":+1}`, `{"a":"` + "\x01" + `"}`, `{"a" : [ 1 , 2 ] }`,
		`{"a":tru}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":[1,]}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{`, `{"a":[[[[[]]]]]}x`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(raw))
	}
	var table Table
	f.Fuzz(func(t *testing.T, raw []byte) {
		want, valid := plain(raw)
		for _, share := range []bool{false, true, true, true, false} {
			got, ok := table.Decode(raw, share)
			switch {
			case ok && (!valid || !reflect.DeepEqual(want, got)):
				t.Fatalf("%q: %v, want %v (%v)", raw, got, want, valid)
			case !ok && valid && want != nil && levels(want) <= deepest:
				t.Fatalf("%q is left to plain decoding", raw)
			}
		}
	})
}

// levels is how deeply a value is nested.
func levels(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			n = max(n, levels(x))
		}
		return n + 1
	case []any:
		for _, x := range v {
			n = max(n, levels(x))
		}
		return n + 1
	}
	return 0
}
