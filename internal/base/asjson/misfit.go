package asjson

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Misfit is the first place, in the order of paths, where content does not decode into a Go type.
type Misfit struct {
	Path string // spec.ports[0].port, data["x"]
	Is   string // the form of the value that is there: "a boolean"
	Want string // the form that the type takes: "a string"
}

// Error tells the misfit. It quotes no value.
func (m *Misfit) Error() string {
	return fmt.Sprintf("%s is %s, want %s", cmp.Or(m.Path, "it"), m.Is, m.Want)
}

// Hint says what may be wrong if the content was written in YAML. It goes behind the error.
func (m *Misfit) Hint() string {
	switch {
	case m.Want == aString && m.Is == aBoolean:
		return ": YAML reads y, yes, on, true and their opposites so, unless they are in quotes"
	case m.Want == aString && m.Is == aNumber:
		return ": put it in quotes"
	}
	return ""
}

// MisfitOf returns where untyped content does not decode into the type t, and nil if it does. It
// calls methods of the types within t, as decoding does.
func MisfitOf(content any, t reflect.Type) *Misfit { return misfit("", content, t) }

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func misfit(path string, value any, t reflect.Type) *Misfit {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	want := wantOf(t)
	switch v := value.(type) {
	case nil:
		return nil // it changes nothing
	case map[string]any:
		switch {
		case want == anObject && t.Kind() == reflect.Map:
			return first(v, func(key string) *Misfit { return misfit(fmt.Sprintf("%s[%q]", path, key), v[key], t.Elem()) })
		case want == anObject:
			fields := make(map[string]reflect.Type)
			fieldsOf(t, fields)
			return first(v, func(key string) *Misfit {
				if of := fields[key]; of != nil {
					return misfit(join(path, key), v[key], of)
				}
				return nil
			})
		}
	case []any:
		if want != aList {
			break
		}
		for i, element := range v {
			if m := misfit(fmt.Sprintf("%s[%d]", path, i), element, t.Elem()); m != nil {
				return m
			}
		}
		return nil
	}
	if fits(value, t) {
		return nil
	}
	return &Misfit{Path: path, Is: isOf(value), Want: want}
}

// first returns the first misfit among the members of an object.
func first(of map[string]any, member func(key string) *Misfit) *Misfit {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if m := member(key); m != nil {
			return m
		}
	}
	return nil
}

// fits reports whether a value decodes into a t.
func fits(value any, t reflect.Type) bool {
	data, err := json.Marshal(value)
	return err == nil && json.Unmarshal(data, reflect.New(t).Interface()) == nil
}

// fieldsOf puts the fields of a struct into a map by their names in JSON.
func fieldsOf(t reflect.Type, to map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			fieldsOf(inner, to)
		case f.IsExported() && name != "-":
			to[cmp.Or(name, f.Name)] = f.Type
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// The forms of values.
const (
	anObject = "an object"
	aList    = "a list"
	aString  = "a string"
	aBoolean = "a boolean"
	aNumber  = "a number"
)

// isOf returns the form of a value.
func isOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return anObject
	case []any:
		return aList
	case string:
		return aString
	case bool:
		return aBoolean
	}
	return aNumber
}

// wantOf returns the form that a type takes. A type with an UnmarshalJSON says itself what it
// takes.
func wantOf(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return t.String()
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return anObject
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "base64"
		}
		return aList
	case reflect.String:
		return aString
	case reflect.Bool:
		return aBoolean
	case reflect.Float32, reflect.Float64:
		return aNumber
	}
	return fmt.Sprintf("an integer of %s", t.Kind())
}
