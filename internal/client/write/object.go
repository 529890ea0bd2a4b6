package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/loops/fence"
)

// ManagerOr returns the field manager of an apply: the one that is named, or else the default.
func ManagerOr(named string) string { return cmp.Or(named, "kates") }

// ErrApplyNotSupported is the error of an apply on a fake. Package kates exports it.
var ErrApplyNotSupported = errors.New("server-side apply is not supported by this (fake) client")

// Create creates an object and fills target with what the server made of it.
func (c Writer) Create(ctx context.Context, resource, target any, w Options) error {
	return c.write(ctx, OpCreate, resource, target, w, func(o *core.Subject, w Options) (*unstructured.Unstructured, error) {
		if o.GetName() == "" && o.GetGenerateName() == "" {
			return nil, o.CheckName()
		}
		return c.At(o).Create(ctx, o.Unstructured, w.ForCreate())
	})
}

// Update replaces an object by the resource, and fills target with the result.
func (c Writer) Update(ctx context.Context, resource, target any, w Options) error {
	return c.write(ctx, OpUpdate, resource, target, w, func(o *core.Subject, w Options) (*unstructured.Unstructured, error) {
		return c.update(ctx, OpUpdate, o, o.Unstructured, w)
	})
}

// update replaces an object, or a subresource, by a whole one, with its preconditions.
func (c Writer) update(
	ctx context.Context, op Operation, o *core.Subject, u *unstructured.Unstructured, w Options,
) (*unstructured.Unstructured, error) {
	if err := cmp.Or(c.CheckWhole(o, u), w.precondition(o, u)); err != nil {
		return nil, err
	}
	return c.At(o).Update(ctx, c.stored(op, o.Resource, u), w.ForUpdate(), op.subresources()...)
}

// Patch changes the object that the resource names, and fills target with the result.
func (c Writer) Patch(ctx context.Context, resource any, pt types.PatchType, data []byte, target any, w Options) error {
	return c.write(ctx, OpPatch, resource, target, w, func(o *core.Subject, w Options) (*unstructured.Unstructured, error) {
		return c.patch(ctx, OpPatch, o, pt, data, w)
	})
}

// patch sends a patch of an object, or of a subresource, with its preconditions.
func (c Writer) patch(ctx context.Context, op Operation, o *core.Subject, pt types.PatchType, data []byte, w Options) (*unstructured.Unstructured, error) {
	data, err := w.preconditionPatch(o, pt, data)
	if err != nil {
		return nil, err
	}
	o.Sent = data
	got, err := c.At(o).Patch(ctx, o.GetName(), pt, data, w.patch(pt), op.subresources()...)
	return got, c.patchError(ctx, o, w, pt, err)
}

// Apply sends a server-side apply, and fills target with the result.
func (c Writer) Apply(ctx context.Context, resource, target any, w Options) error {
	return c.write(ctx, OpApply, resource, target, w, func(o *core.Subject, w Options) (*unstructured.Unstructured, error) {
		if o.GetResourceVersion() != "" { // it was read
			if err := c.CheckWhole(o, o.Unstructured); err != nil {
				return nil, err
			}
		}
		o.SetManagedFields(nil)
		if err := w.precondition(o, o.Unstructured); err != nil {
			return nil, err
		}
		if fence.Fenced(ctx) && w.UID == nil {
			o.Plain = nil // there was none: whoever has made one since leads
		}
		r, _, err := c.SendApply(ctx, o, w)
		return r.Got, err
	})
}

// SendApply sends one server-side apply. It is sent with force if nothing but stringData is in the
// way of fields of others. Created: the object certainly did not exist before.
func (c Writer) SendApply(ctx context.Context, o *core.Subject, w Options) (r Reply, created bool, err error) {
	data, err := jsonform.Encode(o.Unstructured)
	if err != nil {
		return Reply{}, false, err
	}
	got, created, err := c.Server.Apply(ctx, o.Address(), data, w.patch(types.ApplyPatchType))
	if !w.Force && overwrites(o.Plain, err) {
		w.Force = true
		got, created, err = c.Server.Apply(ctx, o.Address(), data, w.patch(types.ApplyPatchType))
	}
	if err != nil && c.Fake != nil && !apierrors.IsConflict(err) {
		err = fmt.Errorf("%w: %w", ErrApplyNotSupported, err)
	}
	if err != nil {
		return Reply{}, false, c.patchError(ctx, o, w, types.ApplyPatchType, err)
	}
	return c.Answered(OpApply, got), created, nil
}

// overwrites reports whether an apply fails only for fields of others that were given as
// stringData alone, of these keys: the API says of stringData that it overwrites any existing
// values.
// https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1/
func overwrites(keys []string, err error) bool {
	var status apierrors.APIStatus
	if len(keys) == 0 || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	causes := status.Status().Details.Causes
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool {
		key, inData := strings.CutPrefix(c.Field, ".data.")
		return c.Type != metav1.CauseTypeFieldManagerConflict || !inData || !slices.Contains(keys, key)
	})
}
