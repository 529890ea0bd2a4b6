package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/conditions"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/client/wire"
	objects "github.com/kates-go/kates/internal/object"
)

// UpdateStatus replaces the status of an object by that of the resource, and fills target with the
// result.
func (c Writer) UpdateStatus(ctx context.Context, resource, target any, w Options) error {
	return c.write(ctx, OpUpdateStatus, resource, target, w, func(o *core.Subject, w Options) (*unstructured.Unstructured, error) {
		return c.update(ctx, OpUpdateStatus, o, o.Unstructured, w)
	})
}

// ErrDropped is the error of a write of a status that is not stored as a whole. Package kates
// exports it.
var ErrDropped = errors.New("the server has dropped a part of the status")

// SetConditions writes conditions into the status of the object, and leaves the others.
func (c Writer) SetConditions(ctx context.Context, object any, set []metav1.Condition, w Options) error {
	about, err := c.Untyped(object)
	if err == nil {
		err = conditions.Check(set...)
	}
	if err != nil {
		return fmt.Errorf("set conditions: %w", err)
	}
	stated := slices.Clone(set)
	t, known := wire.TypeOf(c.Scheme, about.GroupVersionKind())
	observe := !known || conditions.Observe(t)
	for i := range stated {
		if stated[i].ObservedGeneration == 0 && observe {
			stated[i].ObservedGeneration = about.GetGeneration()
		}
	}
	shows := func(o objects.Object) bool { return conditions.Shown(held(o), stated) }
	m := &modification{op: OpModifyStatus, bound: true, shows: shows}
	_, err = modify(ctx, c, m, about, func(u *unstructured.Unstructured) error {
		for _, condition := range stated {
			if _, err := conditions.SetUntyped(u.Object, condition); err != nil {
				return fmt.Errorf("set conditions of %s: %w", jsonform.Describe(u), err)
			}
		}
		return nil
	}, w)
	return err
}

// dropped returns an error if an operation has written a status, and the answer lacks a part of
// what was written. Before is nil if the whole status was written.
func dropped(op Operation, before, after, answer *unstructured.Unstructured) error {
	if op.subresource != statusSubresource {
		return nil
	}
	status := func(u *unstructured.Unstructured) map[string]any {
		if u == nil || u.Object["status"] == nil {
			return nil
		}
		return map[string]any{"status": u.Object["status"]}
	}
	if fields := patch.Dropped(status(before), status(after), status(answer)); fields != nil {
		return fmt.Errorf("%w: %s", ErrDropped, strings.Join(fields, ", "))
	}
	return nil
}

// stored is what is sent to have an object stored: for a fake without what a server would drop of
// its status.
func (c Writer) stored(op Operation, r objects.Resource, o *unstructured.Unstructured) *unstructured.Unstructured {
	if c.Fake == nil || op.subresource != statusSubresource {
		return o
	}
	return fake.Stored(r.Kind, o)
}
