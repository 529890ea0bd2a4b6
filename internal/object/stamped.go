package object

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Stamped is an object of a server that maintains neither UIDs nor versions, with a UID and a
// version that somebody else has given it. The object itself does not have them: whoever shows it
// to a user shows [Bare].
type Stamped struct {
	Object
	uid     types.UID
	version string
}

// Stamp returns an object with a stamp. A stamp that it has is replaced.
func Stamp(o Object, uid types.UID, version string) *Stamped { return &Stamped{Bare(o), uid, version} }

// GetUID is that of the stamp.
func (s *Stamped) GetUID() types.UID { return s.uid }

// GetResourceVersion is that of the stamp.
func (s *Stamped) GetResourceVersion() string { return s.version }

// DeepCopyObject copies the object, and keeps the stamp.
func (s *Stamped) DeepCopyObject() runtime.Object {
	return &Stamped{s.Object.DeepCopyObject().(Object), s.uid, s.version}
}

// Bare returns an object without its stamp, and without its original. Most have neither. It is nil
// for nil.
func Bare(o Object) Object {
	switch o := o.(type) {
	case *Stamped:
		return o.Object
	case *Received:
		return o.Object
	}
	return o
}

// Like returns an object with the stamp of another one, if that has one.
func Like(o, stamped Object) Object {
	if s, ok := stamped.(*Stamped); ok {
		return Stamp(o, s.uid, s.version)
	}
	return o
}
