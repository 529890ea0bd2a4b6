package kates

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/wire"
	objects "github.com/kates-go/kates/internal/object"
)

// upsertBackoff paces the retries of conflicts.
var upsertBackoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: time.Second}

// Upsert creates the object that the resource names, or updates it from the source: it adds the
// source's labels and annotations, and replaces each top-level section that the source has
// (spec, data, rules, …, but not the status). See [MergeUpdate]. If the resource is nil, the
// source is the resource. Conflicts with other writers are retried, with backoff, on the newest
// version of the object. If an untyped watch of the client shows that nothing would change, or one
// of the source's Go type, nothing is sent, and the known object is the result. Defaults count: a
// section that the server has filled in is not that of the source. See [Client.Create] for what
// holds for every write.
func (c *Client) Upsert(ctx context.Context, resource, source, target any, opts ...WriteOption) error {
	if isNil(resource) {
		resource = source
	}
	from, err := jsonform.ToUnstructured(c.core.scheme, source)
	if err != nil {
		return fmt.Errorf("upsert: the source: %w", err)
	}
	return c.send(ctx, opUpsert, resource, target, opts, func(o *object, w writeOptions) (reply, error) {
		err := cmp.Or(c.fitsTarget(target, o.resource.Kind), c.checkWhole(o, o.Unstructured), c.checkWhole(o, from))
		if err != nil {
			return reply{}, err
		}
		o.Unstructured = o.DeepCopy()
		MergeUpdate(o.Unstructured, from)
		if known := c.upserted(o, from, reflect.TypeOf(source), w); known != nil {
			return reply{object: known, unsent: true}, nil
		}
		got, err := c.upsert(ctx, o, from, w)
		if err != nil {
			return reply{}, err
		}
		return c.answered(opUpsert, got), nil
	})
}

// upserted returns the object as the client knows it, if an upsert would change nothing of it. It
// returns nil if something may change, or if the server is to be asked.
func (c *Client) upserted(o *object, from *Unstructured, source reflect.Type, w writeOptions) *Unstructured {
	goType, _ := wire.TypeOf(c.core.scheme, o.resource.Kind)
	known := c.newest(&modification{object: o, options: w, shows: func(o objects.Object) bool {
		// An older Go type lacks fields that the server has, and an untyped source removes.
		return goType != nil && reflect.TypeOf(o) == reflect.PointerTo(goType) && source == reflect.PointerTo(goType)
	}}).object
	version := o.GetResourceVersion()
	if w.asks || known == nil || version != "" && version != known.GetResourceVersion() {
		return nil
	}
	is, wanted := known.DeepCopy(), o.DeepCopy() // an object with a version is sent as it is
	if version == "" {
		wanted = known.DeepCopy()
		MergeUpdate(wanted, from)
	}
	is.SetManagedFields(nil) // not each watch has them
	wanted.SetManagedFields(nil)
	if !reflect.DeepEqual(is.Object, wanted.Object) {
		return nil
	}
	return known
}

// upsert sends the object, which the source was merged into.
func (c *Client) upsert(ctx context.Context, o *object, from *Unstructured, w writeOptions) (got *Unstructured, err error) {
	next := o.DeepCopy() // the next try; without a version, the server's object is read first
	last := error(nil)
	err = wait.ExponentialBackoffWithContext(ctx, upsertBackoff, func(ctx context.Context) (bool, error) {
		if next.GetResourceVersion() == "" {
			stored, err := c.core.get(ctx, bare(o.resource, o.key())) // a kind that has moved is found again by do
			switch {
			case apierrors.IsNotFound(err) && !misplaced(err):
				fresh := o.DeepCopy()
				fresh.SetUID("")
				fresh.SetResourceVersion("")
				got, last = c.core.at(o).Create(ctx, fresh, w.create())
				return retryable(last)
			case err != nil:
				return false, err
			}
			next = stored
			MergeUpdate(next, from)
		}
		got, last = c.core.at(o).Update(ctx, next, w.update())
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
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && !misplaced(err) {
		return false, nil
	}
	return err == nil, err
}
