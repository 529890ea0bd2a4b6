package kates

import (
	"context"

	"github.com/kates-go/kates/internal/client/write"
	"github.com/kates-go/kates/internal/loops/fence"
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
// the result. What the server drops is an error: [ErrDropped]. If the kind has no status
// subresource, the error says so, and is the server's: [IsNotFound]. The fake knows this of
// built-in kinds. See [Client.Create] for what holds for every write.
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

// Upsert creates the object that the resource names, or updates it from the source: it adds the
// source's labels and annotations, and replaces each top-level section that the source has
// (spec, data, rules, …, but not the status). See [MergeUpdate]. If the resource is nil, the
// source is the resource. Conflicts with other writers are retried, with backoff, on the newest
// version of the object. If an untyped watch of the client shows that nothing would change, or one
// of the source's Go type, nothing is sent, and the known object is the result. Defaults count: a
// section that the server has filled in is not that of the source. See [Client.Create] for what
// holds for every write.
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
