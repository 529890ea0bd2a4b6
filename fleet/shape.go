package fleet

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/kates"
)

// shape is what the struct type of a fleet's snapshot says: which fields hold objects, and of
// which type the struct of one cluster is.
type shape struct {
	whole  reflect.Type
	part   reflect.Type // of one cluster; its field i belongs to fields[i]
	fields []shapeField

	missing, deltas, invalid []int // the indexes of those fields, if any

	unfilled []string // fields that look like the others, and are not exported
}

// shapeField is a field that holds objects of all clusters.
type shapeField struct {
	index []int
	typ   reflect.Type
	form  form
}

// form is how a field tells clusters apart.
type form int

const (
	byCluster form = iota // map[string]F: for each cluster what a field of one cluster has
	flat                  // []Object[T]: each object with its cluster
)

// shapeOf reads a struct type.
func shapeOf(t reflect.Type) (*shape, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a snapshot is a struct, not %s", t.Kind())
	}
	if err := compile.CheckNoneLater(t); err != nil {
		return nil, err
	}
	s := &shape{whole: t}
	var parts []reflect.StructField
	for i := range t.NumField() {
		sf := t.Field(i)
		if at, what := s.special(sf); at != nil {
			if *at != nil {
				return nil, fmt.Errorf("field %s: there is another one for %s", sf.Name, what)
			}
			*at = sf.Index
			continue
		}
		if sf.Tag.Get("kates") == "-" {
			continue
		}
		if !sf.IsExported() {
			if _, tagged := sf.Tag.Lookup("kates"); tagged {
				return nil, fmt.Errorf("field %s has a kates tag but is not exported", sf.Name)
			}
			if meant(sf.Type) != nil || holdsObjects(sf.Type) {
				s.unfilled = append(s.unfilled, sf.Name)
			}
			continue
		}
		if want := meant(sf.Type); want != nil {
			return nil, fmt.Errorf("field %s has type %s: want %s; or, if it is no such field, the tag `kates:\"-\"`", sf.Name, sf.Type, want)
		}
		form, inner, err := formOf(sf.Type)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		s.fields = append(s.fields, shapeField{sf.Index, sf.Type, form})
		parts = append(parts, reflect.StructField{Name: sf.Name, Type: inner, Tag: sf.Tag})
	}
	switch {
	case len(parts) == 0 && s.unfilled != nil:
		return nil, fmt.Errorf("no field says what to watch: not exported are %s", strings.Join(s.unfilled, ", "))
	case len(parts) == 0:
		return nil, errors.New("no field says what to watch")
	}
	s.part = reflect.StructOf(parts)
	return s, nil
}

// special returns the place for the index of a field that is no query, and what it is for.
func (s *shape) special(sf reflect.StructField) (at *[]int, what string) {
	switch {
	case !sf.IsExported():
	case sf.Type == reflect.TypeFor[[]Missing]():
		return &s.missing, "clusters that are missing"
	case sf.Type == reflect.TypeFor[[]*Delta]():
		return &s.deltas, "deltas"
	case sf.Type == reflect.TypeFor[[]Invalid]():
		return &s.invalid, "invalid objects"
	}
	return nil, ""
}

// meant returns the type that a field should have if its own is made of what a field is made of
// that is no query; nil for other types. Those of package kates do not name a cluster.
func meant(t reflect.Type) reflect.Type {
	switch object.Innermost(t) {
	case reflect.TypeFor[Missing]():
		return reflect.TypeFor[[]Missing]()
	case reflect.TypeFor[Delta](), reflect.TypeFor[kates.Delta]():
		return reflect.TypeFor[[]*Delta]()
	case reflect.TypeFor[Invalid](), reflect.TypeFor[kates.Invalid]():
		return reflect.TypeFor[[]Invalid]()
	}
	return nil
}

