package kates

import (
	"context"
	"errors"

	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/write"
	"github.com/kates-go/kates/internal/loops/fence"
	objects "github.com/kates-go/kates/internal/object"
)

// withHorizon returns the context of work that begins with what the client knows now.
func (c *Client) withHorizon(ctx context.Context) context.Context {
	if !fence.Fenced(ctx) {
		return ctx
	}
	return fence.WithHorizon(ctx, &c.core.Core, c.core.Streams.Horizon())
}

// ErrApplyNotSupported is returned by Apply on client-go's bare fake client, which does not
// implement server-side apply.
var ErrApplyNotSupported = write.ErrApplyNotSupported

// Create creates an object and fills target with what the server made of it.
//
// This holds for every write method. The resource is an object of any form (typed, untyped, a
// struct with the right JSON). It is never modified, unless it is the target as well. The
// stringData of a Secret is sent as data. So a field manager owns its keys, and they compare
// with what the server has. The target is nil, a pointer, or a pointer to a pointer, which gets
// a fresh object. It is zeroed before it is filled, and untouched if the write fails. An object
// of a live snapshot is refused ([ErrShared]). Errors of the server keep their type:
// [IsNotFound], [IsConflict], errors.As with *apierrors.StatusError.
//
// Once the method has returned nil, every later snapshot of this client shows the object as it
// was written, or newer. A write whose outcome is unknown (ctx ended, the connection was lost, the
// server answered 5xx) is an error; the watch then tells what happened. The client sends no such
// write again, whatever its Retry-After says, since it might then be stored twice. Only what the
// server has not begun (429) is sent again, when the server says so. A client that was made of a
// dynamic.Interface leaves both to that.
func (c *Client) Create(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.writer().Create(ctx, resource, target, c.writeOptions(opts))
}

// Update replaces an object by the resource, and fills target with the result. If the resource
// has a resource version that is not the newest, it fails with a conflict. See [Client.Create]
// for what holds for every write.
func (c *Client) Update(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.writer().Update(ctx, resource, target, c.writeOptions(opts))
}

// UpdateStatus replaces the status of an object by that of the resource, and fills target with
// the result. It is [Client.UpdateSubresource] of "status". A controller uses [ModifyStatus]. What
// the server drops is an error: [ErrDropped]. If the kind has no status subresource, the error says
// so, and is the server's: [IsNotFound]. The fake knows this of built-in kinds. See [Client.Create]
// for what holds for every write.
func (c *Client) UpdateStatus(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.writer().UpdateStatus(ctx, resource, target, c.writeOptions(opts))
}

// Patch changes the object that the resource names, and fills target with the result. Of the
// resource only kind, namespace and name are used. The data is sent as it is, also stringData of a
// Secret. See [Client.Create] for what holds for every write.
func (c *Client) Patch(ctx context.Context, resource any, pt PatchType, data []byte, target any, opts ...WriteOption) error {
	return c.writer().Patch(ctx, resource, pt, data, target, c.writeOptions(opts))
}

// Apply is server-side apply. The resource holds the fields that the field manager wants to own
// ([WithFieldManager], [FieldManager]; "kates" by default). The server merges them into the
// object, and creates it if it does not exist. Without [ForceOwnership] a field that another
// manager owns with another value is a conflict. The server rejects managedFields, so they are
// left out of the request. The fake client answers [ErrApplyNotSupported]. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/, and [Client.Create] for what
// holds for every write. The keys of a Secret's stringData are written as data, and overwrite the
// values of other managers, as the API says of that field.
func (c *Client) Apply(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.writer().Apply(ctx, resource, target, c.writeOptions(opts))
}

// Upsert creates the object that the resource names, or updates it from the source. If the
// resource is nil, the source is the resource. An update does this:
//
//   - Labels and annotations are merged, the source's win.
//   - Owner references and finalizers are the source's if it has any.
//   - Every other top-level section of the source (spec, data, rules, subjects, …) replaces the
//     object's. Sections that only the object has stay. The stringData of a Secret is data.
//   - apiVersion, kind, status and all other metadata stay the object's.
//
// Conflicts with other writers are retried, with backoff, on the newest version of the object. If
// an untyped watch of the client shows that nothing would change, or one of the source's Go type,
// nothing is sent, and the known object is the result. Defaults count: a section that the server
// has filled in is not that of the source. See [Client.Create] for what holds for every write.
func (c *Client) Upsert(ctx context.Context, resource, source, target any, opts ...WriteOption) error {
	return c.writer().Upsert(ctx, resource, source, target, c.writeOptions(opts))
}

