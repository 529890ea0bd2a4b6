package applied

import (
	"encoding/json"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HasValues reports whether a live object certainly has every value of the given one outside the
// metadata, at the same place. It is false for objects of different Go types. It compares what
// JSON would compare at ten times the cost. Values that are zero in a field of a struct say
// nothing, as there, unless JSON has them. A selector is compared as a whole: if it is empty, it
// selects everything.
func HasValues(given, live Object) bool {
	a, b := reflect.ValueOf(given), reflect.ValueOf(live)
	if a.Kind() != reflect.Pointer || a.IsNil() || b.Kind() != reflect.Pointer || b.IsNil() ||
		a.Type() != b.Type() || a.Elem().Kind() != reflect.Struct || opaque(a.Type().Elem()) {
		return false
	}
	a, b = a.Elem(), b.Elem()
	for i := range a.NumField() {
		switch a.Type().Field(i).Type {
		case reflect.TypeFor[metav1.TypeMeta](), reflect.TypeFor[metav1.ObjectMeta]():
			continue
		}
		if a.Type().Field(i).Name == "Status" && a.Field(i).IsZero() { // it is not applied
			continue
		}
		if !within(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

// within reports whether a value is zero, or its parts are within those of another value of its
// type. Lists have as many items.
func within(given, live reflect.Value) bool {
	if opaque(given.Type()) || given.Type() == reflect.TypeFor[metav1.LabelSelector]() {
		return equality.Semantic.DeepEqual(given.Interface(), live.Interface())
	}
	switch given.Kind() {
	case reflect.Pointer:
		if given.IsNil() || live.IsNil() {
			return given.IsNil()
		}
		return same(given.Elem(), live.Elem())
	case reflect.Struct:
		written := written(given.Type())
		for i := range given.NumField() {
			field := given.Field(i)
			if opaque(field.Type()) && field.Kind() != reflect.Pointer && field.IsZero() {
				continue // the server may have a default for it: the targetPort of a Service
			}
			if written[i] && !same(field, live.Field(i)) || !within(field, live.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if given.Len() == 0 {
			return true
		}
		if given.Len() != live.Len() {
			return false
		}
		for i := range given.Len() {
			if !same(given.Index(i), live.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		for each := given.MapRange(); each.Next(); {
			if there := live.MapIndex(each.Key()); !there.IsValid() || !same(each.Value(), there) {
				return false
			}
		}
		return true
	}
	return given.IsZero() || equality.Semantic.DeepEqual(given.Interface(), live.Interface())
}

// same is within for what is there although it is zero.
func same(given, live reflect.Value) bool {
	switch given.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if given.IsNil() != live.IsNil() {
			return false
		}
		return within(given, live)
	case reflect.Struct:
		return within(given, live)
	}
	return equality.Semantic.DeepEqual(given.Interface(), live.Interface())
}

// opaque reports whether a type decides about its JSON itself, or has fields that are not
// exported.
func opaque(typ reflect.Type) bool {
	known, ok := opaques.Load(typ)
	if !ok {
		is := typ.Implements(marshaler) || reflect.PointerTo(typ).Implements(marshaler)
		for i := 0; typ.Kind() == reflect.Struct && i < typ.NumField(); i++ {
			is = is || !typ.Field(i).IsExported()
		}
		known, _ = opaques.LoadOrStore(typ, is)
	}
	return known.(bool)
}

// written says which fields of a struct are scalars that its JSON has although they are zero.
func written(typ reflect.Type) []bool {
	known, ok := writes.Load(typ)
	if !ok {
		are := make([]bool, typ.NumField())
		for i := range are {
			are[i] = isWritten(typ.Field(i))
		}
		known, _ = writes.LoadOrStore(typ, are)
	}
	return known.([]bool)
}

var (
	writes    sync.Map // reflect.Type to []bool
	opaques   sync.Map // reflect.Type to bool
	marshaler = reflect.TypeFor[json.Marshaler]()
)
