package kates

import (
	"context"
	"errors"

	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/write"
	objects "github.com/kates-go/kates/internal/object"
)

// ErrDeleting: the object is being deleted, so the write would be in vain.
var ErrDeleting = applied.ErrDeleting

// Delete deletes the object that the resource names. The target receives its last state
// where the server answers with it, and is zeroed where it does not.
//
// After Delete snapshots do not show the object, or show it with its deletionTimestamp where
// finalizers or a grace period keep it. What else goes with it (owned objects) comes with the
// watch. See [Client.Create] for what holds for every write, and [IfUID], [IfResourceVersion],
// [Propagation] and [GracePeriod].
func (c *Client) Delete(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.writer().Delete(ctx, resource, target, c.writeOptions(opts))
}

// DeleteAll deletes every object of a query that the server has when it is called. An empty
// namespace is all namespaces; Name and Optional do not matter. A field that does not narrow the
// query is an error and deletes nothing: a namespace for a cluster-scoped kind, and Refs. The
// options are those of [Client.Delete], for each object ([Propagation], [GracePeriod], [DryRun],
// …); [IfUID] and [IfResourceVersion] are errors.
//
// Each object is deleted on the condition that it still is the one that was listed (its UID). An
// object that somebody puts in its place stays. An object that is already gone counts as deleted.
// An error on one object does not stop the rest: the errors are joined (errors.Is and errors.As
// look into them), and each names its object. When ctx ends, the rest is not tried, and the error
// says how many that are.
//
// Once DeleteAll has returned nil, no later snapshot of this client shows one of the objects,
// except with its deletionTimestamp if finalizers or a grace period keep it (G4), whoever deleted
// it. After an error this holds for the objects that the error does not name.
func (c *Client) DeleteAll(ctx context.Context, query Query, opts ...WriteOption) error {
	return c.writer().DeleteAll(ctx, c.writeOptions(opts), func() (objects.Resource, []*Unstructured, error) {
		if query.Refs != nil {
			return objects.Resource{}, nil, errors.New("delete all: Refs narrow watches alone, so every object would be deleted, referred to or not")
		}
		return c.compiler().List(ctx, write.OpDeleteAll, query.wanted())
	})
}

// AddFinalizer adds a finalizer to the object that the resource names. If the object has it
// already, nothing is sent. Once AddFinalizer has returned nil, the object stays until the
// finalizer is removed, whoever deletes it. So add it before the first effect that has to be
// undone. An object that is being deleted takes no more finalizers: that is [ErrDeleting], and
// nothing is sent. If the resource has a UID, another object of its name is a conflict
// ([IsConflict]) and gets no finalizer.
//
// It changes only the finalizers, starts from the newest known version, and tries again after
// conflicts: see [Modify]. The name has a domain: example.com/dns. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/
func (c *Client) AddFinalizer(ctx context.Context, resource any, finalizer string, opts ...WriteOption) error {
	return c.writer().AddFinalizer(ctx, resource, finalizer, c.writeOptions(opts))
}

// RemoveFinalizer removes a finalizer from the object that the resource names, and leaves the
// others. If the object does not have it, or does not exist, nothing is sent. If the resource has
// a UID, an object of another UID is not that object, and keeps its finalizers. An object that is
// being deleted is gone with its last finalizer, also from every later snapshot. So remove it as
// the last step. For the rest see [Client.AddFinalizer].
func (c *Client) RemoveFinalizer(ctx context.Context, resource any, finalizer string, opts ...WriteOption) error {
	return c.writer().RemoveFinalizer(ctx, resource, finalizer, c.writeOptions(opts))
}

// UnderFinalizer manages effects that the garbage collector does not undo. It undoes them before
// the object is gone:
//
//	err := kates.UnderFinalizer(ctx, client, app, "example.com/dns",
//	    func(ctx context.Context, app *App) error { return dns.Put(app.Spec.Host) },
//	    func(ctx context.Context, app *App) error { return dns.Remove(app.Spec.Host) })
//
// A living object first gets the finalizer; apply is called only after the server has confirmed
// it. For an object that is being deleted and has the finalizer, cleanup is called. After it has
// returned nil, the finalizer is removed, as the last step. An object that is being deleted
// without the finalizer has no effects (any more), and nothing is done. An object that does not
// exist is no error, and nothing is done. So it may be called in every state of the object, and
// belongs at the start of a reconcile.
//
// The resource names the object. If it has a UID, as an object of a snapshot has, it stands for
// that very object: if another one has its name by now, nothing is done, and there is no error.
// The next snapshot shows the other one. So apply and cleanup may also use the rest of the
// snapshot that the resource is from.
//
// Apply and cleanup get the newest known version of the object in the form T, which is their own
// to write to. No lock is held while they run. Either may be called again, after an error, a
// crash, or for no reason; cleanup may find effects that were never made. Their errors are
// returned as they are, and the finalizer stays. For its name, conflicts and options see
// [Client.AddFinalizer].
//
// Servers may take an object away, finalizer and all, if it gets the finalizer while they delete
// it (https://github.com/kubernetes/kubernetes/issues/77988). Then cleanup is not called. A
// controller that must leave nothing behind undoes its effects when a root has departed, too.
//
// A replica that takes over from another calls [Client.Sync] first: its watches may not have
// brought yet what the other one has cleaned up last.
func UnderFinalizer[T any](ctx context.Context, c *Client, resource any, finalizer string,
	apply, cleanup func(context.Context, *T) error, opts ...WriteOption,
) error {
	return write.UnderFinalizer(ctx, c.writer(), resource, finalizer, apply, cleanup, c.writeOptions(opts))
}
