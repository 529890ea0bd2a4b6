package compile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// KeyOf makes a Key of a function that takes a T: see kates.KeyOf.
func KeyOf[T any](f func(T) []string) func(objects.Object) []string {
	if f == nil {
		return noKey
	}
	as := newConverter[T]()
	return keyTaking(reflect.TypeFor[T](), func(o objects.Object) []string {
		value, err := as.of(o)
		if err != nil {
			panic(fmt.Errorf("key: %w", err)) // the object counts as invalid
		}
		return f(value)
	})
}

// SignalOf makes a Signal of a function that takes a T: see kates.SignalOf.
func SignalOf[T any](f func(old, current T) bool) func(old, current objects.Object) bool {
	if f == nil {
		return noSignal
	}
	as := newConverter[T]()
	return signalTaking(reflect.TypeFor[T](), func(old, current objects.Object) bool {
		before, err := as.orNil(old)
		after, err2 := as.orNil(current)
		return err != nil || err2 != nil || f(before, after)
	})
}

// TransformOf makes a Transform of a function that takes a T: see kates.TransformOf.
func TransformOf[T any](f func(T) error) func(objects.Object) error {
	if f == nil {
		return noTransform
	}
	as := newConverter[T]()
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface:
	default:
		as.err = fmt.Errorf("a transform changes a pointer, a map or an interface: %s is a copy", t)
	}
	return transformTaking(reflect.TypeFor[T](), func(o objects.Object) error {
		value, err := as.of(o)
		if err != nil {
			return err
		}
		if err := f(value); err != nil {
			return err
		}
		if _, same := any(o).(T); same {
			return nil
		}
		return putBack(o, value)
	})
}

// putBack gives an object the content of a value that was made of the object.
func putBack(o objects.Object, value any) error {
	content, ok := value.(map[string]any)
	if !ok {
		var err error
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(value); err != nil {
			return err
		}
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object = content
		return nil
	}
	fresh := reflect.New(reflect.TypeOf(o).Elem())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, fresh.Interface()); err != nil {
		return err
	}
	reflect.ValueOf(o).Elem().Set(fresh.Elem())
	return nil
}

// Transforms returns a function that runs several in order, up to the first error.
func Transforms(all []func(objects.Object) error) func(objects.Object) error {
	if slices.ContainsFunc(all, func(f func(objects.Object) error) bool { return f == nil || SameCode(f, noTransform) }) {
		return noTransform
	}
	return func(o objects.Object) error {
		for _, f := range all {
			if err := f(o); err != nil {
				return err
			}
		}
		return nil
	}
}

// AnySignal returns a function for changes that one of several is for.
//
//go:noinline
func AnySignal(signals []func(old, current objects.Object) bool) func(old, current objects.Object) bool {
	if slices.ContainsFunc(signals, func(f func(old, current objects.Object) bool) bool { return f == nil || SameCode(f, noSignal) }) {
		return noSignal
	}
	return func(old, current objects.Object) bool {
		if q, ok := current.(*question); ok {
			for _, f := range signals {
				q.askSignal(f)
			}
			return true
		}
		return slices.ContainsFunc(signals, func(f func(old, current objects.Object) bool) bool { return f(old, current) })
	}
}

// errNilFunction is the error of a query whose function was made of a nil one.
var errNilFunction = errors.New("it was made of a function that is nil")

// noKey, noSignal and noTransform stand for functions that were made of nil ones: a query with
// them is refused, see [Wanted.checkFunctions].
func noKey(objects.Object) []string             { panic(errNilFunction) }
func noSignal(old, current objects.Object) bool { panic(errNilFunction) }
func noTransform(objects.Object) error          { return errNilFunction }

