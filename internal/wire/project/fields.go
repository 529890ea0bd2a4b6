package project

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// field is a field of a struct as JSON has it.
type field struct {
	name      string
	typ       reflect.Type
	offset    uintptr // from the start of the outer struct
	number    int     // in protobuf; 0 for none
	omitEmpty bool    // an empty value is not in the JSON
	omitZero  bool
	inline    bool // its fields are those of the outer struct
}

// fieldsOf returns the fields of a struct, without those of inlined structs.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		one := field{name: name, typ: f.Type, offset: f.Offset, number: numberOf(f.Tag.Get("protobuf"))}
		for option := range strings.SplitSeq(options, ",") {
			one.omitEmpty = one.omitEmpty || option == "omitempty"
			one.omitZero = one.omitZero || option == "omitzero"
		}
		if name == "" {
			one.inline = f.Anonymous && bare(f.Type).Kind() == reflect.Struct
			one.name = f.Name
		}
		if one.inline || f.IsExported() {
			all = append(all, one)
		}
	}
	return all
}

// bare is what a pointer points to, and any other type itself.
func bare(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// numberOf reads a tag like "bytes,1,opt,name=metadata".
func numberOf(tag string) int {
	parts := strings.SplitN(tag, ",", 3)
	if len(parts) < 2 {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return n
}

// wanted returns the fields of a target with those of its inlined structs, by name. ok is false if
// encoding/json would not find them so simply: two have one name, or a pointer is inlined.
func wanted(t reflect.Type) (all map[string]field, ok bool) {
	all = map[string]field{}
	ok = true
	var collect func(t reflect.Type, base uintptr)
	collect = func(t reflect.Type, base uintptr) {
		for _, f := range fieldsOf(t) {
			f.offset += base
			_, twice := all[f.name]
			switch {
			case f.inline && f.typ.Kind() == reflect.Pointer, !f.inline && twice:
				ok = false
			case f.inline:
				collect(f.typ, f.offset)
			default:
				all[f.name] = f
			}
		}
	}
	collect(t, 0)
	return all, ok
}

// find returns the field of a source that has a name in JSON, also in its inlined structs.
func find(t reflect.Type, name string) (field, bool) {
	fields := fieldsOf(t)
	if i := slices.IndexFunc(fields, func(f field) bool { return !f.inline && f.name == name }); i >= 0 {
		return fields[i], true
	}
	for _, f := range fields {
		if f.inline {
			if found, ok := find(bare(f.typ), name); ok {
				return found, true
			}
		}
	}
	return field{}, false
}

// Types that say themselves what they look like in JSON.
var (
	marshals   = reflect.TypeFor[json.Marshaler]()
	unmarshals = reflect.TypeFor[json.Unmarshaler]()
	texts      = reflect.TypeFor[encoding.TextUnmarshaler]()
	writesText = reflect.TypeFor[encoding.TextMarshaler]()
)

// speaks reports whether a type, or a pointer to it, has a way of its own to or from JSON.
func speaks(t reflect.Type) bool {
	p := reflect.PointerTo(bare(t))
	return p.Implements(marshals) || p.Implements(unmarshals) || p.Implements(texts) || p.Implements(writesText)
}
