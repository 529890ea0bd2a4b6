package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/engine/intake"
	objects "github.com/kates-go/kates/internal/object"
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
	a := reply{Outcome: intake.Outcome{Unknown: d.Unknown}}
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
	if w.wrong != nil {
		return fmt.Errorf("delete all: %w", w.wrong)
	}
	if w.uid != nil || w.version != nil {
		return errors.New("delete all: IfUID and IfResourceVersion are about one object")
	}
	if query.Refs != nil {
		return errors.New("delete all: Refs narrow watches alone, so every object would be deleted, referred to or not")
	}
	type listed struct {
		key objects.Key
		uid types.UID
	}
	r, items, err := c.list(ctx, opDeleteAll, query)
	if err != nil {
		return err
	}
	all := make([]listed, len(items)) // the objects may be large, so they are not kept
	for i, u := range items {
		all[i] = listed{objects.Key{Namespace: u.GetNamespace(), Name: u.GetName()}, u.GetUID()}
	}
	failed := make([]error, len(all)+1) // in the order of the list
	tried := sideBySide(ctx, len(all), func(i int) {
		l, options := all[i], w
		if l.uid != "" { // objects of a fake have none
			options.uid = &l.uid
		}
		if err := c.deleteKnown(ctx, opDelete, bare(r, l.key), l.uid, options); !apierrors.IsNotFound(err) {
			failed[i] = err
		}
	})
	if tried < len(all) {
		failed[len(all)] = fmt.Errorf("delete all %s: %w, with %d of %d not tried", r.Resource, ctx.Err(), len(all)-tried, len(all))
	}
	return errors.Join(failed...)
}

// deleteKnown deletes the object of that UID. If it no longer exists, that is no error; watches
// may still show it, and ask the server for it.
func (c *Client) deleteKnown(ctx context.Context, op operation, o *object, uid types.UID, w writeOptions) error {
	_, err := c.do(ctx, op, o, w, func(o *object, w writeOptions) (reply, error) {
		r, err := c.delete(ctx, o, w)
		if err == nil || !c.core.server.outlived(ctx, o, uid, err) {
			return r, err
		}
		return reply{Outcome: intake.Outcome{Unknown: true}}, nil
	})
	return err
}

// ErrDeleting: the object is being deleted, so the write would be in vain.
var ErrDeleting = applied.ErrDeleting

// AddFinalizer adds a finalizer to the object that the resource names. If the object has it
// already, nothing is sent. Once AddFinalizer has returned nil, the object stays until the
// finalizer is removed, whoever deletes it. So add it before the first effect that has to be
// undone. An object that is being deleted takes no more finalizers: that is [ErrDeleting], and
// nothing is sent. If the resource has a UID, another object of its name is a conflict
// ([IsConflict]) and gets no finalizer.
//
// It changes only the finalizers, starts from the newest known version, and tries again after
// conflicts: see [Modify]. The name has a domain: example.com/dns. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/
func (c *Client) AddFinalizer(ctx context.Context, resource any, finalizer string, opts ...WriteOption) error {
	if err := checkFinalizer(finalizer); err != nil {
		return err
	}
	m := &modification{op: opModify, bound: true, shows: hasMetadata}
	_, err := modify(ctx, c, m, resource, func(u *Unstructured) error {
		switch {
		case slices.Contains(u.GetFinalizers(), finalizer):
			return nil
		case u.GetDeletionTimestamp() != nil:
			return fmt.Errorf("add the finalizer %s to %s: %w", finalizer, jsonform.Describe(u), ErrDeleting)
		}
		u.SetFinalizers(append(slices.Clone(u.GetFinalizers()), finalizer))
		return nil
	}, opts)
	return err
}

// RemoveFinalizer removes a finalizer from the object that the resource names, and leaves the
// others. If the object does not have it, or does not exist, nothing is sent. If the resource has
// a UID, an object of another UID is not that object, and keeps its finalizers. An object that is
// being deleted is gone with its last finalizer, also from every later snapshot. So remove it as
// the last step. For the rest see [Client.AddFinalizer].
func (c *Client) RemoveFinalizer(ctx context.Context, resource any, finalizer string, opts ...WriteOption) error {
	if finalizer == "" {
		return errors.New("a finalizer without a name")
	}
	m := &modification{op: opModify, bound: true, shows: hasMetadata}
	_, err := modify(ctx, c, m, resource, func(u *Unstructured) error {
		kept := slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(f string) bool { return f == finalizer })
		if len(kept) < len(u.GetFinalizers()) {
			u.SetFinalizers(kept)
		}
		return nil
	}, opts)
	if IsNotFound(err) || m.replaced(ctx, c, err) {
		return nil
	}
	return err
}

