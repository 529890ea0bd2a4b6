package jsonform

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// Convert copies src into dst, which may be of another Go type for the same or a similar kind. It
// uses the conversion that is registered in scheme (client-go's if nil), or else JSON, which
// drops the fields that dst does not have. dst gets the apiVersion and kind that the scheme knows
// for its type. It shares no memory with src, and is untouched on an error.
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
		var u *unstructured.Unstructured
		if u, err = ToUnstructured(scheme, src); err == nil {
			err = Fill(converted, u)
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
