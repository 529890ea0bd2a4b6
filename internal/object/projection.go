package object

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
)

// Projection is a form in which a stream holds some fields of its objects, as *[object.Projected]:
// a value of a struct type, decoded by the rules of encoding/json, and what identifies an object.
type Projection struct {
	// Into is the struct type.
	Into reflect.Type
	// Beside is what else is held of the metadata, for what reads it. A query that selects by
	// labels, or whose objects are looked up by labels, needs these.
	Beside Beside
}

// projections has the forms of projections, and formed what they are forms of. There are as many
// as struct types that a program watches.
var (
	projections, formed sync.Map
	projectionsMade     atomic.Int64
)

// formOfFields begins the names of these forms.
const formOfFields = "fields "

// Form is the projection's form. Equal projections have the same form.
func (p Projection) Form() Form {
	if form, known := projections.Load(p); known {
		return form.(Form)
	}
	form := Form(fmt.Sprintf("%sof %s (%d)", formOfFields, p.Into, projectionsMade.Add(1)))
	formed.Store(form, p)
	first, _ := projections.LoadOrStore(p, form)
	return first.(Form)
}

// Projection is what a form projects to; ok is false if it is none.
func (f Form) Projection() (p Projection, ok bool) {
	if of, known := formed.Load(f); known {
		return of.(Projection), true
	}
	return p, false
}

// Projects reports whether the form is that of a projection.
func (f Form) Projects() bool { return strings.HasPrefix(string(f), formOfFields) }

// Fields is what the form of a projection is called in a status.
const Fields Form = "fields"

// Word is what a form is called in a status.
func (f Form) Word() string {
	if f.Projects() {
		return string(Fields)
	}
	return string(f)
}

// Decoded reports whether the source makes the objects of this form itself: the answer to an own
// write, too.
func (f Form) Decoded() bool { return f == Typed || f.Projects() }

// isProjected reports whether an object has some of its fields only.
func isProjected(o any) bool {
	_, is := o.(*Projected)
	return is
}
