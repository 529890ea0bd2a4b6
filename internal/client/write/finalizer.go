package write

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/applied"
	objects "github.com/kates-go/kates/internal/object"
)

// AddFinalizer adds a finalizer to the object that the resource names, unless it is being deleted.
func (c Writer) AddFinalizer(ctx context.Context, resource any, finalizer string, w Options) error {
	if err := checkFinalizer(finalizer); err != nil {
		return err
	}
	m := &modification{op: OpModify, bound: true, shows: hasMetadata}
	_, err := modify(ctx, c, m, resource, func(u *unstructured.Unstructured) error {
		switch {
		case slices.Contains(u.GetFinalizers(), finalizer):
			return nil
		case u.GetDeletionTimestamp() != nil:
			return fmt.Errorf("add the finalizer %s to %s: %w", finalizer, jsonform.Describe(u), applied.ErrDeleting)
		}
		u.SetFinalizers(append(slices.Clone(u.GetFinalizers()), finalizer))
		return nil
	}, w)
	return err
}

// RemoveFinalizer removes a finalizer from the object that the resource names, if it is there.
func (c Writer) RemoveFinalizer(ctx context.Context, resource any, finalizer string, w Options) error {
	if finalizer == "" {
		return errors.New("a finalizer without a name")
	}
	m := &modification{op: OpModify, bound: true, shows: hasMetadata}
	_, err := modify(ctx, c, m, resource, func(u *unstructured.Unstructured) error {
		kept := slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(f string) bool { return f == finalizer })
		if len(kept) < len(u.GetFinalizers()) {
			u.SetFinalizers(kept)
		}
		return nil
	}, w)
	if apierrors.IsNotFound(err) || m.replaced(ctx, c, err) {
		return nil
	}
	return err
}

// UnderFinalizer calls apply for a living object that has the finalizer, and cleanup for one that
// is being deleted and has it.
func UnderFinalizer[T any](ctx context.Context, c Writer, resource any, finalizer string,
	apply, cleanup func(context.Context, *T) error, w Options,
) error {
	if apply == nil || cleanup == nil {
		return errors.New("under a finalizer: a function is nil")
	}
	if err := checkFinalizer(finalizer); err != nil {
		return err
	}
	var leaving *unstructured.Unstructured // it has to be cleaned up
	m := &modification{op: OpModify, bound: true, shows: func(o objects.Object) bool {
		return hasMetadata(o) && reflect.TypeOf(o) == reflect.TypeFor[*T]()
	}}
	got, err := modify(ctx, c, m, resource, func(u *unstructured.Unstructured) error {
		if err := c.Fits(reflect.TypeFor[T](), u.GroupVersionKind()); err != nil {
			return fmt.Errorf("under the finalizer %s: %w", finalizer, err)
		}
		leaving = nil // another try
		has := slices.Contains(u.GetFinalizers(), finalizer)
		switch {
		case u.GetDeletionTimestamp() != nil && has:
			leaving = u.DeepCopy()
		case u.GetDeletionTimestamp() == nil && !has:
			u.SetFinalizers(append(slices.Clone(u.GetFinalizers()), finalizer))
		}
		return nil
	}, w)
	do := apply
	switch {
	case apierrors.IsNotFound(err), m.replaced(ctx, c, err):
		return nil // another object of that name is not the one that was given
	case err != nil:
		return err
	case leaving != nil:
		got, do = leaving, cleanup
	case got.GetDeletionTimestamp() != nil:
		return nil
	}
	view := new(T)
	if err := jsonform.Fill(view, got); err != nil {
		return fmt.Errorf("under the finalizer %s: %w", finalizer, err)
	}
	if err := do(ctx, view); err != nil || leaving == nil {
		return err
	}
	return c.RemoveFinalizer(ctx, leaving, finalizer, w)
}

// hasMetadata reports whether an object has all of its metadata.
func hasMetadata(o objects.Object) bool {
	_, some := o.(*objects.Projected)
	return !some
}

// checkFinalizer returns an error for a name that the server rejects or warns about.
func checkFinalizer(name string) error {
	problems := validation.IsQualifiedName(name)
	if len(problems) == 0 && !strings.Contains(name, "/") {
		problems = []string{"it has no domain, as in example.com/dns"}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%q is not the name of a finalizer: %s", name, strings.Join(problems, "; "))
	}
	return nil
}
