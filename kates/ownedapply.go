package kates

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/jsonform"
)

// applyTries is how often an object is judged anew because it has become another one meanwhile.
const applyTries = 4

// apply makes one object what it is to be.
func (a *ownedApply) apply(ctx context.Context, w *wanted) error {
	if known, ok := a.knownUnchanged(ctx, w); ok {
		a.result.Unchanged = append(a.result.Unchanged, referenceOf(w.resource, known))
		return nil
	}
	if err := a.make(w); err != nil {
		return w.failed("apply", err)
	}
	o := w.object
	live, asked, err := a.live(ctx, o, a.client.core.fake)
	for try := 1; ; try++ {
		if err == nil {
			err = a.mayApply(live)
		}
		if err != nil {
			return o.failed("apply", err)
		}
		if asked && live != nil && (a.client.core.applied.at(w, a.options.fieldManager, live) || a.holds(ctx, w, live, live)) {
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
		if live, asked, err = a.live(ctx, o, true); err != nil || sameObject(was, live) {
			return failed // it was not that
		}
	}
}

// live is the object as it is now, nil if there is none; of its metadata at least. Asked says that the
// server was.
func (a *ownedApply) live(ctx context.Context, o *object, ask bool) (live Object, asked bool, err error) {
	if !ask {
		known, ok := a.client.core.streams.Lookup(o.resource, o.key(), accumulator.Meta)
		if ok && known == nil {
			return nil, false, nil
		} else if ok {
			return known, false, nil
		}
	}
	got, err := a.client.in(o.resource, o.GetNamespace()).Get(ctx, o.GetName(), getOptions)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, true, err
	}
	return got, true, nil
}

// sameObject reports whether nothing has changed that an object is judged by.
func sameObject(a, b Object) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.GetUID() == b.GetUID() && (a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		reflect.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) && reflect.DeepEqual(a.GetLabels(), b.GetLabels())
}

// mayApply is an error if the object that is there is not this set's to write to.
func (a *ownedApply) mayApply(live Object) error {
	if live == nil {
		return nil
	}
	owned := HasOwnerReference(a.owner, live)
	other := metav1.GetControllerOfNoCopy(live)
	if other != nil && !sameOwner(*other, controllerReference(a.owner)) && !(owned && a.set.Plain) {
		return fmt.Errorf("%w: %s %q", ErrControlled, other.Kind, other.Name)
	}
	if label, labelled := live.GetLabels()[a.label]; !a.set.Adopt && (!owned || labelled && label != a.value) {
		return ErrNotOwned
	}
	if live.GetDeletionTimestamp() != nil {
		return ErrDeleting
	}
	return nil
}

// send applies the object. Again says that it may be another one by now, or that one has come into being.
func (a *ownedApply) send(ctx context.Context, o *object, live Object) (got *Unstructured, again bool, err error) {
	w, sent := a.options, o.DeepCopy()
	if live == nil {
		w.force = false // if there is one after all, nothing is taken from it
	} else if uid := live.GetUID(); uid != "" {
		sent.SetUID(uid)
		w.uid = &uid
	}
	var created bool
	put := func(o *object, w writeOptions) (r reply, err error) {
		r, created, err = a.client.applied(ctx, o, w)
		return r, err
	}
	if a.client.core.fake {
		put = func(o *object, w writeOptions) (reply, error) { return a.merge(ctx, o, w, live) }
		created = true // or it fails
	}
	got, err = a.client.do(ctx, "apply", &object{sent, o.resource}, w, put)
	if err != nil {
		again = apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err)
		return nil, again, err
	}
	if live == nil && !created && !a.set.Adopt && a.wasOthers(ctx, o, got) {
		return nil, false, errors.Join(o.failed("apply", ErrNotOwned), a.withdraw(ctx, o, got))
	}
	return got, false, nil
}

