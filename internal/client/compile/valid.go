package compile

import (
	"reflect"
	"sync"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
)

// validity says why an object of a query cannot be shown: it does not decode as an element of the
// query's field, or has no keys. Its values are equal if they say the same of every object.
type validity struct {
	elem reflect.Type // nil: every object decodes
	key  *Key         // nil: every object has keys
}

var _ objects.Valid = validity{}

// Check implements [objects.Valid].
func (v validity) Check(o objects.Object) error {
	if v.elem != nil {
		if _, err := formOfElement(v.elem).Convert(o); err != nil {
			return err
		}
	}
	if v.key == nil {
		return nil
	}
	return guard.Named(query.KeyPanicked, func() error {
		v.key.Of(o)
		return nil
	})
}

// forms are the forms of slices, by their elements. There are as many as types.
var forms sync.Map

// formOfElement returns the form of a field with such elements, which was checked.
func formOfElement(elem reflect.Type) *tables.Form {
	if f, ok := forms.Load(elem); ok {
		return f.(*tables.Form)
	}
	f, err := tables.FormOf(reflect.SliceOf(elem), "", true)
	if err != nil {
		panic(err)
	}
	made, _ := forms.LoadOrStore(elem, f)
	return made.(*tables.Form)
}

// validity is what the query's readers find out about each object.
func (c *Compiler) validity(w *Wanted, form objects.Form) (v validity) {
	if base, _ := form.Parts(); base == objects.Whole && w.element() != nil && formOfElement(w.element()).Decodes() {
		v.elem = w.element()
	}
	if c.Keyed && w.Key != nil && !w.Key.sure {
		v.key = w.Key
	}
	return v
}

// orInvalid returns a Signal for which a change of an object that cannot be shown is worth a
// signal, as is one that does not decode.
func (v validity) orInvalid(worth objects.Signal) objects.Signal {
	if v == (validity{}) {
		return worth
	}
	invalid := func(o objects.Object) bool { return o != nil && v.Check(o) != nil }
	return func(old, current objects.Object) bool {
		return worth(old, current) || invalid(current) || invalid(old)
	}
}
