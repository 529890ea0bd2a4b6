package compile

import (
	"cmp"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
)

// Transform changes an object before it is held.
type Transform struct {
	objects.Transform
	Reads
	drops []string // the only field that it changes: it drops that; nil: it may change any
}

// TransformOf makes a Transform of a function that takes a T: see kates.TransformOf.
func TransformOf[T any](f func(T) error) *Transform {
	as := newConverter[T]()
	made := &Transform{Reads: as.reads(f == nil)}
	switch t := reflect.TypeFor[T](); {
	case t.Kind() == reflect.Map && t != reflect.TypeFor[map[string]any]():
		made.err = cmp.Or(made.err, fmt.Errorf("a transform takes a map[string]any, and not a %s", t))
	case tables.Projects(bareType(t)):
		made.err = cmp.Or(made.err, fmt.Errorf("a %s has some fields of an object, and the others would be lost: have it take the kind's Go type, *Unstructured, or map[string]any", t))
	case t.Kind() != reflect.Pointer && t.Kind() != reflect.Map && t.Kind() != reflect.Interface:
		made.err = cmp.Or(made.err, fmt.Errorf("a transform changes a pointer, a map or a metav1.Object: %s is a copy", t))
	}
	made.Do = func(o objects.Object) error {
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
	}
	return made
}

// Apply changes an object. It returns an error if the function panics.
func (t *Transform) Apply(o objects.Object) error {
	switch {
	case t == nil:
		return nil
	case t.err != nil:
		return t.err
	}
	return guard.Named("the Transform function panicked", func() error { return t.Do(o) })
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

// DropManagedFields makes a Transform that drops metadata.managedFields.
func DropManagedFields() *Transform {
	return &Transform{drops: []string{"metadata", "managedFields"}, Transform: objects.Transform{Harmless: true, Do: func(o objects.Object) error {
		o.SetManagedFields(nil)
		return nil
	}}}
}

// DropFields makes a Transform that drops the fields at some paths.
func DropFields(paths []string) *Transform {
	split := make([][]string, len(paths))
	t := &Transform{}
	for i, path := range paths {
		if split[i] = jsonform.SplitPath(path); split[i] == nil {
			t.err = cmp.Or(t.err, fmt.Errorf("drop field %q: not a path", path))
		}
	}
	t.Do = func(o objects.Object) error { return jsonform.DropFields(o, split) }
	return t
}

// Transforms makes a Transform that runs several in order, up to the first error.
func Transforms(all []*Transform) *Transform {
	t := &Transform{}
	for _, one := range all {
		if one != nil {
			t.add(one.Reads)
		}
	}
	t.Do = func(o objects.Object) error {
		for _, one := range all {
			if one == nil {
				continue
			}
			if err := one.Do(o); err != nil {
				return err
			}
		}
		return nil
	}
	return t
}