// wasOthers reports whether an object that was thought absent was there, and not of this set, before it was
// applied: what it was is asked of the server's history, which goes back some minutes. If it does not go back so
// far, nothing has been changed just now, and what is there was applied long ago.
func (a *ownedApply) wasOthers(ctx context.Context, o *object, got *Unstructured) bool {
	version, err := strconv.ParseUint(got.GetResourceVersion(), 10, 64)
	var list *unstructured.UnstructuredList
	if err == nil {
		list, err = a.client.in(o.resource, o.GetNamespace()).List(ctx, metav1.ListOptions{
			FieldSelector:   "metadata.name=" + o.GetName(),
			ResourceVersion: strconv.FormatUint(version-1, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
	}
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return false
	case err != nil: // go by who has written to it
		return !onlyBy(got, a.options.fieldManager) || len(got.GetOwnerReferences()) > len(o.GetOwnerReferences())
	}
	return slices.ContainsFunc(list.Items, func(was Unstructured) bool { return was.GetUID() == got.GetUID() && !a.ours(&was) })
}

// withdraw takes back what was applied to somebody else's object that came into being a moment ago. Without
// force nothing of its own has been changed.
func (a *ownedApply) withdraw(ctx context.Context, o *object, got *Unstructured) error {
	empty := &Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(o.GroupVersionKind())
	empty.SetNamespace(o.GetNamespace())
	empty.SetName(o.GetName())
	uid, w := got.GetUID(), a.options
	empty.SetUID(uid)
	w.uid, w.force = &uid, false
	_, err := a.client.do(ctx, "withdraw from", &object{empty, o.resource}, w, func(o *object, w writeOptions) (reply, error) {
		r, _, err := a.client.applied(ctx, o, w)
		return r, err
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// applied sends one server-side apply. Created says that there certainly was no such object before.
func (c *Client) applied(ctx context.Context, o *object, w writeOptions) (r reply, created bool, err error) {
	data, err := jsonform.Encode(o.Unstructured)
	if err != nil {
		return reply{}, false, err
	}
	var got *Unstructured
	if options := w.patch(types.ApplyPatchType); c.core.rest != nil {
		got, created, err = c.appliedRaw(ctx, o, data, options)
	} else { // which does not tell
		got, err = c.in(o.resource, o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, data, options)
	}
	if err != nil {
		return reply{}, false, c.preconditionError(ctx, o, w, types.ApplyPatchType, err)
	}
	return c.answered("apply", got), created, nil
}

// appliedRaw sends it over REST, for the status of the answer.
func (c *Client) appliedRaw(ctx context.Context, o *object, data []byte, options metav1.PatchOptions) (
	got *Unstructured, created bool, err error,
) {
	request := c.core.rest.Patch(types.ApplyPatchType).AbsPath(o.path()...).SetHeader("Accept", "application/json").
		Param("fieldManager", options.FieldManager).Param("force", strconv.FormatBool(*options.Force)).Body(data)
	for _, dry := range options.DryRun {
		request.Param("dryRun", dry)
	}
	status := 0
	result := request.Do(ctx).StatusCode(&status)
	if err := result.Error(); err != nil { // Raw's does not have what the server said
		return nil, false, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, false, err
	}
	got = &Unstructured{}
	return got, status == http.StatusCreated, jsonform.Decode(raw, &got.Object)
}

// onlyBy reports whether nobody else has written to an object.
func onlyBy(o *Unstructured, manager string) bool {
	return !slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager != manager })
}

// merge stands for server-side apply on a fake.
func (a *ownedApply) merge(ctx context.Context, o *object, w writeOptions, live Object) (reply, error) {
	in := a.client.in(o.resource, o.GetNamespace())
	there, ok := live.(*Unstructured)
	if !ok {
		got, err := in.Create(ctx, o.Unstructured, w.create())
		if err != nil {
			return reply{}, err
		}
		return a.client.answered("create", got), nil
	}
	next := there.DeepCopy()
	MergeUpdate(next, o.Unstructured)
	next.SetOwnerReferences(there.GetOwnerReferences())
	for _, reference := range o.GetOwnerReferences() {
		putReference(next, reference)
	}
	if reflect.DeepEqual(next.Object, there.Object) {
		return reply{object: there, unrelated: true}, nil
	}
	got, err := in.Update(ctx, next, w.update())
	if err != nil {
		return reply{}, err
	}
	return a.client.answered("update", got), nil
}
