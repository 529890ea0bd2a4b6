package kates

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/engine/intake"
	objects "github.com/kates-go/kates/internal/object"
)

// applyTries limits how often an object is checked again because another one has taken its name.
const applyTries = 4

// apply applies one object that may not be as it is wanted.
func (a *ownedApply) apply(ctx context.Context, w *applied.Wanted, end *outcome) error {
	if err := a.set.Make(w); err != nil {
		return bare(w.Resource, w.Key).failed(opApply, err)
	}
	o := &object{Unstructured: w.Object, resource: w.Resource, plain: w.Plain}
	live, asked, err := a.live(ctx, o, false)
	for try := 1; ; try++ {
		if err == nil {
			err = a.set.MayApply(live)
		}
		if err != nil {
			return o.failed(opApply, err)
		}
		if asked && live != nil && (a.marked(w, live) || a.holds(ctx, w, live, live)) {
			end.is(unchanged, o.resource, live)
			return nil
		}
		got, again, failed := a.send(ctx, o, live)
		if failed == nil {
			a.took(w, live, got, end)
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
	w, sent := a.options, &object{Unstructured: o.DeepCopy(), resource: o.resource, plain: o.plain}
	if live == nil {
		w.force, sent.plain = false, nil // if one exists after all, it loses no fields
	} else if uid := live.GetUID(); uid != "" {
		sent.SetUID(uid)
		w.uid = &uid
	}
	var created bool
	put := func(o *object, w writeOptions) (r reply, err error) {
		r, created, err = a.client.core.server.applyOwned(ctx, a, o, w, live)
		return r, err
	}
	got, err = a.client.do(ctx, opApply, sent, w, put)
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
	var got *Unstructured
	err = o.overwriting(w, func(w writeOptions) (err error) {
		got, created, err = c.core.server.Apply(ctx, o.address(), data, w.patch(types.ApplyPatchType))
		return err
	})
	if err != nil {
		return reply{}, false, c.patchError(ctx, o, w, types.ApplyPatchType, err)
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
		return reply{object: there, unsent: true}, nil
	}
	got, err := in.Update(ctx, next, w.update())
	if err != nil {
		return reply{}, err
	}
	return a.client.answered(opUpdate, got), nil
}

// knownUnchanged returns the object if applying it again certainly changes nothing.
func (a *ownedApply) knownUnchanged(ctx context.Context, w *applied.Wanted) (Object, bool) {
	streams := a.client.core.streams
	known, _ := streams.Lookup(w.Resource, w.Key, intake.Version)
	switch {
	case known == nil:
		return nil, false
	case a.marked(w, known):
		return known, true
	}
	// An untyped watch is more likely to have the managed fields.
	for _, part := range []intake.Part{intake.All, intake.Meta} {
		known, _ = streams.Lookup(w.Resource, w.Key, part)
		if known != nil && len(known.GetManagedFields()) > 0 {
			return known, a.holds(ctx, w, known, a.fullest(w, known))
		}
	}
	if known == nil || !a.set.Says(w, known) {
		return nil, false
	}
	if e, read := a.entry(known); read {
		return known, a.ownsAsShown(ctx, w, e, known)
	}
	return known, a.recalls(ctx, w, known)
}

// marked reports whether the object is at the version at which it was applied.
func (a *ownedApply) marked(w *applied.Wanted, now Object) bool {
	return a.client.core.applied.Marks.At(w, a.options.fieldManager, now)
}

// mark remembers that w is applied in this version of the object.
func (a *ownedApply) mark(w *applied.Wanted, now metav1.Object) {
	core := a.client.core
	core.applied.Marks.Put(core.streams, w, a.options.fieldManager, now.GetUID(), now.GetResourceVersion())
}

// fullest returns as much of an object as the watches have at its version. A watch of metadata
// has little; another one may have more.
func (a *ownedApply) fullest(w *applied.Wanted, now Object) Object {
	if _, less := now.(*metav1.PartialObjectMetadata); !less {
		return now
	}
	if known := a.knownAt(w, now.GetResourceVersion()); known != nil {
		return known
	}
	return now
}

// knownAt returns the object as some watch has it, nil if none has it at that version.
func (a *ownedApply) knownAt(w *applied.Wanted, version string) Object {
	known, _ := a.client.core.streams.Lookup(w.Resource, w.Key, intake.Known)
	if known == nil || known.GetResourceVersion() != version {
		return nil
	}
	return known
}

// holds reports whether an object that has its managedFields is as it is applied. Whole is as
// much of it as is known.
func (a *ownedApply) holds(ctx context.Context, w *applied.Wanted, now, whole Object) bool {
	fields := applied.FieldsOf(a.options.fieldManager, now.GetManagedFields())
	if !a.set.Says(w, now) || !a.owns(ctx, w, fields, whole) {
		return false
	}
	a.mark(w, now)
	return true
}

// entry returns which fields of an object this manager has applied, if a stream of a Go type has
// read that.
func (a *ownedApply) entry(known Object) (e applied.Entry, read bool) {
	core := a.client.core
	if a.options.fieldManager != managerOr(core.fieldManager) {
		return e, false
	}
	return core.applied.Entries.Of(known)
}

// ownsAsShown reports whether an object, with this entry of its manager, is as it is applied.
func (a *ownedApply) ownsAsShown(ctx context.Context, w *applied.Wanted, e applied.Entry, now Object) bool {
	now = a.fullest(w, now)
	if a.set.Make(w) != nil || !a.check(ctx, w, now).OwnsEntry(e, w.Object) {
		return false
	}
	a.mark(w, now)
	return true
}

// owns reports whether fields are exactly those of what is applied, and the object still has it,
// in its order. Now is as much of the object as is known, or nil.
func (a *ownedApply) owns(ctx context.Context, w *applied.Wanted, fields []byte, now Object) bool {
	return a.set.Make(w) == nil && a.check(ctx, w, now).OwnsJust(fields, w.Object)
}

// check compares what is applied with an object that is shown, or nil.
func (a *ownedApply) check(ctx context.Context, w *applied.Wanted, now Object) *applied.Check {
	core := a.client.core
	check := &applied.Check{
		Owners: w.Owners, Type: core.scheme.AllKnownTypes()[w.Resource.Kind],
		Detail: a.set.DetailOf(w.Resource.Kind, now), AsGiven: now != nil && applied.HasValues(w.Given, now),
		Whole: func(path fieldpath.Path, part any) bool {
			return core.kinds.Whole(ctx, w.Resource.Kind, path, part)
		},
		Shown: sync.OnceValue(func() map[string]any { return jsonform.Normalized(core.scheme, w.Resource.Kind, w.Object.Object) }),
		Live: sync.OnceValue(func() map[string]any {
			if u, ok := now.(*Unstructured); ok {
				return u.Object
			}
			u, err := jsonform.ToUnstructured(core.scheme, now)
			if err != nil {
				return nil // nothing is known of it
			}
			return u.Object
		}),
	}
	if now != nil {
		check.Now = now
	}
	return check
}

// recalls reports whether a list of metadata shows that the object is as it is applied. It may
// make that list.
func (a *ownedApply) recalls(ctx context.Context, w *applied.Wanted, now Object) bool {
	core := a.client.core
	of := applied.Recollectable{
		Storage: w.Resource.Storage, Manager: a.options.fieldManager, Label: a.set.Label, Set: a.given.Name,
	}
	r := a.recollection(ctx, of, w)
	if r != nil && apierrors.IsForbidden(r.Err()) && w.Key.Namespace != "" {
		of.Namespace = w.Key.Namespace
		r = a.recollection(ctx, of, w)
	}
	if r == nil || r.Err() != nil {
		return false
	}
	o, ok := core.applied.Recollections.Take(r, w.Key, now)
	if !ok || o.Sum != w.Sum || !a.owns(ctx, w, o.Fields, a.knownAt(w, o.RV)) {
		return false
	}
	core.applied.Marks.Put(core.streams, w, a.options.fieldManager, o.UID, o.RV)
	return true
}

// recollection returns a list of metadata, or makes it if that saves requests.
func (a *ownedApply) recollection(ctx context.Context, of applied.Recollectable, w *applied.Wanted) *applied.Recollection {
	core := a.client.core
	known := func() int { return core.applied.Marks.Count(of.Storage) }
	list := func(ctx context.Context) (map[objects.Key]applied.Recalled, error) {
		source := core.server.Source(w.Resource, of.Namespace, objects.Metadata)
		return applied.List(ctx, of, a.set.Annotation, pageSize, source.ListItems)
	}
	return core.applied.Recollections.Of(ctx, of, known, list)
}

// took takes in the answer to an apply.
func (a *ownedApply) took(w *applied.Wanted, live Object, got *Unstructured, end *outcome) {
	end.is(changed, w.Resource, got)
	same, _ := live.(*Unstructured)
	if same == got ||
		live != nil && live.GetResourceVersion() != "" && live.GetResourceVersion() == got.GetResourceVersion() {
		end.fate = unchanged
	}
	if a.options.dryRun == nil && got.GetDeletionTimestamp() == nil { // else an apply fails
		a.mark(w, got)
	}
}
