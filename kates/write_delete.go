package kates

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator/stream"
)

// Delete deletes the object that the resource names. The target receives its last state
// where the server answers with it, and is zeroed where it does not.
//
// After Delete snapshots do not show the object, or show it with its deletionTimestamp where
// finalizers or a grace period keep it. What else goes with it (owned objects) comes with the
// watch. See [Client.Create] for what holds for every write, and [IfUID], [IfResourceVersion],
// [Propagation] and [GracePeriod].
func (c *Client) Delete(ctx context.Context, resource, target any, opts ...WriteOption) error {
	return c.send(ctx, opDelete, resource, target, opts, func(o *object, w writeOptions) (reply, error) {
		return c.delete(ctx, o, w)
	})
}

// delete sends the request and reads the answer.
func (c *Client) delete(ctx context.Context, o *object, w writeOptions) (reply, error) {
	options := w.delete()
	d, err := c.core.server.Delete(ctx, o.address(), options)
	switch {
	case err != nil:
		return reply{}, err
	case d.Object != nil:
		return c.answered(opDelete, d.Object, removedBy(options)...), nil
	}
	a := reply{Outcome: stream.Outcome{Unknown: d.Unknown}}
	a.UID = d.UID
	return a, nil
}

// removedBy are the finalizers that a deletion takes off the object. If none is left after that,
// the server deletes it, and answers with the object as it was before: with them.
func removedBy(o metav1.DeleteOptions) []string {
	if p := o.PropagationPolicy; p != nil && *p == metav1.DeletePropagationBackground {
		return []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	}
	return nil
}

// deletesAtOnce is how many objects DeleteAll deletes at a time.
const deletesAtOnce = 10

// DeleteAll deletes every object of a query that the server has when it is called. An empty
// namespace is all namespaces; Name and Optional do not matter. A field that does not narrow the
// query is an error and deletes nothing: a namespace for a cluster-scoped kind, and Refs. The
// options are those of [Client.Delete], for each object ([Propagation], [GracePeriod], [DryRun],
// …); [IfUID] and [IfResourceVersion] are errors.
//
// Each object is deleted on the condition that it still is the one that was listed (its UID). An
// object that somebody puts in its place stays. An object that is already gone counts as deleted.
// An error on one object does not stop the rest: the errors are joined (errors.Is and errors.As
// look into them), and each names its object. When ctx ends, the rest is not tried, and the error
// says how many that are.
//
// Once DeleteAll has returned nil, no later snapshot of this client shows one of the objects,
// except with its deletionTimestamp if finalizers or a grace period keep it (G4), whoever deleted
// it. After an error this holds for the objects that the error does not name.
func (c *Client) DeleteAll(ctx context.Context, query Query, opts ...WriteOption) error {
	w := c.writeOptions(opts)
	if w.uid != nil || w.version != nil {
		return errors.New("delete all: IfUID and IfResourceVersion are about one object")
	}
	if query.Refs != nil {
		return errors.New("delete all: Refs narrow watches alone, so every object would be deleted, referred to or not")
	}
	type listed struct {
		key stream.Key
		uid types.UID
	}
	r, items, err := c.list(ctx, opDeleteAll, query)
	if err != nil {
		return err
	}
	all := make([]listed, len(items)) // the objects may be large, so they are not kept
	for i, u := range items {
		all[i] = listed{stream.Key{Namespace: u.GetNamespace(), Name: u.GetName()}, u.GetUID()}
	}
	failed := make([]error, len(all)+1) // in the order of the list
	var workers sync.WaitGroup
	places := make(chan struct{}, deletesAtOnce)
	for i, l := range all {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			failed[len(all)] = fmt.Errorf("delete all %s: %w, with %d of %d not tried", r.Resource, ctx.Err(), len(all)-i, len(all))
			break
		}
		workers.Go(func() {
			options := w
			if l.uid != "" { // objects of a fake have none
				options.uid = &l.uid
			}
			if err := c.deleteKnown(ctx, opDelete, bare(r, l.key), l.uid, options); !apierrors.IsNotFound(err) {
				failed[i] = err
			}
			<-places
		})
	}
	workers.Wait()
	return errors.Join(failed...)
}

// deleteKnown deletes the object of that UID. If it no longer exists, that is no error; watches may
// still show it, and ask the server for it.
func (c *Client) deleteKnown(ctx context.Context, op operation, o *object, uid types.UID, w writeOptions) error {
	_, err := c.do(ctx, op, o, w, func(o *object, w writeOptions) (reply, error) {
		r, err := c.delete(ctx, o, w)
		if err == nil || !c.core.server.outlived(ctx, o, uid, err) {
			return r, err
		}
		return reply{Outcome: stream.Outcome{Unknown: true}}, nil
	})
	return err
}
