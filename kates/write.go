package kates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kates-go/kates/internal/jsonform"
)

const defaultFieldManager = "kates"

// ErrApplyNotSupported is returned by Apply on client-go's bare fake client, which does not
// implement server-side apply.
var ErrApplyNotSupported = errors.New("server-side apply is not supported by this (fake) client")

// Create creates an object and fills target with what the server made of it.
//
// This holds for every write method. The resource is an object of any form (typed, untyped, a
// struct with the right JSON). It is never modified, unless it is the target as well. The target
// is nil, a pointer, or a pointer to a pointer, which gets a fresh object. It is zeroed before it
// is filled, and untouched if the write fails. An object of a live snapshot is refused
// ([ErrShared]). Errors of the server keep their type: [IsNotFound], [IsConflict], errors.As with
// *apierrors.StatusError.
//
// Once the method has returned nil, every later snapshot of this client shows the object as it
// was written, or newer. A write whose outcome is unknown (ctx ended, the connection was lost) is
// an error; the watch then tells what happened.
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
		if err := w.precondition(o, o.Unstructured); err != nil {
			return nil, err
		}
		return c.core.at(o).Update(ctx, o.Unstructured, w.update())
	})
}

// UpdateStatus replaces the status of an object by that of the resource, and fills target with
// the result. What the server drops is an error: [ErrDropped]. If the kind has no status
// subresource, the error says so, and is the server's: [IsNotFound]. See [Client.Create] for what
// holds for every write.
func (c *Client) UpdateStatus(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.write(ctx, opUpdateStatus, resource, target, opts, func(o *object, w writeOptions) (*Unstructured, error) {
		if err := w.precondition(o, o.Unstructured); err != nil {
			return nil, err
		}
		u := c.core.server.stored(opUpdateStatus, o.resource, o.Unstructured)
		return c.core.at(o).UpdateStatus(ctx, u, w.update())
	})
}

// Patch changes the object that the resource names, and fills target with the result. Of the
// resource only kind, namespace and name are used. See [Client.Create] for what holds for every
// write.
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
	got, err := c.core.at(o).Patch(ctx, o.GetName(), pt, data, w.patch(pt), op.subresources()...)
	return got, c.preconditionError(ctx, o, w, pt, err)
}

// Apply is server-side apply. The resource holds the fields that the field manager wants to own
// ([WithFieldManager], [FieldManager]; "kates" by default). The server merges them into the
// object, and creates it if it does not exist. Without [ForceOwnership] a field that another
// manager owns with another value is a conflict. The server rejects managedFields, so they are
// left out of the request. The fake client answers [ErrApplyNotSupported]. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/, and [Client.Create] for what
// holds for every write.
func (c *Client) Apply(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.write(ctx, opApply, resource, target, opts, func(o *object, w writeOptions) (*Unstructured, error) {
		o.SetManagedFields(nil)
		if err := w.precondition(o, o.Unstructured); err != nil {
			return nil, err
		}
		data, err := json.Marshal(o.Unstructured)
		if err != nil {
			return nil, err
		}
		pt := types.ApplyPatchType
		got, err := c.core.at(o).Patch(ctx, o.GetName(), pt, data, w.patch(pt))
		return got, c.preconditionError(ctx, o, w, pt, c.core.server.applyError(err))
	})
}

// upsertBackoff paces the retries of conflicts.
var upsertBackoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: time.Second}

// Upsert creates the object that the resource names, or updates it from the source: it adds the
// source's labels and annotations, and replaces each top-level section that the source has (spec,
// data, stringData, rules, …, but not the status). See [MergeUpdate]. If the resource is nil, the
// source is the resource. Conflicts with other writers are retried, with backoff, on the newest
// version of the object. See [Client.Create] for what holds for every write.
func (c *Client) Upsert(ctx context.Context, resource, source, target any, opts ...WriteOption) error {
	if isNil(resource) {
		resource = source
	}
	from, err := jsonform.ToUnstructured(c.core.scheme, source)
	if err != nil {
		return fmt.Errorf("upsert: the source: %w", err)
	}
	return c.write(ctx, opUpsert, resource, target, opts, func(o *object, w writeOptions) (*Unstructured, error) {
		return c.upsert(ctx, o, from, w)
	})
}

func (c *Client) upsert(ctx context.Context, o *object, from *Unstructured, w writeOptions) (got *Unstructured, err error) {
	in := c.core.at(o)
	o.Unstructured = o.DeepCopy()
	MergeUpdate(o.Unstructured, from)
	next := o.DeepCopy() // the next try; without a version, the server's object is read first
	last := error(nil)
	err = wait.ExponentialBackoffWithContext(ctx, upsertBackoff, func(ctx context.Context) (bool, error) {
		if next.GetResourceVersion() == "" {
			stored, err := c.core.get(ctx, o)
			switch {
			case apierrors.IsNotFound(err):
				fresh := o.DeepCopy()
				fresh.SetUID("")
				fresh.SetResourceVersion("")
				got, last = in.Create(ctx, fresh, w.create())
				return retryable(last)
			case err != nil:
				return false, err
			}
			next = stored
			MergeUpdate(next, from)
		}
		got, last = in.Update(ctx, next, w.update())
		next = &Unstructured{} // after a failure the next try reads the server's
		next.SetGroupVersionKind(o.GroupVersionKind())
		return retryable(last)
	})
	if wait.Interrupted(err) && last != nil && ctx.Err() == nil {
		err = last // out of tries
	}
	return got, err
}

// retryable ends the retries of an upsert, unless another writer was faster.
func retryable(err error) (bool, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
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
