package wire

import (
	"bytes"

	"github.com/kates-go/kates/internal/client/wire/frames"
	objects "github.com/kates-go/kates/internal/object"
)

// Applied reads what a manager has applied of objects, before their managedFields are dropped.
type Applied struct {
	Manager string
	// Mark is in the bytes of each object of interest: a part of an annotation's name.
	Mark string
	// Put takes the fields of a version of an object, in the form of the managedFields.
	Put func(o objects.Object, fields []byte)
}

// fields are what the manager has applied of an object that is not decoded yet; nil if that is of
// no interest.
func (a *Applied) fields(raw []byte, e frames.Encoding) []byte {
	if a == nil || !bytes.Contains(raw, []byte(a.Mark)) {
		return nil
	}
	return frames.AppliedFields(raw, e, a.Manager)
}

// put hands the fields on, with the decoded object.
func (a *Applied) put(o objects.Object, fields []byte) {
	if fields != nil && objects.Fault(o) == nil {
		a.Put(o, fields)
	}
}
