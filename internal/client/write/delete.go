package write

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/engine/intake"
	objects "github.com/kates-go/kates/internal/object"
)

// Delete deletes the object that the resource names. The target receives its last state.
func (c Writer) Delete(ctx context.Context, resource, target any, w Options) error {
	return c.send(ctx, OpDelete, resource, target, w, func(o *core.Subject, w Options) (Reply, error) {
		return c.delete(ctx, o, w)
	})
}

// delete sends the request and reads the answer.
func (c Writer) delete(ctx context.Context, o *core.Subject, w Options) (Reply, error) {
	options := w.delete()
	d, err := c.Server.Delete(ctx, o.Address(), options)
	switch {
	case err != nil:
		return Reply{}, err
	case d.Object != nil:
		return c.Answered(OpDelete, d.Object, removedBy(options)...), nil
	}
	a := Reply{Outcome: intake.Outcome{Unknown: d.Unknown}}
	a.UID = d.UID
	return a, nil
}

// DeleteAll deletes all objects of a list, each on the condition that it is the one that was
// listed.
func (c Writer) DeleteAll(
	ctx context.Context, w Options, list func() (objects.Resource, []*unstructured.Unstructured, error),
) error {
	if w.Wrong != nil {
		return fmt.Errorf("delete all: %w", w.Wrong)
	}
	if w.UID != nil || w.Version != nil {
		return errors.New("delete all: IfUID and IfResourceVersion are about one object")
	}
	r, items, err := list()
	if err != nil {
		return err
	}
	all := make([]metav1.ObjectMeta, len(items)) // the objects may be large, so they are not kept
	for i, u := range items {
		all[i] = metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID()}
	}
	failed := make([]error, len(all)+1) // in the order of the list
	tried := SideBySide(ctx, len(all), func(i int) {
		o := core.Bare(r, objects.Key{Namespace: all[i].Namespace, Name: all[i].Name})
		if err := c.DeleteKnown(ctx, OpDelete, o, all[i].UID, w.About(&all[i])); !apierrors.IsNotFound(err) {
			failed[i] = err
		}
	})
	if tried < len(all) {
		failed[len(all)] = fmt.Errorf("delete all %s: %w, with %d of %d not tried", r.Resource, ctx.Err(), len(all)-tried, len(all))
	}
	return errors.Join(failed...)
}

// DeleteKnown deletes the object of that UID. If it no longer exists, that is no error; watches
// may still show it, and ask the server for it.
func (c Writer) DeleteKnown(ctx context.Context, op Operation, o *core.Subject, uid types.UID, w Options) error {
	_, err := c.Do(ctx, op, o, w, func(o *core.Subject, w Options) (Reply, error) {
		r, err := c.delete(ctx, o, w)
		if err == nil || !c.outlived(ctx, o, uid, err) {
			return r, err
		}
		return Reply{Outcome: intake.Outcome{Unknown: true}}, nil
	})
	return err
}

// writesAtOnce is how many objects one call writes at the same time.
const writesAtOnce = 10

// SideBySide calls do for 0 to n-1, up to writesAtOnce at the same time, and returns when all have
// returned. Once ctx has ended it begins no other call. It returns how many it has made; they are
// the first ones.
func SideBySide(ctx context.Context, n int, do func(i int)) (called int) {
	if n == 1 && ctx.Err() == nil {
		do(0)
		return 1
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	places := make(chan struct{}, writesAtOnce)
	for ; called < n; called++ {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return called
		}
		i := called
		calls.Go(func() {
			defer func() { <-places }()
			do(i)
		})
	}
	return called
}

// outlived reports whether nothing is left to delete: the object is gone, or another one has its
// name.
func (c Writer) outlived(ctx context.Context, o *core.Subject, uid types.UID, err error) bool {
	switch {
	case c.Fake != nil:
		return false
	case apierrors.IsNotFound(err):
		return !core.Misplaced(err) // a path that is not there says nothing of the object
	case !apierrors.IsConflict(err):
		return false
	}
	return c.Replaced(ctx, o, uid)
}