// SameCode reports whether two functions are one and the same, or closures of the same code.
func SameCode(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

// checkFunctions returns an error if a function of the query was made of a nil one.
func (f *Functions) checkFunctions() error {
	for _, f := range []struct {
		name         string
		is, disabled any
	}{{"Key", f.Key, noKey}, {"Signal", f.Signal, noSignal}, {"Transform", f.Transform, noTransform}} {
		if SameCode(f.is, f.disabled) {
			return fmt.Errorf("its %s makes no sense: %w", f.name, errNilFunction)
		}
	}
	return nil
}

// A question is given to the functions of a query that [KeyOf] and the like have made, in place of
// an object: they answer which type the user's function takes, and do not call it. Other functions
// of this library answer which fields they need, see [Needs].
type question struct {
	unstructured.Unstructured
	ours  *Ours
	takes reflect.Type
	needs []project.Path // of the fields that the function reads
	whole bool           // nobody knows what the function reads
}

// answers reports whether an object is a question, and answers it.
func answers(o objects.Object, t reflect.Type) bool {
	q, ok := o.(*question)
	if ok {
		q.takes = t
	}
	return ok
}

// Needs answers a question of which fields a function needs, and reports whether the object was
// one.
func Needs(o objects.Object, paths ...project.Path) bool {
	q, ok := o.(*question)
	if ok {
		q.needs = append(q.needs, paths...)
	}
	return ok
}

// askSignal asks a Signal what it needs, if this library has made it. Any other may need whole
// objects.
func (q *question) askSignal(f func(old, current objects.Object) bool) {
	switch {
	case f == nil:
	case q.ours.knowsSignal(f):
		f(nil, q)
	default:
		q.whole = true
	}
}

// keyTaking, signalTaking and transformTaking make functions that answer a question. They are
// neither generic nor inlined, so what one of them makes is known by its code: see [SameCode].
//
//go:noinline
func keyTaking(t reflect.Type, f func(objects.Object) []string) func(objects.Object) []string {
	return func(o objects.Object) []string {
		if answers(o, t) {
			return nil
		}
		return f(o)
	}
}

//go:noinline
func signalTaking(t reflect.Type, f func(old, current objects.Object) bool) func(old, current objects.Object) bool {
	return func(old, current objects.Object) bool {
		if answers(current, t) {
			return true
		}
		return f(old, current)
	}
}

//go:noinline
func transformTaking(t reflect.Type, f func(objects.Object) error) func(objects.Object) error {
	return func(o objects.Object) error {
		if answers(o, t) {
			return nil
		}
		return f(o)
	}
}

// function is one of a query's functions. is: the query has it. takes is the type of the argument
// of the user's function, if [KeyOf] or the like has wrapped it; nil for any other function.
type function struct {
	name  string
	is    bool
	takes reflect.Type
}

// functions returns the functions that get the query's objects.
func (f *Functions) functions() []function {
	all := []function{{name: "Key", is: f.Key != nil}, {name: "Signal", is: f.Signal != nil}, {name: "Transform", is: f.Transform != nil}}
	for i, f := range []struct {
		is, asking any
		ask        func(*question)
	}{
		{f.Key, keyTaking(nil, nil), func(a *question) { f.Key(a) }},
		{f.Signal, signalTaking(nil, nil), func(a *question) { f.Signal(nil, a) }},
		{f.Transform, transformTaking(nil, nil), func(a *question) { _ = f.Transform(a) }},
	} {
		if SameCode(f.is, f.asking) {
			var asked question
			f.ask(&asked)
			all[i].takes = asked.takes
		}
	}
	return all
}

// checkTypes returns an error if a function of a query takes an API type of another kind than the
// one that the field's Go type fixes. A Ref's function gets the objects of the query it names.
func (c *Compiler) checkTypes(w *Wanted, all []Wanted) error {
	for _, f := range w.functions() {
		if err := c.takesOther(f.takes, w); err != nil {
			return fmt.Errorf("the function of its %s %w", f.name, err)
		}
	}
	for i, r := range w.Refs {
		for j := range all {
			if all[j].Name != r.ref.Query {
				continue
			}
			if err := c.takesOther(r.takes, &all[j]); err != nil {
				return fmt.Errorf("the function of its reference %d, of %q, %w", i, r.ref.Query, err)
			}
		}
	}
	return nil
}

// takesOther returns an error if a function's type is registered, and for no version of the kind
// of a query.
func (c *Compiler) takesOther(takes reflect.Type, w *Wanted) error {
	if takes == nil || w.GVK.Empty() {
		return nil
	}
	kinds := c.KindsOf(bareType(takes))
	for _, kind := range kinds {
		if kind.GroupKind() == w.GVK.GroupKind() {
			return nil
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return fmt.Errorf("takes a %s, but the objects of %q are of kind %s", takes, w.Name, w.GVK.GroupKind())
}

func bareType(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
