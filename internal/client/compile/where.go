package compile

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/base/guard"
	objects "github.com/kates-go/kates/internal/object"
)

// Where decides which objects are in a query.
type Where struct {
	objects.Where
	Reads
}

// WhereOf makes a Where of a function that takes a T: see kates.WhereOf.
func WhereOf[T any](f func(T) (bool, error)) *Where {
	as := newConverter[T]()
	w := &Where{Reads: as.reads(f == nil)}
	w.OfMetadata = reflect.TypeFor[T]() == metadataType
	w.Do = func(o objects.Object) (bool, error) {
		value, err := as.of(o)
		if err != nil {
			return false, err
		}
		return f(value)
	}
	return w
}

// Selects asks a Where. It returns an error if the function fails or panics.
func (w *Where) Selects(o objects.Object) (in bool, err error) {
	switch {
	case w == nil:
		return true, nil
	case w.err != nil:
		return false, w.err
	}
	err = guard.Named("the Where function panicked", func() (err error) {
		in, err = w.Do(o)
		return err
	})
	return in && err == nil, err
}

// filter returns the items that a Where lets in. An item for which it fails is an error: nobody can
// say whether that one was meant.
func (w *Where) filter(items []*unstructured.Unstructured) (in []*unstructured.Unstructured, err error) {
	if w == nil {
		return items, nil
	}
	for _, item := range items {
		yes, err := w.Selects(item)
		if err != nil {
			return nil, fmt.Errorf("%s %q: where: %w", item.GetKind(), objects.KeyOf(item), err)
		}
		if yes {
			in = append(in, item)
		}
	}
	return in, nil
}
