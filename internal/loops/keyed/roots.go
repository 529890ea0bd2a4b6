package keyed

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/object"
)

// Plan is a controller's struct type and options, as package kates has read them. Nothing runs and
// nothing was sent. Status is that of package kates.
type Plan[Status any] struct {
	Config
	Special []int // the index of the special field, if any
	Root    []int // that of the root
	// Open starts the watch. It ends with ctx, or by Close.
	Open func(ctx context.Context) (Roots[Status], error)
	// LeaseStatus is how the replica stands with its Lease, and nothing else.
	LeaseStatus func() Status
}

// Roots hands out turns by the keys of roots.
type Roots[Status any] interface {
	Source[*Root]
	Status() Status
	// Selective: the root may leave its query and still exist.
	Selective() bool
	Close()
}

// Root is the turn of a root's key.
type Root struct {
	RootTurn
	// Struct is a value of the controller's struct type, and addressable. It has everything but
	// the root and the special field.
	Struct reflect.Value
	// Object is the root that the query shows, nil if there is none. Value is what its field gets.
	Object object.Object
	Value  reflect.Value
	// UID is that of the object that exists, also if it cannot be read. Empty: there is none.
	UID types.UID
	// Unread says why the object that exists cannot be shown.
	Unread error
}

// RootTurn is what package kates does for the turn of a root.
type RootTurn interface {
	Turn
	// OwnedBy replaces the owned objects in the struct by those that this UID controls.
	OwnedBy(uid types.UID)
}

// Exists reports whether there is a root of the key, whether it can be read or not.
func (r *Root) Exists() bool { return r.Object != nil || r.Unread != nil }
