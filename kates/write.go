package kates

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/loops/fence"
	objects "github.com/kates-go/kates/internal/object"
)

// managerOr returns the field manager of an apply: the one that is named, or else the default.
func managerOr(named string) string { return cmp.Or(named, "kates") }

// ErrApplyNotSupported is returned by Apply on client-go's bare fake client, which does not
// implement server-side apply.
var ErrApplyNotSupported = errors.New("server-side apply is not supported by this (fake) client")

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
	return c.write(ctx, opCreate, resource, target, opts, func(o *object, w writeOptions) (*Unstructured, error) {
		if o.GetName() == "" && o.GetGenerateName() == "" {
			return nil, o.named()
		}
		return c.core.at(o).Create(ctx, o.Unstructured, w.create())
	})
}

// Update replaces an object by the resource, and fills target with the result. If the resource
// has a resource version that is not the newest, it fails with a conflict. See [Client.Create]
// for what holds for every write.
func (c *Client) Update(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.write(ctx, opUpdate, resource, target, opts, func(o *object, w writeOptions) (*Unstructured, error) {
		if err := cmp.Or(c.checkWhole(o, o.Unstructured), w.precondition(o, o.Unstructured)); err != nil {
			return nil, err
		}
		return c.core.at(o).Update(ctx, o.Unstructured, w.update())
	})
}

// UpdateStatus replaces the status of an object by that of the resource, and fills target with
// the result. What the server drops is an error: [ErrDropped]. If the kind has no status
// subresource, the error says so, and is the server's: [IsNotFound]. The fake knows this of
// built-in kinds. See [Client.Create] for what holds for every write.
func (c *Client) UpdateStatus(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.write(ctx, opUpdateStatus, resource, target, opts, func(o *object, w writeOptions) (*Unstructured, error) {
		if err := cmp.Or(c.checkWhole(o, o.Unstructured), w.precondition(o, o.Unstructured)); err != nil {
			return nil, err
		}
		u := c.core.server.stored(opUpdateStatus, o.resource, o.Unstructured)
		return c.core.at(o).UpdateStatus(ctx, u, w.update())
	})
}

// Patch changes the object that the resource names, and fills target with the result. Of the
// resource only kind, namespace and name are used. The data is sent as it is, also stringData of a
// Secret. See [Client.Create] for what holds for every write.
func (c *Client) Patch(ctx context.Context, resource any, pt PatchType, data []byte, target any, opts ...WriteOption) error {
	return c.write(ctx, opPatch, resource, target, opts, func(o *object, w writeOptions) (*Unstructured, error) {
		return c.patch(ctx, opPatch, o, pt, data, w)
	})
}

// patch sends a patch of an object, or of a subresource, with its preconditions.
func (c *Client) patch(ctx context.Context, op operation, o *object, pt PatchType, data []byte, w writeOptions) (*Unstructured, error) {
	data, err := w.preconditionPatch(o, pt, data)
	if err != nil {
		return nil, err
	}
	o.sent = data
	got, err := c.core.at(o).Patch(ctx, o.GetName(), pt, data, w.patch(pt), op.subresources()...)
	return got, c.patchError(ctx, o, w, pt, err)
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
	return c.write(ctx, opApply, resource, target, opts, func(o *object, w writeOptions) (*Unstructured, error) {
		if o.GetResourceVersion() != "" { // it was read
			if err := c.checkWhole(o, o.Unstructured); err != nil {
				return nil, err
			}
		}
		o.SetManagedFields(nil)
		if err := w.precondition(o, o.Unstructured); err != nil {
			return nil, err
		}
		data, err := json.Marshal(o.Unstructured)
		if err != nil {
			return nil, err
		}
		if fence.Fenced(ctx) && w.uid == nil {
			o.plain = nil // there was none: whoever has made one since leads
		}
		pt := types.ApplyPatchType
		var got *Unstructured
		err = o.overwriting(w, func(w writeOptions) (err error) {
			got, err = c.core.at(o).Patch(ctx, o.GetName(), pt, data, w.patch(pt))
			return err
		})
		return got, c.patchError(ctx, o, w, pt, c.core.server.applyError(err))
	})
}

// isNil reports whether v is nil, or a nil pointer or map in an interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return r.IsNil()
	}
	return false
}

