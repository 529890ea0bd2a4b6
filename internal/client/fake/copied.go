package fake

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/object"
)

// copied is a copy for somebody who may write to it. A fixture that a test has written by hand may
// hold values that no JSON decodes to, as int, or []string. DeepCopy panics at those. They are the
// same in the copy.
func copied(o object.Object) object.Object {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		content, _ := tree(o.Object).(map[string]any)
		return &unstructured.Unstructured{Object: content}
	case *object.Stamped:
		return object.Like(copied(object.Bare(o)), o)
	}
	return o.DeepCopyObject().(object.Object)
}

// tree copies the maps and the lists of untyped JSON.
func tree(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return value
		}
		all := make(map[string]any, len(value))
		for key, each := range value {
			all[key] = tree(each)
		}
		return all
	case []any:
		if value == nil {
			return value
		}
		all := make([]any, len(value))
		for i, each := range value {
			all[i] = tree(each)
		}
		return all
	}
	return value
}