// formOf returns how a field holds objects, and the type of the field of one cluster.
func formOf(t reflect.Type) (form, reflect.Type, error) {
	if t.Kind() == reflect.Slice {
		if element := objectType(t.Elem()); element != nil {
			return flat, reflect.SliceOf(element), nil
		}
	}
	if t.Kind() == reflect.Map && t.Key() == reflect.TypeFor[string]() && t.Name() == "" {
		return byCluster, t.Elem(), nil
	}
	return 0, nil, fmt.Errorf("the type %s does not say which cluster an object is of: use map[string][]*T (by cluster) or []fleet.Object[*T]", object.TypeName(t))
}

// holdsObjects reports whether a field of that type could hold objects of API types.
func holdsObjects(t reflect.Type) bool {
	_, inner, err := formOf(t)
	return err == nil && reflect.PointerTo(object.Innermost(inner)).Implements(reflect.TypeFor[kates.Object]())
}

// objectType returns the type T of an Object[T], and nil for other types.
func objectType(t reflect.Type) reflect.Type {
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[Missing]().PkgPath() || !strings.HasPrefix(t.Name(), "Object[") {
		return nil
	}
	return t.Field(1).Type
}

// clusterPart is what one cluster contributes to a snapshot: a struct of the type shape.part.
type clusterPart struct {
	cluster string
	value   reflect.Value
}

// fill sets the fields that hold objects. A field that has not changed is the last snapshot's.
func (s *shape) fill(into reflect.Value, parts []clusterPart, last reflect.Value, fieldChanged []bool) {
	for i, f := range s.fields {
		to := into.FieldByIndex(f.index)
		if last.IsValid() && !fieldChanged[i] {
			to.Set(last.FieldByIndex(f.index))
			continue
		}
		if f.form == flat {
			to.Set(s.flatten(f, i, parts))
			continue
		}
		m := reflect.MakeMapWithSize(f.typ, len(parts))
		for _, p := range parts {
			m.SetMapIndex(reflect.ValueOf(p.cluster), p.value.Field(i))
		}
		to.Set(m)
	}
}

// flatten returns the objects of all clusters in one slice, by cluster, namespace and name.
func (s *shape) flatten(f shapeField, i int, parts []clusterPart) reflect.Value {
	n := 0
	for _, p := range parts {
		n += p.value.Field(i).Len()
	}
	all := reflect.MakeSlice(f.typ, n, n)
	at := 0
	for _, p := range parts {
		objects := p.value.Field(i)
		for j := range objects.Len() {
			to := all.Index(at)
			to.Field(0).SetString(p.cluster)
			to.Field(1).Set(objects.Index(j))
			at++
		}
	}
	return all
}

// differs notes which fields of a cluster's part are not the same as before.
func (s *shape) differs(before, now reflect.Value, fieldChanged []bool) {
	for i := range s.fields {
		if !before.IsValid() || !now.IsValid() || !same(before.Field(i), now.Field(i)) {
			fieldChanged[i] = true
		}
	}
}

// same reports whether a field is certainly the same. What did not change is the same slice or
// map.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice:
		return a.Len() == b.Len() && a.UnsafePointer() == b.UnsafePointer() && a.IsNil() == b.IsNil()
	case reflect.Map, reflect.Pointer:
		return a.UnsafePointer() == b.UnsafePointer()
	default:
		return a.Comparable() && b.Comparable() && a.Equal(b)
	}
}

// copy sets all fields that a watch fills, but for deltas.
func (s *shape) copy(into, from reflect.Value) {
	for _, f := range s.fields {
		into.FieldByIndex(f.index).Set(from.FieldByIndex(f.index))
	}
	for _, index := range [][]int{s.missing, s.invalid} {
		if index != nil {
			into.FieldByIndex(index).Set(from.FieldByIndex(index))
		}
	}
}

// check reports what is wrong with queries before any cluster is asked.
func (s *shape) check(queries []kates.Query) error {
	named := make(map[string]bool)
	for _, q := range queries {
		if _, ok := s.part.FieldByName(q.Name); !ok {
			return fmt.Errorf("query %q: %s has no field of that name that could be a query", q.Name, s.whole)
		}
		if named[q.Name] {
			return fmt.Errorf("query %q: there are two of that name", q.Name)
		}
		named[q.Name] = true
	}
	return nil
}
