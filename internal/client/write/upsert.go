package write

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/client/wire"
	objects "github.com/kates-go/kates/internal/object"
)

// upsertBackoff paces the retries of conflicts.
var upsertBackoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: time.Second}

// Upsert creates the object that the resource names, or updates it from the source.
func (c Writer) Upsert(ctx context.Context, resource, source, target any, w Options) error {
	if isNil(resource) {
		resource = source
	}
	from, err := jsonform.ToUnstructured(c.Scheme, source)
	if err != nil {
		return fmt.Errorf("upsert: the source: %w", err)
	}
	return c.send(ctx, OpUpsert, resource, target, w, func(o *core.Subject, w Options) (Reply, error) {
		err := cmp.Or(c.FitsTarget(target, o.Resource.Kind), c.CheckWhole(o, o.Unstructured), c.CheckWhole(o, from))
		if err != nil {
			return Reply{}, err
		}
		o.Unstructured = o.DeepCopy()
		patch.MergeUpdate(o.Unstructured, from)
		if known := c.upserted(o, from, reflect.TypeOf(source), w); known != nil {
			return Reply{Got: known, Unsent: true}, nil
		}
		got, err := c.upsert(ctx, o, from, w)
		if err != nil {
			return Reply{}, err
		}
		return c.Answered(OpUpsert, got), nil
	})
}

// upserted returns the object as the client knows it, if an upsert would change nothing of it. It
// returns nil if something may change, or if the server is to be asked.
func (c Writer) upserted(o *core.Subject, from *unstructured.Unstructured, source reflect.Type, w Options) *unstructured.Unstructured {
	goType, _ := wire.TypeOf(c.Scheme, o.Resource.Kind)
	newest := c.newest(&modification{object: o, options: w, shows: func(o objects.Object) bool {
		// An older Go type lacks fields that the server has, and an untyped source removes.
		return goType != nil && reflect.TypeOf(o) == reflect.PointerTo(goType) && source == reflect.PointerTo(goType)
	}})
	version := o.GetResourceVersion()
	if w.Asks || newest.none() || newest.encode() != nil {
		return nil
	}
	known := newest.object
	if version != "" && version != known.GetResourceVersion() {
		return nil
	}
	is, wanted := known.DeepCopy(), o.DeepCopy() // an object with a version is sent as it is
	if version == "" {
		wanted = known.DeepCopy()
		patch.MergeUpdate(wanted, from)
	}
	is.SetManagedFields(nil) // not each watch has them
	wanted.SetManagedFields(nil)
	if !reflect.DeepEqual(is.Object, wanted.Object) {
		return nil
	}
	return known
}

// upsert sends the object, which the source was merged into.
func (c Writer) upsert(ctx context.Context, o *core.Subject, from *unstructured.Unstructured, w Options) (got *unstructured.Unstructured, err error) {
	next := o.DeepCopy() // the next try; without a version, the server's object is read first
	last := error(nil)
	err = wait.ExponentialBackoffWithContext(ctx, upsertBackoff, func(ctx context.Context) (bool, error) {
		if next.GetResourceVersion() == "" {
			stored, err := c.Get(ctx, core.Bare(o.Resource, o.Key())) // a kind that has moved is found again by Writer.Do
			switch {
			case apierrors.IsNotFound(err) && !core.Misplaced(err):
				fresh := o.DeepCopy()
				fresh.SetUID("")
				fresh.SetResourceVersion("")
				got, last = c.At(o).Create(ctx, fresh, w.ForCreate())
				return retryable(last)
			case err != nil:
				return false, err
			}
			next = stored
			patch.MergeUpdate(next, from)
		}
		got, last = c.At(o).Update(ctx, next, w.ForUpdate())
		next = &unstructured.Unstructured{} // after a failure the next try reads the server's
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
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && !core.Misplaced(err) {
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
