package collect

import (
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// rows makes rows of objects, and reports those that are left out.
type rows struct {
	streams *streamset.Set
	witness Witness              // Options.Witness, or nil
	invalid func(tables.Invalid) // Options.Invalid, or nil
}

// Convert converts an object for the i-th query of a binding.
func (r *rows) Convert(b *snapshot.Binding, i int, name string, o object.Object) tables.Row {
	if err := object.Fault(o); err != nil {
		return tables.Row{Source: o, Err: err}
	}
	value, err := b.Convert(i, o)
	if err != nil {
		return tables.Row{Source: o, Err: err}
	}
	r.Show(name, o, value)
	return tables.Row{Source: o, Value: value}
}

// Show tells the witness, if there is one, that somebody is to get a value.
func (r *rows) Show(name string, o object.Object, value any) {
	if r.witness != nil {
		lockorder.CallOut("Options.Witness")
		r.witness.Shown(name, o, value)
	}
}

// Same reports whether two objects are one version of one object, in one version of the API, and
// with the same content. A query may have moved to another version of the API, and then shows
// that. A list may show one version otherwise than before.
func (r *rows) Same(shown, o object.Object) bool {
	if shown == o {
		return true
	}
	version := o.GetResourceVersion()
	return coherence.Comparable(version) &&
		shown.GetResourceVersion() == version && object.UIDOf(shown) == object.UIDOf(o) &&
		shown.GetObjectKind().GroupVersionKind() == o.GetObjectKind().GroupVersionKind() && object.LookAlike(shown, o)
}

// Report logs invalid objects, and calls the user's callback for each. A panic in it affects
// nothing else.
func (r *rows) Report(invalid []tables.Invalid) {
	for _, i := range invalid {
		if object.Fault(i.Object) == nil {
			r.Show(i.Query, i.Object, i.Object) // the user gets it, in an Invalid
		}
		log := r.streams.Logger()
		log.V(1).WithValues(guard.Attribute(i.Err)...).Info("object left out", "query", i.Query, "object", object.KeyOf(i.Object).String(), "err", i.Err)
		if r.invalid == nil {
			continue
		}
		err := guard.Named("the callback for invalid objects panicked", func() error {
			r.invalid(i)
			return nil
		})
		if err != nil {
			log.Error(err, "an object that is left out was not reported", guard.Attribute(err)...)
		}
	}
}
