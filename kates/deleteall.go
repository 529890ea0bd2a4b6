package kates

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/accumulator/stream"
)

// deletesAtOnce is how many objects DeleteAll deletes at the same time.
const deletesAtOnce = 10

// DeleteAll deletes every object of a query: those that the server has when it is called. An empty
// namespace is all namespaces; Name and Optional do not matter. What would not narrow the query, though it says so, is an error
// and deletes nothing: a namespace for a kind that is in none, and Refs. The options are those of
// [Client.Delete], for each object ([Propagation], [GracePeriod], [DryRun], …); [IfUID] and
// [IfResourceVersion] are errors.
//
// Each object is deleted by itself, on the condition that it still is the one that was listed (its
// UID): what somebody puts in its place stays. An object that is gone already is as good as
// deleted. One that cannot be deleted does not keep the others: the error joins what went
// wrong (errors.Is and errors.As look into it), and each part names its object. When ctx ends, what
// is left is not tried, and the error says how many.
//
// Once DeleteAll has returned nil, no later snapshot of this client shows one of the objects,
// unless with its deletionTimestamp, where finalizers or a grace period keep it (G4), whoever
// deleted it. After an error that holds for those that the error does not name.
func (c *Client) DeleteAll(ctx context.Context, query Query, opts ...WriteOption) error {
	w := c.writeOptions(opts)
	if w.uid != nil || w.version != nil {
		return errors.New("delete all: IfUID and IfResourceVersion are about one object")
	}
	if query.Refs != nil {
		return errors.New("delete all: Refs narrow watches alone, so every object would be deleted, referred to or not")
	}
	type listed struct {
		key accumulator.Key
		uid types.UID
	}
	r, items, err := c.list(ctx, opDeleteAll, query)
	if err != nil {
		return err
	}
	if !r.Namespaced && (query.Namespace != "" || query.Namespaces != nil) {
		return fmt.Errorf("delete all: %s are in no namespace, so all of them would be deleted: leave the namespace out for that", r.Resource)
	}
	all := make([]listed, len(items)) // and not the objects, which may be large
	for i, u := range items {
		all[i] = listed{accumulator.Key{Namespace: u.GetNamespace(), Name: u.GetName()}, u.GetUID()}
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
			failed[i] = c.deleteListed(ctx, r, l.key, l.uid, w)
			<-places
		})
	}
	workers.Wait()
	return errors.Join(failed...)
}

// deleteListed deletes an object that was listed. Where that object is not there any more, what the
// watches show may be older: they are settled.
func (c *Client) deleteListed(ctx context.Context, r accumulator.Resource, key accumulator.Key, uid types.UID, w writeOptions) error {
	o := &object{&Unstructured{}, r}
	o.SetGroupVersionKind(r.Kind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	if uid != "" {
		w.uid = &uid
	}
	_, err := c.do(ctx, opDelete, o, w, func(o *object, w writeOptions) (reply, error) {
		a, err := c.delete(ctx, o, w)
		if err == nil || !c.core.server.outlived(ctx, o, uid, err) {
			return a, err
		}
		return reply{Outcome: stream.Outcome{Unknown: true}}, nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
