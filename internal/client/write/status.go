package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
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
	"github.com/kates-go/kates/internal/loops/fence"
	objects "github.com/kates-go/kates/internal/object"
)

// UpdateStatus replaces the status of an object by that of the resource, and fills target with the
// result.
func (c Writer) UpdateStatus(ctx context.Context, resource, target any, w Options) error {
	return c.write(ctx, OpUpdateStatus, resource, target, w, func(o *core.Subject, w Options) (*unstructured.Unstructured, error) {
		if err := cmp.Or(c.CheckWhole(o, o.Unstructured), w.precondition(o, o.Unstructured)); err != nil {
			return nil, err
		}
		u := c.stored(OpUpdateStatus, o.Resource, o.Unstructured)
		return c.At(o).UpdateStatus(ctx, u, w.ForUpdate())
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
	m := &modification{op: OpModifyStatus, shows: shows}
	_, err = modify(ctx, c, m, about, func(u *unstructured.Unstructured) error {
		for _, condition := range stated {
			if _, err := conditions.SetUntyped(u.Object, condition); err != nil {
				return fmt.Errorf("set conditions of %s: %w", jsonform.Describe(u), err)
			}
		}
		return nil
	}, w.About(about))
	return err
}

// SetStatus writes the status of an object, as the object has it.
func SetStatus[T any](ctx context.Context, c Writer, object *T, w Options) (*T, error) {
	if known, ok := any(c.sameStatus(ctx, object, w)).(*T); ok {
		return known, nil
	}
	about, err := c.Untyped(object)
	if err == nil {
		err = jsonform.CheckTarget(new(T))
	}
	given := new(T)
	if err == nil {
		err = jsonform.Fill(given, about)
	}
	if err != nil {
		return nil, fmt.Errorf("set the status: %w", err)
	}
	m := &modification{op: OpSetStatus, replaces: true}
	return modify(ctx, c, m, about, func(now *T) error { return copyStatus(now, given) }, w.About(about))
}

// sameStatus returns a copy of the object as a watch of Go types has it, if that has the same
// status. Otherwise it returns nil, and the two have to be compared as JSON. Encoding both is
// most of the cost of a call that changes nothing; this spares it.
func (c Writer) sameStatus(ctx context.Context, object any, w Options) any {
	given, ok := object.(objects.Object)
	if !ok || reflect.ValueOf(object).IsNil() || given.GetName() == "" || cmp.Or(ctx.Err(), fence.Check(ctx)) != nil {
		return nil
	}
	mapping, err := c.Kinds.GVK(ctx, c.KindOf(given))
	if err != nil {
		return nil
	}
	r, key := c.Resource(ctx, mapping), objects.KeyOf(given)
	if r.Namespaced && key.Namespace == "" {
		key.Namespace = c.Namespace
	}
	typed := func(o objects.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(object) && !objects.IsWhole(o) }
	known := c.Newest(r, key, typed)
	if w.Wrong != nil || w.Asks || known == nil || w.About(given).met(known) != nil {
		return nil // the write says what is wrong, or asks
	}
	if is, ok := statusField(known); ok {
		if want, _ := statusField(given); reflect.DeepEqual(is.Interface(), want.Interface()) {
			return known.DeepCopyObject()
		}
	}
	return nil
}

// statusField returns the Status of an object whose Go type has one.
func statusField(o any) (reflect.Value, bool) {
	v := reflect.ValueOf(o).Elem()
	if v.Kind() != reflect.Struct {
		return v, false
	}
	status := v.FieldByName("Status")
	return status, status.IsValid() && status.CanSet()
}

// copyStatus sets the status of one object to that of another of its type. They may then share
// memory.
func copyStatus(to, from any) error {
	if content, ok := conditions.Untyped(to); ok {
		given, _ := conditions.Untyped(from)
		if status, has := given["status"]; has {
			content["status"] = status
		} else {
			delete(content, "status")
		}
		return nil
	}
	if status, ok := statusField(to); ok {
		status.Set(reflect.ValueOf(from).Elem().FieldByName("Status"))
		return nil
	}
	return fmt.Errorf("set the status: a %T has no Status", to)
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
