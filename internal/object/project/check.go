package project

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// checker compares the fields of a target with those of a kind.
type checker struct {
	kind reflect.Type
	done map[[2]reflect.Type]bool
}

// check compares the names and types of a target's fields with those of the source.
func (c checker) check(target, source reflect.Type, path string) error {
	target, source = bare(target), bare(source)
	pair := [2]reflect.Type{target, source}
	if target == source || c.done[pair] || target.Kind() == reflect.Interface {
		return nil
	}
	if formOf(source) != object && speaks(target) {
		return nil // it reads what it gets
	}
	if a, b := formOf(target), formOf(source); a != b && a != anything && b != anything {
		return fmt.Errorf("%s of a %s is %s, which a %s cannot hold", path, c.kind.Name(), b, target)
	}
	c.done[pair] = true
	switch source.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		if formOf(source) == text || formOf(target) == anything {
			return nil
		}
		if target.Kind() == reflect.Struct {
			return nil // its fields are keys of a map
		}
		return c.check(target.Elem(), source.Elem(), path)
	case reflect.Struct:
		if speaks(target) || speaks(source) || target.Kind() != reflect.Struct {
			return nil
		}
		return c.fields(target, source, path)
	}
	return nil
}

func (c checker) fields(target, source reflect.Type, path string) error {
	for _, f := range fieldsOf(target) {
		if inner := [2]reflect.Type{bare(f.typ), source}; f.inline && !c.done[inner] {
			c.done[inner] = true
			if err := c.fields(inner[0], source, path); err != nil {
				return err
			}
		}
		if f.inline {
			continue
		}
		at := f.name
		if path != "" {
			at = path + "." + f.name
		}
		if f.hidden {
			return fmt.Errorf("its field %s is a pointer to a type that is not exported: encoding/json cannot set it", at)
		}
		of, ok := find(source, f.name)
		if !ok {
			return c.unknown(at, nearest(source, f.name))
		}
		if err := c.check(f.typ, of.typ, at); err != nil {
			return err
		}
	}
	return nil
}

// unknown is the error for a field that the kind has not. near is the name of another one, or "".
func (c checker) unknown(path, near string) error {
	if near != "" {
		near = ": " + near + " is near"
	}
	return fmt.Errorf("a %s has no field %s%s", c.kind.Name(), path, near)
}

// form is what a value looks like in JSON.
type form string

const (
	text     form = "a string"
	number   form = "a number"
	truth    form = "a boolean"
	list     form = "a list"
	object   form = "an object"
	anything form = "anything"
)

var known = map[reflect.Type]form{
	reflect.TypeFor[metav1.Time]():        text,
	reflect.TypeFor[metav1.MicroTime]():   text,
	reflect.TypeFor[metav1.Duration]():    text,
	reflect.TypeFor[resource.Quantity]():  text,
	reflect.TypeFor[intstr.IntOrString](): anything,
	reflect.TypeFor[json.Number]():        number,
}

func formOf(t reflect.Type) form {
	t = bare(t)
	if f, ok := known[t]; ok {
		return f
	}
	if speaks(t) {
		return anything
	}
	switch t.Kind() {
	case reflect.String:
		return text
	case reflect.Bool:
		return truth
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return number
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return text
		}
		return list
	case reflect.Array:
		return list
	case reflect.Struct, reflect.Map:
		return object
	}
	return anything
}
