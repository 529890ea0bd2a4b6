package intake

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// Checked checks what a list, a streamed list, an event or a file brings. What no server has is an
// error of the whole answer: the answer is asked for again, with growing pauses, and what is shown
// stays (G5, G8). An object that JSON cannot name is left out, and the rest goes on: a server can
// have such an object, and sends it in protobuf.
func (s *Intake) Checked(item runtime.Object) (object.Object, error) {
	o, ok := item.(object.Object)
	if !ok {
		return nil, source.Garbled{Cause: fmt.Errorf("unexpected %T among the objects of %s", item, s.Key.Resource)}
	}
	if err := s.validateObject(o); err != nil {
		return nil, source.Garbled{Cause: err}
	}
	if err := unsayable(o); err != nil && object.Fault(o) == nil {
		bare := object.Bare(o)
		metadata, _ := object.Shorten(bare, s.Resource.Kind) // nil if that fails
		// An original would be in JSON, with another name.
		return object.Like(object.Reject(object.IDOf(bare, s.Resource), metadata, object.Original{}, err), o), nil
	}
	return o, nil
}

// unsayable says what of an object's identity or labels is no string of JSON.
func unsayable(o object.Object) error {
	key, uid := object.KeyOf(o), string(o.GetUID())
	switch {
	case !object.Sayable(key):
		return fmt.Errorf("its name %q is no UTF-8, so JSON cannot say it", object.Brief(key.String()))
	case !utf8.ValidString(uid):
		return fmt.Errorf("its UID %q is no UTF-8, so JSON cannot say it", object.Brief(uid))
	}
	if _, fromJSON := object.Bare(o).(*unstructured.Unstructured); fromJSON {
		return nil
	}
	for label, value := range o.GetLabels() {
		if !utf8.ValidString(label) || !utf8.ValidString(value) {
			return errors.New("one of its labels is no UTF-8, so JSON cannot say it")
		}
	}
	return nil
}

// validateObject says why an object cannot be one that this stream asks for.
func (s *Intake) validateObject(o object.Object) error {
	err := s.Resource.CheckKind(o)
	_, stamped := o.(*object.Stamped)
	if err == nil && !stamped { // such objects are as the program has made them
		err = s.Resource.CheckNamespace(o.GetNamespace())
	}
	if err != nil {
		return err
	}
	name, namespace := o.GetName(), o.GetNamespace()
	switch {
	case name == "":
		return errors.New("an object without a name")
	case !possible(name):
		return fmt.Errorf("an object with the name %q, which cannot be", object.Brief(name))
	case namespace != "" && !possible(namespace):
		return fmt.Errorf("an object in the namespace %q, which cannot be", object.Brief(namespace))
	case s.Key.Namespace != "" && namespace != s.Key.Namespace:
		return fmt.Errorf("an object in the namespace %q, where %q was asked for", object.Brief(namespace), s.Key.Namespace)
	}
	return nil
}

// possible reports whether a server can store a name: any segment of a path. Some kinds have names
// of any characters: Roles, for one.
func possible(name string) bool { return name != "" && len(content.IsPathSegmentName(name)) == 0 }