// reply is the server's answer to a write, and what the answer tells about the object.
type reply struct {
	object *Unstructured // for the target; nil if the answer has none
	intake.Outcome
	// wrote is what was sent for a whole status, or a part of it; nil: the answer does not tell
	// whether anything was dropped.
	wrote *Unstructured
	// unrelated says that the write did not change the object that it was addressed to, and unsent
	// that nothing was sent, because nothing would change.
	unrelated, unsent bool
	past              bool // another client has written it, at some time
}

// request is the one request of a write, or several.
type request func(*object, writeOptions) (reply, error)

// write is send for requests whose answer is the object that was written.
func (c *Client) write(ctx context.Context, op operation, resource, target any, opts []WriteOption,
	send func(*object, writeOptions) (*Unstructured, error),
) error {
	return c.send(ctx, op, resource, target, opts, func(o *object, w writeOptions) (reply, error) {
		if err := c.fitsTarget(target, o.resource.Kind); err != nil {
			return reply{}, err // an error must not come after the write
		}
		got, err := send(o, w)
		if err != nil {
			return reply{}, err
		}
		answer := c.answered(op, got)
		if op == opUpdateStatus {
			answer.wrote = o.Unstructured
		}
		return answer, nil
	})
}

// answered reads an answer that is the object as it was written. For removed see written. A reactor
// of a fake may answer with nothing.
func (c *Client) answered(op operation, got *Unstructured, removed ...string) reply {
	if got == nil {
		return reply{unrelated: true}
	}
	return reply{object: got, Outcome: intake.Outcome{Write: written(op, got, removed...)}}
}

// send does what all writes have in common: it reads the caller's value, sends the request, makes
// the answer an own write, and fills the target.
func (c *Client) send(ctx context.Context, op operation, resource, target any, opts []WriteOption, r request) error {
	if err := c.checkTarget(target); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	o, err := c.object(ctx, resource)
	if err == nil {
		o.Object, o.plain = patch.WithoutStringData(o.resource.Kind, o.Object)
		if op != opCreate {
			err = o.named()
		}
	}
	w := c.writeOptions(opts)
	if err = cmp.Or(err, w.wrong, fence.Check(ctx), ctx.Err()); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	var wrote *Unstructured
	got, err := c.do(ctx, op, o, w, func(o *object, w writeOptions) (reply, error) {
		answer, err := r(o, w)
		wrote = answer.wrote
		return answer, c.missing(ctx, op, o, err)
	})
	if err != nil {
		return err
	}
	if err := dropped(op, nil, wrote, got); err != nil {
		return o.failed(op, err)
	}
	return jsonform.Fill(target, got)
}

// missing says of an error that the kind has no such subresource, if that is the reason: the
// server answers "not found", as for an object that is gone.
func (c *Client) missing(ctx context.Context, op operation, o *object, err error) error {
	if op.subresource == "" || op.verb == toCreate || !apierrors.IsNotFound(err) {
		return err
	}
	if !c.lacks(ctx, op, o, o.GetUID()) {
		return err
	}
	return fmt.Errorf("%w: %w", errNoSubresource(op), err)
}

// lacks reports whether a kind has no such subresource, after the server has answered "not found".
// The object of that UID, or of any if that is empty, is there nonetheless; if the server does not
// say whether it is, because the client may not get it, discovery tells.
func (c *Client) lacks(ctx context.Context, op operation, o *object, uid types.UID) bool {
	now, err := c.core.get(ctx, bare(o.resource, o.key()))
	switch {
	case err == nil:
		return uid == "" || now.GetUID() == uid
	case apierrors.IsNotFound(err):
		return false
	}
	return c.core.kinds.LacksSubresource(ctx, o.resource.GroupVersionResource, op.subresource)
}

func errNoSubresource(op operation) error {
	return fmt.Errorf("its kind has no %s subresource", op.subresource)
}

// do sends a request, unless ctx or the lease is over, and makes its answer an own write. It holds
// no lock meanwhile.
func (c *Client) do(ctx context.Context, op operation, o *object, w writeOptions, r request) (*Unstructured, error) {
	err := fence.Check(ctx)
	if err == nil {
		w, err = c.core.server.bind(ctx, op, o, w)
	}
	if err == nil {
		err = c.core.server.possible(op, o, w)
	}
	if err != nil {
		return nil, o.failed(op, err)
	}
	begun, a, err := c.request(ctx, op, o, w, r)
	if c.core.moved(ctx, o, err) {
		begun, a, err = c.request(ctx, op, o, w, r)
	}
	switch {
	case err != nil:
		return nil, o.failed(op, err)
	case w.dryRun != nil || a.unrelated || a.unsent:
		begun.Abandon()
	default:
		if coherence.Comparable(a.Version) {
			fence.HorizonOf(ctx, c.core).Wrote(o.stored(), a.Version) // for later writes of the same work
		}
		c.commit(ctx, begun, o, a.Outcome)
	}
	return a.object, nil
}

