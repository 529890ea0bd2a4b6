package kates

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/applied"
	"github.com/kates-go/kates/internal/jsonform"
	"github.com/kates-go/kates/internal/owners"
)

// applyTries limits how often an object is checked again because another one has taken its name.
const applyTries = 4

// apply applies one object, if that could change it.
func (a *ownedApply) apply(ctx context.Context, w *applied.Wanted) error {
	if known, ok := a.knownUnchanged(ctx, w); ok {
		a.result.Unchanged = append(a.result.Unchanged, referenceOf(w.Resource, known))
		return nil
	}
	if err := a.set.Make(w); err != nil {
		return bare(w.Resource, w.Key).failed(opApply, err)
	}
	o := &object{w.Object, w.Resource}
	live, asked, err := a.live(ctx, o, false)
	for try := 1; ; try++ {
		if err == nil {
			err = a.set.MayApply(live)
		}
		if err != nil {
			return o.failed(opApply, err)
		}
		if asked && live != nil && (a.marked(w, live) || a.holds(ctx, w, live, live)) {
			a.result.Unchanged = append(a.result.Unchanged, referenceOf(o.resource, live))
			return nil
		}
		got, again, failed := a.send(ctx, o, live)
		if failed == nil {
			a.took(w, live, got)
			return nil
		}
		if !again || try == applyTries {
			return failed
		}
		was := live
		if live, asked, err = a.live(ctx, o, true); err != nil || applied.SameObject(was, live) {
			return failed // for another reason
		}
	}
}

// live returns the object as it is now, at least its metadata, nil if there is none. Asked: the
// server was asked for it.
func (a *ownedApply) live(ctx context.Context, o *object, ask bool) (live Object, asked bool, err error) {
	if !ask {
		if live, known := a.client.core.server.shown(o); known {
			return live, false, nil
		}
	}
	got, err := a.client.core.get(ctx, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, true, err
	}
	return got, true, nil
}

// send applies the object. Again: another object may have taken its name, or may exist by now.
func (a *ownedApply) send(ctx context.Context, o *object, live Object) (got *Unstructured, again bool, err error) {
	w, sent := a.options, o.DeepCopy()
	if live == nil {
		w.force = false // if one exists after all, it loses no fields
	} else if uid := live.GetUID(); uid != "" {
		sent.SetUID(uid)
		w.uid = &uid
	}
	var created bool
	put := func(o *object, w writeOptions) (r reply, err error) {
		r, created, err = a.client.core.server.applyOwned(ctx, a, o, w, live)
		return r, err
	}
	got, err = a.client.do(ctx, opApply, &object{sent, o.resource}, w, put)
	if err != nil {
		again = apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err)
		return nil, again, err
	}
	if live == nil && !created && !a.set.Adopt && a.belongedToOthers(ctx, o, got) {
		return nil, false, errors.Join(o.failed(opApply, ErrNotOwned), a.withdraw(ctx, o, got))
	}
	return got, false, nil
}

// belongedToOthers reports whether an object that seemed absent existed before it was applied,
// and did not belong to this set. It asks the server's history, which covers some minutes. If the
// history does not go back that far, this apply has changed nothing: the object was applied long
// ago.
func (a *ownedApply) belongedToOthers(ctx context.Context, o *object, got *Unstructured) bool {
	version, err := strconv.ParseUint(got.GetResourceVersion(), 10, 64)
	var list *unstructured.UnstructuredList
	if err == nil {
		list, err = a.client.core.at(o).List(ctx, metav1.ListOptions{
			FieldSelector:   "metadata.name=" + o.GetName(),
			ResourceVersion: strconv.FormatUint(version-1, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
	}
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return false
	case err != nil: // the managed fields tell who has written to it
		return !onlyBy(got, a.options.fieldManager) || len(got.GetOwnerReferences()) > len(o.GetOwnerReferences())
	}
	return slices.ContainsFunc(list.Items, func(was Unstructured) bool {
		return was.GetUID() == got.GetUID() && !a.set.Ours(&was)
	})
}

// withdraw takes back an apply to an object that somebody else created a moment ago. It was
// applied without force, so none of the other's fields were changed.
func (a *ownedApply) withdraw(ctx context.Context, o *object, got *Unstructured) error {
	empty, uid, w := bare(o.resource, o.key()), got.GetUID(), a.options
	empty.SetUID(uid)
	w.uid, w.force = &uid, false
	_, err := a.client.do(ctx, opWithdraw, empty, w, func(o *object, w writeOptions) (reply, error) {
		r, _, err := a.client.applied(ctx, o, w)
		return r, err
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// applied sends one server-side apply. Created: the object certainly did not exist before.
func (c *Client) applied(ctx context.Context, o *object, w writeOptions) (r reply, created bool, err error) {
	data, err := jsonform.Encode(o.Unstructured)
	if err != nil {
		return reply{}, false, err
	}
	options := w.patch(types.ApplyPatchType)
	got, created, err := c.core.server.Apply(ctx, o.address(), data, options)
	if err != nil {
		return reply{}, false, c.preconditionError(ctx, o, w, types.ApplyPatchType, err)
	}
	return c.answered(opApply, got), created, nil
}

// onlyBy reports whether nobody but the manager has written to an object.
func onlyBy(o *Unstructured, manager string) bool {
	return !slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != manager
	})
}

// merge replaces server-side apply on a fake.
func (a *ownedApply) merge(ctx context.Context, o *object, w writeOptions, live Object) (reply, error) {
	in := a.client.core.at(o)
	there, ok := live.(*Unstructured)
	if !ok {
		got, err := in.Create(ctx, o.Unstructured, w.create())
		if err != nil {
			return reply{}, err
		}
		return a.client.answered(opCreate, got), nil
	}
	next := there.DeepCopy()
	MergeUpdate(next, o.Unstructured)
	next.SetOwnerReferences(there.GetOwnerReferences())
	for _, reference := range o.GetOwnerReferences() {
		owners.Put(next, reference)
	}
	if reflect.DeepEqual(next.Object, there.Object) {
		return reply{object: there, unrelated: true}, nil
	}
	got, err := in.Update(ctx, next, w.update())
	if err != nil {
		return reply{}, err
	}
	return a.client.answered(opUpdate, got), nil
}