// UnderFinalizer manages effects that the garbage collector does not undo. It undoes them before
// the object is gone:
//
//	err := kates.UnderFinalizer(ctx, client, app, "example.com/dns",
//	    func(ctx context.Context, app *App) error { return dns.Put(app.Spec.Host) },
//	    func(ctx context.Context, app *App) error { return dns.Remove(app.Spec.Host) })
//
// A living object first gets the finalizer; apply is called only after the server has confirmed
// it. For an object that is being deleted and has the finalizer, cleanup is called. After it has
// returned nil, the finalizer is removed, as the last step. An object that is being deleted
// without the finalizer has no effects (any more), and nothing is done. An object that does not
// exist is no error, and nothing is done. So it may be called in every state of the object, and
// belongs at the start of a reconcile.
//
// The resource names the object. If it has a UID, as an object of a snapshot has, it stands for
// that very object: if another one has its name by now, nothing is done, and there is no error.
// The next snapshot shows the other one. So apply and cleanup may also use the rest of the
// snapshot that the resource is from.
//
// Apply and cleanup get the newest known version of the object in the form T, which is their own
// to write to. No lock is held while they run. Either may be called again, after an error, a
// crash, or for no reason; cleanup may find effects that were never made. Their errors are
// returned as they are, and the finalizer stays. For its name, conflicts and options see
// [Client.AddFinalizer].
//
// Servers may take an object away, finalizer and all, if it gets the finalizer while they delete
// it (https://github.com/kubernetes/kubernetes/issues/77988). Then cleanup is not called. A
// controller that must leave nothing behind undoes its effects when a root has departed, too.
//
// A replica that takes over from another calls [Client.Sync] first: its watches may not have
// brought yet what the other one has cleaned up last.
func UnderFinalizer[T any](ctx context.Context, c *Client, resource any, finalizer string,
	apply, cleanup func(context.Context, *T) error, opts ...WriteOption,
) error {
	if apply == nil || cleanup == nil {
		return errors.New("under a finalizer: a function is nil")
	}
	fits := func(u *Unstructured) error { return c.fits(reflect.TypeFor[T](), u.GroupVersionKind()) }
	m := &modification{op: opModify, bound: true, shows: func(o objects.Object) bool {
		return hasMetadata(o) && reflect.TypeOf(o) == reflect.TypeFor[*T]()
	}}
	got, leaving, err := c.underFinalizer(ctx, m, resource, finalizer, fits, opts)
	do := apply
	switch {
	case IsNotFound(err), err == nil && got == nil && leaving == nil:
		return nil
	case err != nil:
		return err
	case leaving != nil:
		got, do = leaving, cleanup
	}
	view := new(T)
	if err := jsonform.Fill(view, got); err != nil {
		return fmt.Errorf("under the finalizer %s: %w", finalizer, err)
	}
	if err := do(ctx, view); err != nil || leaving == nil {
		return err
	}
	return c.RemoveFinalizer(ctx, leaving, finalizer, opts...)
}

// hasMetadata reports whether an object has all of its metadata.
func hasMetadata(o objects.Object) bool {
	_, some := o.(*objects.Projected)
	return !some
}

// about binds a write to the given object by its UID, if it has one. Objects of a fake have none.
func about(o metav1.Object, opts []WriteOption) []WriteOption {
	if o.GetUID() == "" {
		return opts
	}
	uid := o.GetUID()
	return append([]WriteOption{func(w *writeOptions) { w.uid = &uid }}, opts...)
}

// underFinalizer returns a living object with its finalizer, or one that is leaving and has to be
// cleaned up. It returns neither if there is nothing to do. If the resource has a UID, it returns
// no other object of that name.
func (c *Client) underFinalizer(
	ctx context.Context, m *modification, resource any, finalizer string, fits func(*Unstructured) error, opts []WriteOption,
) (living, leaving *Unstructured, err error) {
	if err := checkFinalizer(finalizer); err != nil {
		return nil, nil, err
	}
	living, err = modify(ctx, c, m, resource, func(u *Unstructured) error {
		if err := fits(u); err != nil {
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
	}, opts)
	if m.replaced(ctx, c, err) {
		return nil, nil, nil
	}
	if err != nil || leaving != nil || living.GetDeletionTimestamp() != nil {
		living = nil
	}
	return living, leaving, err
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