// Observe makes a write that another client made an own write of this one: written
// is the object as the server answered, with its resource version. From then on snapshots show
// it, or something newer. ctx bounds the requests that this may need. If ctx has ended already,
// that is the error, and nothing is noted.
func (c *Client) Observe(ctx context.Context, written any) error {
	return c.writer().Observe(ctx, written)
}

func (c *Client) writer() write.Writer { return write.Writer{Core: &c.core.Core} }

// Modify changes an object with a function: read, change, write, and again if another writer was
// faster. The resource, an object of any form, names the object: kind, namespace and name. T is
// the form in which change sees it: a Go type of that kind and version (another is an error),
// [Unstructured], map[string]any, or any struct with the right JSON.
//
//	_, err := kates.Modify(ctx, client, deployment, func(d *appsv1.Deployment) error {
//	    d.Spec.Replicas = &n
//	    return nil
//	})
//
// It starts from the newest version that the client knows: the answer to an own write, or what a
// watch has brought. The watch holds it untyped and whole, or in the very form T, also if T is a
// struct of the program's own (then without managedFields, unless [WithManagedFields]). If the
// client watches no such object, Modify first reads it from the server; the fake client always
// does. An object that does not exist is [IsNotFound]; see [Client.Upsert].
//
// The object that change gets is its own, to write to and to keep. Change may be called several
// times, each time with a newer object or with one that was read, so it decides by its argument.
// It runs without any lock held. Its error ends Modify and is returned as it is; then nothing has
// been written.
//
// Modify sends a JSON merge patch (RFC 7396) of what change altered, on the condition that it is
// still the same object (UID) at the same version. So fields that T does not know stay. This
// holds for the elements of a list that is sent, too: an unaltered element stays as the server
// has it, and an altered one keeps the fields that T does not know. An element is found by its
// key (name, type, …), or else by its place.
//
// A watch may know no more of the object than T does. If then a list with remaining elements was
// altered, Modify sends a JSON patch (RFC 6902), which names what was altered in the elements. If
// T cannot tell what the patch would meet (an object that is either empty or absent), or if the
// server refuses the patch, Modify reads the object and calls change again. As a rule, a write of
// a status with conditions is one request. Modify never starts from objects that a watch holds
// shortened.
//
// If change alters nothing, nothing is sent, and the known object is returned. With [DryRun],
// [IfUID] or [IfResourceVersion] the server is asked for the object first. An object's
// apiVersion, kind, name, namespace and UID cannot be changed: that is an error. Fields that only
// the server writes (resourceVersion, managedFields, …) are left out. The server ignores changes
// of a status that is a subresource. If that leaves nothing of what change has altered in the
// status, the error is [ErrDropped], and the rest is stored. See [ModifyStatus].
//
// After a conflict Modify waits a little, reads the object from the server, since watches may
// lag, and calls change again. After some twenty tries it returns the conflict ([IsConflict]).
// [IfUID] and [IfResourceVersion] bind it to one object and to one version; then a conflict is
// final. A [DryRun] does all of this but store the result.
//
// It returns the server's answer, which is the caller's own. See [Client.Create] for what holds
// for every write.
func Modify[T any](ctx context.Context, c *Client, resource any, change func(*T) error, opts ...WriteOption) (*T, error) {
	return write.Modify(ctx, c.writer(), resource, change, c.writeOptions(opts))
}

// ModifyStatus is [Modify] for the status of an object, through its status subresource:
//
//	_, err := kates.ModifyStatus(ctx, client, app, func(now *App) error {
//	    now.Status.Replicas = n
//	    return nil
//	})
//
// ModifyStatus sends only the status. It is an error if change alters anything else, since the
// server would ignore it; then nothing is sent. The only writer of a status may assign the whole
// status: now.Status = status. Then the fields that status lacks are removed, except those that T
// does not know. So the status must not be of a copy that holds only some fields ([Keep]), and not
// that of an object of a snapshot that was changed in place, which is wrong anyway: it compares with
// itself, and nothing is sent. Several writers assign the fields that each of them owns.
//
// If the resource has a UID, another object of its name is a conflict ([IsConflict]): a status is
// about one object. A write of a status of which the server drops a part is [ErrDropped]. A kind
// without the subresource is an error that says so. It is not [IsNotFound], which is what the
// server answers.
func ModifyStatus[T any](ctx context.Context, c *Client, resource any, change func(*T) error, opts ...WriteOption) (*T, error) {
	return write.ModifyStatus(ctx, c.writer(), resource, change, c.writeOptions(opts))
}

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
