package jsonform

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// Convert copies src into dst, as kates.ConvertObject documents.
func Convert(scheme *runtime.Scheme, src, dst runtime.Object) error {
	if scheme == nil {
		scheme = clientscheme.Scheme
	}
	if dst == nil {
		return errors.New("convert: the target is nil")
	}
	target, err := pointee(dst)
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	if _, err := Dereference(src); err != nil {
		return err
	}
	converted := reflect.New(target.Type()).Interface().(runtime.Object) // of dst's type
	// A registered conversion may let its result share memory with its input.
	err = scheme.Convert(src.DeepCopyObject(), converted, nil)
	if isUnknownConversion(err) {
		var done bool
		if done, err = byMethods(scheme, src.DeepCopyObject(), converted); !done && err == nil {
			err = byJSON(scheme, src, converted)
		}
	}
	if err != nil {
		return fmt.Errorf("convert %T to %T: %w", src, dst, err)
	}
	stampType(scheme, converted)
	target.Set(reflect.ValueOf(converted).Elem())
	return nil
}

// stampType sets the kind that is registered for a Go type. The source may have named another
// version.
func stampType(scheme *runtime.Scheme, obj runtime.Object) {
	if _, untyped := obj.(runtime.Unstructured); untyped {
		return
	}
	if kinds, _, err := scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 {
		obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
}

// isUnknownConversion reports whether the scheme lacks a conversion, as opposed to one that
// failed. apimachinery has no error value for this, so its text decides.
func isUnknownConversion(err error) bool {
	return err != nil && (runtime.IsNotRegisteredError(err) || strings.Contains(err.Error(), "unknown conversion"))
}
