package tables

import (
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/object"
)

// Projects reports whether the elements of a field may be decoded from the wire, so that nothing
// else of an object is held: they are, or point to, structs without rules of their own. Other
// elements need the whole object: API types, which are decoded by other rules, and types that
// decode themselves.
func Projects(base reflect.Type) bool {
	if base == nil || base.Kind() != reflect.Struct || reflect.PointerTo(base).Implements(unmarshalerType) {
		return false
	}
	decoding, err := decodingOf(base)
	return err == nil && decoding == asJSON
}

// projected is convert for an object of which some fields are held. They are those of one Go type.
func (f *Form) projected(p *object.Projected) (Value, error) {
	value := reflect.ValueOf(p.Value())
	if value.Type() != reflect.PointerTo(f.base) {
		return nil, fmt.Errorf("the watch holds only the fields of %v", value.Type().Elem())
	}
	return f.element(value), nil
}
