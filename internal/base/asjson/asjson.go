// Package asjson decodes the content of untyped objects into Go types, by the rules of JSON and
// without JSON text in between where that gives the same. Begin at [Decode].
package asjson

import (
	"encoding/json"
	"math"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/internal/base/guard"
)

// Decode decodes content into what p points to, which is zeroed before. The result, and the error,
// are those of decoding its JSON, except that fields of type any may share memory with content. It
// calls methods of p's type: what they panic with goes to the caller.
//
// apimachinery's converter needs a third of the time. It cuts numbers to the bits of their fields
// (a port 4294967376 becomes 80), and reads fields that JSON leaves out. It panics at fields that
// are not exported, and its errors do not name the field. In these cases JSON decides.
func Decode(content map[string]any, p any) error {
	v := reflect.ValueOf(p).Elem()
	if boundsOf(v.Type()).hold(content) && convert(content, p) {
		return nil
	}
	v.SetZero() // the converter does that, too
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(data, p)
}

// convert reports whether the converter could decode the content. What panics here does so again
// in the JSON decoder, unless it was the converter itself.
func convert(content map[string]any, p any) bool {
	return guard.Library(func() error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(content, p)
	}) == nil
}

// bounds are the numbers that fit into each field of a Go type that is a number.
type bounds struct {
	least, most int64
	bytes       bool // it has bytes, which are text, or a list of numbers
	rough       bool // it has a float32
}

// hold reports whether the converter decodes a value as JSON does.
func (b bounds) hold(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		if _, hidden := v["-"]; hidden { // to the converter, a field with the tag `json:"-"`
			return false
		}
		for _, member := range v {
			if !b.hold(member) {
				return false
			}
		}
	case []any:
		for _, element := range v {
			if n, ok := element.(int64); ok && b.bytes && (n < 0 || n > math.MaxUint8) || !b.hold(element) {
				return false
			}
		}
	case int64:
		return b.least <= v && v <= b.most
	case float64:
		if v != math.Trunc(v) {
			return !b.rough // no integer takes it
		}
		return math.Abs(v) < 1<<53 && b.least <= int64(v) && int64(v) <= b.most
	case nil, string, bool:
	default:
		return false // a value of a program, like an int
	}
	return true
}

var known sync.Map // from a reflect.Type to its bounds

func boundsOf(t reflect.Type) bounds {
	if b, ok := known.Load(t); ok {
		return b.(bounds)
	}
	b := bounds{least: math.MinInt64, most: math.MaxInt64}
	b.narrow(t, map[reflect.Type]bool{})
	known.Store(t, b)
	return b
}

// narrow narrows the bounds to what fits into all numbers of a type.
func (b *bounds) narrow(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := int64(1)<<(t.Bits()-1) - 1
		b.least, b.most = max(b.least, -most-1), min(b.most, most)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		b.least = max(b.least, 0)
		if t.Bits() < 64 {
			b.most = min(b.most, int64(1)<<t.Bits()-1)
		}
	case reflect.Float32:
		b.rough = true
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			b.bytes = true
			break
		}
		b.narrow(t.Elem(), seen)
	case reflect.Array, reflect.Map, reflect.Pointer:
		b.narrow(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			b.narrow(t.Field(i).Type, seen)
		}
	}
}