// request sends the request of a write, which is under way until it is committed or abandoned. On
// an error it is abandoned.
func (c *Client) request(
	ctx context.Context, op operation, o *object, w writeOptions, r request,
) (begun *stream.Write, a reply, err error) {
	begun, answered := c.core.streams.Begin(o.resource, o.key()), c.core.server.begin(o)
	returned := false
	defer func() {
		if !returned { // r has panicked, as a reactor of a fake may
			answered(nil)
		}
	}()
	a, err = r(o, w)
	returned = true
	if !a.unsent {
		c.logWrite(ctx, op, o, w, a, err) // as the server has answered
	}
	if err == nil && w.dryRun == nil {
		answered(&a)
	} else {
		answered(nil)
	}
	if err != nil {
		begun.Abandon()
	}
	return begun, a, err
}

// commit makes a write that has succeeded an own write.
func (c *Client) commit(ctx context.Context, begun *stream.Write, o *object, out intake.Outcome) {
	if out.Key.Name == "" {
		out.Key = o.key()
	}
	if err := begun.Commit(ctx, out); err != nil {
		// The write has succeeded: this is no error of the write.
		c.core.log.Info("own write not settled, the watch will bring it", "object", o.String(), "err", err)
	}
}

// errUnseen is the reason for a conflict.
var errUnseen = errors.New("it has been changed since this work began")

// begin returns the context of work that begins with what the client knows now.
func (c *Client) begin(ctx context.Context) context.Context {
	if !fence.Fenced(ctx) {
		return ctx
	}
	return fence.WithHorizon(ctx, c.core, c.core.streams.Horizon())
}

// written reads the server's answer to a write: is the object present, terminating, or gone? The
// answers of all writes are read here, and only here.
//
//   - gone: a DELETE answered by a Status, or by the object without a
//     deletionTimestamp; or any write answered by an object with a deletionTimestamp
//     that nothing keeps any more (no finalizers but those that the write removed, no grace).
//   - terminating: it has a deletionTimestamp and something keeps it. It is there.
//   - present: everything else.
//
// A DELETE that ends a terminating object answers with the deletion's version. A
// write that removes the last finalizer answers with the object's old version, so
// that version says nothing, and the deletion's is unknown.
func written(op operation, answer *Unstructured, removed ...string) coherence.Write {
	w := coherence.Write{
		Key: objects.Key{Namespace: answer.GetNamespace(), Name: answer.GetName()},
		UID: answer.GetUID(),
	}
	deleted := answer.GetDeletionTimestamp() != nil
	switch {
	case op == opDelete && !deleted:
	case deleted && !kept(answer, removed...):
		if op == opDelete {
			w.Version = answer.GetResourceVersion()
		}
	default:
		w.Version, w.Object = answer.GetResourceVersion(), answer
	}
	return w
}

// kept reports whether something keeps a terminating object: a finalizer that was not removed, a
// namespace's own finalizer, or a grace period.
func kept(u *Unstructured, removed ...string) bool {
	for _, f := range u.GetFinalizers() {
		if !slices.Contains(removed, f) {
			return true
		}
	}
	if grace := u.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		return true
	}
	if u.GetKind() == "Namespace" && u.GetAPIVersion() == "v1" {
		own, _, _ := unstructured.NestedSlice(u.Object, "spec", "finalizers")
		return len(own) > 0
	}
	return false
}

// Observe makes a write that another client made an own write of this one: written
// is the object as the server answered, with its resource version. From then on snapshots show
// it, or something newer. ctx bounds the requests that this may need. If ctx has ended already,
// that is the error, and nothing is noted.
func (c *Client) Observe(ctx context.Context, written any) error {
	o, err := c.object(ctx, written)
	if err == nil {
		err = o.named()
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return fmt.Errorf("%s: %w", opObserve, err)
	}
	if err := c.core.server.checkVersion(o.Unstructured); err != nil {
		return o.failed(opObserve, err)
	}
	begun, answered := c.core.streams.Begin(o.resource, o.key()), c.core.server.begin(o)
	a := c.answered(opObserve, o.Unstructured)
	a.past = true
	answered(&a)
	c.commit(ctx, begun, o, a.Outcome)
	return nil
}

var errNoVersion = errors.New("no usable resource version")
