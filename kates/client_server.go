package kates

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/kinds/selectable"
	"github.com/kates-go/kates/internal/wire"
)

// server is how the cluster of a client behaves. There are two: an API server ([apiServer]), and
// client-go's bare fake ([bareFake]), which has neither versions nor UIDs, and does not select. A
// client gets one at construction; nothing else asks which one it is.
type server interface {
	wire.Requests

	// checkFields is an error if the server refuses a field selector of the query.
	checkFields(ctx context.Context, r stream.Resource, t target) error
	// declaredFields returns the selectable fields of a custom kind, as far as they can be known.
	declaredFields(
		ctx context.Context, kind schema.GroupVersionKind, wanted []string,
	) selectable.Fields
	// selects reports whether an object belongs to the answer to a list with this selection.
	selects(r stream.Resource, s stream.Selection, listed *Unstructured) bool
	// checkSubresource is an error if the server has no such subresource. likeObject says that it
	// is read or changed as a part of its object, and not created.
	checkSubresource(subresource string, likeObject bool) error

	// own is the answer to a write in memory that belongs to the client.
	own(answer *Unstructured) *Unstructured
	// checkVersion is an error if an object's resource version cannot be compared.
	checkVersion(o *Unstructured) error
	// checkOwner is an error if an object cannot be an owner.
	checkOwner(o *object) error
	// newest is the newest version of an object that streams of a form show, nil if there is none.
	// It has a resource version, so a write can be made conditional on it.
	newest(r stream.Resource, key stream.Key, form stream.Form) stream.Object
	// shown is the metadata of an object as the streams show it, nil if they show that there is no
	// such object. known says that the streams answer for the object.
	shown(o *object) (live Object, known bool)

	// begin returns the context of work that begins with what the client knows now.
	begin(ctx context.Context) context.Context
	// bind returns the options that bind a write to the lease of its context.
	bind(ctx context.Context, op operation, o *object, w writeOptions) (writeOptions, error)
	// possible is a conflict if no object can have what the options ask for.
	possible(op operation, o *object, w writeOptions) error
	// outlived reports whether a deletion failed because the object of that UID is gone.
	outlived(ctx context.Context, o *object, uid types.UID, err error) bool

	// applyError is the error of a server-side apply.
	applyError(err error) error
	// applyOwned applies an object of an owned set. created says that it certainly did not exist
	// before.
	applyOwned(
		ctx context.Context, a *ownedApply, o *object, w writeOptions, live Object,
	) (r reply, created bool, err error)
	// hasManagedFields says that objects show who owns their fields.
	hasManagedFields() bool
}

// address is the place of the object on its server.
func (o *object) address() wire.Address {
	return wire.Address{Resource: o.resource, Namespace: o.GetNamespace(), Name: o.GetName()}
}
