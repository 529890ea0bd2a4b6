package kates

import (
	"fmt"
	"reflect"
)

// A question is given to the functions of a query that [KeyOf] and the like have made, in place of
// an object: they answer which type the user's function takes, and do not call it.
type question struct {
	Unstructured
	takes reflect.Type
}

// answers reports whether an object is a question, and answers it.
func answers(o Object, t reflect.Type) bool {
	q, ok := o.(*question)
	if ok {
		q.takes = t
	}
	return ok
}

// keyTaking, signalTaking and transformTaking make functions that answer a question. They are
// neither generic nor inlined, so what one of them makes is known by its code: see [sameCode].
//
//go:noinline
func keyTaking(t reflect.Type, f func(Object) []string) func(Object) []string {
	return func(o Object) []string {
		if answers(o, t) {
			return nil
		}
		return f(o)
	}
}

//go:noinline
func signalTaking(t reflect.Type, f func(old, current Object) bool) func(old, current Object) bool {
	return func(old, current Object) bool {
		if answers(current, t) {
			return true
		}
		return f(old, current)
	}
}

//go:noinline
func transformTaking(t reflect.Type, f func(Object) error) func(Object) error {
	return func(o Object) error {
		if answers(o, t) {
			return nil
		}
		return f(o)
	}
}

// checkTypes returns an error if a function of a target takes an API type of another kind than the
// one that the field's Go type fixes. A Ref's function gets the objects of the target it names.
func (c *Client) checkTypes(t target, all []target) error {
	for _, f := range []struct {
		name       string
		is, asking any
		ask        func(*question)
	}{
		{"Key", t.Key, keyTaking(nil, nil), func(q *question) { t.Key(q) }},
		{"Signal", t.Signal, signalTaking(nil, nil), func(q *question) { t.Signal(nil, q) }},
		{"Transform", t.Transform, transformTaking(nil, nil), func(q *question) { _ = t.Transform(q) }},
	} {
		if !sameCode(f.is, f.asking) {
			continue
		}
		var q question
		f.ask(&q)
		if err := c.takesOther(q.takes, t); err != nil {
			return fmt.Errorf("the function of its %s %w", f.name, err)
		}
	}
	for i, r := range t.Refs {
		for _, of := range all {
			if of.Name != r.ref.Query {
				continue
			}
			if err := c.takesOther(r.takes, of); err != nil {
				return fmt.Errorf("the function of its reference %d, of %q, %w", i, of.Name, err)
			}
		}
	}
	return nil
}

// takesOther returns an error if a function's type is registered, and for no version of the kind
// of a target.
func (c *Client) takesOther(takes reflect.Type, t target) error {
	if takes == nil || t.kind.Empty() {
		return nil
	}
	elem := takes
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	kinds := c.kindsOf(elem)
	for _, kind := range kinds {
		if kind.GroupKind() == t.kind.GroupKind() {
			return nil
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return fmt.Errorf("takes a %s, but the objects of %q are of kind %s", takes, t.Name, t.kind.GroupKind())
}
