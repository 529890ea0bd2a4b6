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
	hidden    bool // a pointer that encoding/json cannot set
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
		one.hidden = !f.IsExported() && f.Type.Kind() == reflect.Pointer
		for option := range strings.SplitSeq(options, ",") {
			one.omitEmpty = one.omitEmpty || option == "omitempty"
			one.omitZero = one.omitZero || option == "omitzero"
		}
		if name == "" {
			one.inline = f.Anonymous && bare(f.Type).Kind() == reflect.Struct
			one.name = f.Name
		}
		if one.inline || f.IsExported() || bare(f.Type).Kind() == reflect.Struct { // as encoding/json
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
			_, twice := choose(all, f.name)
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

// find returns the field of a source that a name in JSON belongs to, also in its inlined structs.
// Like encoding/json it takes a name in another letter case where there is none in the same.
func find(t reflect.Type, name string) (field, bool) {
	all := flat(t, 0)
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		if i := slices.IndexFunc(all, func(f field) bool { return same(f.name, name) }); i >= 0 {
			return all[i], true
		}
	}
	return field{}, false
}

// inlinedMost is how deep structs may be inlined.
const inlinedMost = 20

// flat returns the fields of a struct, with those of its inlined structs.
func flat(t reflect.Type, depth int) (all []field) {
	for _, f := range fieldsOf(t) {
		switch {
		case !f.inline:
			all = append(all, f)
		case depth < inlinedMost:
			all = append(all, flat(bare(f.typ), depth+1)...)
		}
	}
	return all
}

// choose returns the field of a target that encoding/json would put a name's value into.
func choose(fields map[string]field, name string) (field, bool) {
	if f, ok := fields[name]; ok {
		return f, true
	}
	for _, f := range fields {
		if strings.EqualFold(f.name, name) {
			return f, true
		}
	}
	return field{}, false
}

// Has reports whether a struct, or a struct that it has under a name, has a field.
func Has(t reflect.Type, path ...string) bool {
	for i, name := range path {
		if t = bare(t); t.Kind() != reflect.Struct {
			return true // it may have any
		}
		f, ok := find(t, name)
		if !ok || i == len(path)-1 {
			return ok
		}
		t = f.typ
	}
	return true
}

// SaysKind reports whether a struct has the kind of an object among its fields, or its API
// version.
func SaysKind(t reflect.Type) bool {
	return slices.ContainsFunc(flat(t, 0), func(f field) bool {
		return strings.EqualFold(f.name, "kind") || strings.EqualFold(f.name, "apiVersion")
	})
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

// Paths returns the paths of the fields that a struct has, down to what is no struct, or is a
// leaf. They lead through lists into the elements. A field without a JSON tag has its Go name
// there: see [Resolve].
func Paths(t reflect.Type, leaf func(reflect.Type) bool) []Path {
	return pathsIn(t, nil, nil, leaf)
}

// pathsIn returns the paths in a type at a path. above are the types that it is in: of one that
// has itself in it, the inner one is held whole.
func pathsIn(t reflect.Type, at Path, above []reflect.Type, leaf func(reflect.Type) bool) (all []Path) {
	for (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && at != nil) && !speaks(t) && !slices.Contains(above, t) {
		above, t = append(slices.Clip(above), t), t.Elem()
	}
	if t.Kind() != reflect.Struct || speaks(t) || leaf(t) || slices.Contains(above, t) {
		return []Path{at}
	}
	above = append(slices.Clip(above), t)
	for _, f := range flat(t, 0) {
		all = append(all, pathsIn(f.typ, append(slices.Clip(at), f.name), above, leaf)...)
	}
	if all == nil { // whether it is there says something
		all = []Path{at}
	}
	return all
}

// Resolve returns a path as a type has it, where the letter case may differ. ok is false if the
// type certainly has no such field.
func Resolve(t reflect.Type, path Path) (as Path, ok bool) {
	as = slices.Clone(path)
	for i, name := range path {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || speaks(t) {
			return as, true // it may have any
		}
		f, ok := find(t, name)
		if !ok {
			return nil, false
		}
		as[i], t = f.name, f.typ
	}
	return as, true
}
