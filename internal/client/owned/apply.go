package owned

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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/client/write"
	"github.com/kates-go/kates/internal/engine/intake"
	objects "github.com/kates-go/kates/internal/object"
)

// applyTries limits how often an object is checked again because another one has taken its name.
const applyTries = 4

// apply applies one object that may not be as it is wanted.
func (a *call) apply(ctx context.Context, w *applied.Wanted, end *outcome) error {
	if err := a.set.Make(w); err != nil {
		return core.Bare(w.Resource, w.Key).Failed(write.OpApply, err)
	}
	o := &core.Subject{Unstructured: w.Object, Resource: w.Resource, Plain: w.Plain}
	live, asked, err := a.live(ctx, o, false)
	for try := 1; ; try++ {
		if err == nil {
			err = a.set.MayApply(live)
		}
		if err != nil {
			return o.Failed(write.OpApply, err)
		}
		if asked && live != nil && (a.marked(w, live) || a.holds(ctx, w, live, live)) {
			if err := a.Await(ctx, write.OpApply, o, live); err != nil {
				return err
			}
			end.is(&a.result.Unchanged, o.Resource, live)
			return nil
		}
		got, again, failed := a.send(ctx, o, live)
		if failed == nil {
			a.remember(w, live, got, end)
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
func (a *call) live(ctx context.Context, o *core.Subject, ask bool) (live objects.Object, asked bool, err error) {
	if !ask && a.Fake == nil {
		if live, known := a.Streams.Lookup(o.Resource, o.Key(), intake.Meta); known {
			return live, false, nil
		}
	}
	got, err := a.Get(ctx, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, true, err
	}
	return got, true, nil
}

// send applies the object. Again: another object may have taken its name, or may exist by now.
func (a *call) send(ctx context.Context, o *core.Subject, live objects.Object) (got *unstructured.Unstructured, again bool, err error) {
	w, sent := a.options, &core.Subject{Unstructured: o.DeepCopy(), Resource: o.Resource, Plain: o.Plain}
	if live == nil {
		w.Force, sent.Plain = false, nil // if one exists after all, it loses no fields
	} else if uid := live.GetUID(); uid != "" {
		sent.SetUID(uid)
		w.UID = &uid
	}
	var created bool
	put := func(o *core.Subject, w write.Options) (r write.Reply, err error) {
		if a.Fake != nil {
			created = true // else the merge fails
			return a.merge(ctx, o, w, live)
		}
		r, created, err = a.SendApply(ctx, o, w)
		return r, err
	}
	got, err = a.Do(ctx, write.OpApply, sent, w, put)
	if err != nil {
		again = apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err)
		return nil, again, err
	}
	if live == nil && !created && !a.set.Adopt && a.belongedToOthers(ctx, o, got) {
		return nil, false, errors.Join(o.Failed(write.OpApply, applied.ErrNotOwned), a.withdraw(ctx, o, got))
	}
	return got, false, nil
}

// belongedToOthers reports whether an object that seemed absent existed before it was applied,
// and did not belong to this set. It asks the server's history, which covers some minutes. If the
// history no longer has the version of the answer, this apply has changed nothing: the object has
// had that version for minutes.
func (a *call) belongedToOthers(ctx context.Context, o *core.Subject, got *unstructured.Unstructured) bool {
	version, err := strconv.ParseUint(got.GetResourceVersion(), 10, 64)
	var list *unstructured.UnstructuredList
	if err == nil {
		list, err = a.At(o).List(ctx, metav1.ListOptions{
			FieldSelector:   "metadata.name=" + o.GetName(),
			ResourceVersion: strconv.FormatUint(version-1, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
	}
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return false
	case err != nil: // the managed fields tell who has written to it
		return slices.ContainsFunc(got.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager != a.options.FieldManager
		}) || len(got.GetOwnerReferences()) > len(o.GetOwnerReferences())
	}
	return slices.ContainsFunc(list.Items, func(was unstructured.Unstructured) bool {
		return was.GetUID() == got.GetUID() && !a.set.Ours(&was)
	})
}

// withdraw takes back an apply to an object that somebody else created a moment ago. It was
// applied without force, so none of the other's fields were changed.
func (a *call) withdraw(ctx context.Context, o *core.Subject, got *unstructured.Unstructured) error {
	empty, uid, w := core.Bare(o.Resource, o.Key()), got.GetUID(), a.options
	empty.SetUID(uid)
	w.UID, w.Force = &uid, false
	_, err := a.Do(ctx, write.OpWithdraw, empty, w, func(o *core.Subject, w write.Options) (write.Reply, error) {
		r, _, err := a.SendApply(ctx, o, w)
		return r, err
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// merge replaces server-side apply on a fake.
func (a *call) merge(ctx context.Context, o *core.Subject, w write.Options, live objects.Object) (write.Reply, error) {
	in := a.At(o)
	there, ok := live.(*unstructured.Unstructured)
	if !ok {
		got, err := in.Create(ctx, o.Unstructured, w.ForCreate())
		if err != nil {
			return write.Reply{}, err
		}
		return a.Answered(write.OpCreate, got), nil
	}
	next := there.DeepCopy()
	patch.MergeUpdate(next, o.Unstructured)
	next.SetOwnerReferences(there.GetOwnerReferences())
	for _, reference := range o.GetOwnerReferences() {
		owners.Put(next, reference)
	}
	if reflect.DeepEqual(next.Object, there.Object) {
		return write.Reply{Got: there, Unsent: true}, nil
	}
	got, err := in.Update(ctx, next, w.ForUpdate())
	if err != nil {
		return write.Reply{}, err
	}
	return a.Answered(write.OpUpdate, got), nil
}

// knownUnchanged returns the object if applying it again certainly changes nothing.
func (a *call) knownUnchanged(ctx context.Context, w *applied.Wanted) (objects.Object, bool) {
	streams := a.Streams
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
	if a.options.FieldManager == write.ManagerOr(a.FieldManager) {
		if e, read := a.Applied.Entries.Of(known); read { // a stream of a Go type has read it
			whole := a.fullest(w, known)
			return known, a.markIf(a.set.Make(w) == nil && a.check(ctx, w, whole).OwnsEntry(e, w.Object), w, whole)
		}
	}
	return known, a.recalls(ctx, w, known)
}

// marked reports whether the object is at the version at which it was applied.
func (a *call) marked(w *applied.Wanted, now objects.Object) bool {
	return a.Applied.Marks.At(w, a.options.FieldManager, now)
}

// markIf remembers whether w is applied in this version of the object, and returns that.
func (a *call) markIf(is bool, w *applied.Wanted, now metav1.Object) bool {
	if is {
		a.Applied.Marks.Put(a.Streams, w, a.options.FieldManager, now.GetUID(), now.GetResourceVersion())
	}
	return is
}

// fullest returns as much of an object as the watches have at its version. A watch of metadata
// has little; another one may have more.
func (a *call) fullest(w *applied.Wanted, now objects.Object) objects.Object {
	if _, less := now.(*metav1.PartialObjectMetadata); !less {
		return now
	}
	if known := a.knownAt(w, now.GetResourceVersion()); known != nil {
		return known
	}
	return now
}

// knownAt returns the object as some watch has it, nil if none has it at that version.
func (a *call) knownAt(w *applied.Wanted, version string) objects.Object {
	known, _ := a.Streams.Lookup(w.Resource, w.Key, intake.Known)
	if known == nil || known.GetResourceVersion() != version {
		return nil
	}
	return known
}

// holds reports whether an object that has its managedFields is as it is applied. Whole is as
// much of it as is known.
func (a *call) holds(ctx context.Context, w *applied.Wanted, now, whole objects.Object) bool {
	fields := applied.FieldsOf(a.options.FieldManager, now.GetManagedFields())
	return a.markIf(a.set.Says(w, now) && a.owns(ctx, w, fields, whole), w, now)
}

// owns reports whether fields are exactly those of what is applied, and the object still has it,
// in its order. Now is as much of the object as is known, or nil.
func (a *call) owns(ctx context.Context, w *applied.Wanted, fields []byte, now objects.Object) bool {
	return a.set.Make(w) == nil && a.check(ctx, w, now).OwnsJust(fields, w.Object)
}

// check compares what is applied with an object that is shown, or nil.
func (a *call) check(ctx context.Context, w *applied.Wanted, now objects.Object) *applied.Check {
	check := &applied.Check{
		Owners: w.Owners, Type: a.Scheme.AllKnownTypes()[w.Resource.Kind],
		Detail: a.set.DetailOf(w.Resource.Kind, now), AsGiven: now != nil && applied.HasValues(w.Given, now),
		Whole: func(path fieldpath.Path, part any) bool {
			return a.Kinds.Whole(ctx, w.Resource.Kind, path, part)
		},
		Shown: sync.OnceValue(func() map[string]any { return jsonform.Normalized(a.Scheme, w.Resource.Kind, w.Object.Object) }),
		Live: sync.OnceValue(func() map[string]any {
			if u, ok := now.(*unstructured.Unstructured); ok {
				return u.Object
			}
			u, err := jsonform.ToUnstructured(a.Scheme, now)
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
func (a *call) recalls(ctx context.Context, w *applied.Wanted, now objects.Object) bool {
	of := applied.Recollectable{
		Storage: w.Resource.Storage, Manager: a.options.FieldManager, Label: a.set.Label, Set: a.given.SetName,
	}
	r := a.recollection(ctx, of, w)
	if r != nil && apierrors.IsForbidden(r.Err()) && w.Key.Namespace != "" {
		of.Namespace = w.Key.Namespace
		r = a.recollection(ctx, of, w)
	}
	if r == nil || r.Err() != nil {
		return false
	}
	o, ok := a.Applied.Recollections.Take(r, w.Key, now)
	if !ok || o.Sum != w.Sum || !a.owns(ctx, w, o.Fields, a.knownAt(w, o.RV)) {
		return false
	}
	a.Applied.Marks.Put(a.Streams, w, a.options.FieldManager, o.UID, o.RV)
	return true
}

// recollection returns a list of metadata, or makes it if that saves requests.
func (a *call) recollection(ctx context.Context, of applied.Recollectable, w *applied.Wanted) *applied.Recollection {
	known := func() int { return a.Applied.Marks.Count(of.Storage) }
	list := func(ctx context.Context) (map[objects.Key]applied.Recalled, error) {
		source := a.Server.Source(w.Resource, of.Namespace, objects.Metadata)
		return applied.List(ctx, of, a.set.Annotation, core.PageSize, source.ListItems)
	}
	return a.Applied.Recollections.Of(ctx, of, known, list)
}

// remember takes in the answer to an apply.
func (a *call) remember(w *applied.Wanted, live objects.Object, got *unstructured.Unstructured, end *outcome) {
	end.is(&a.result.Applied, w.Resource, got)
	same, _ := live.(*unstructured.Unstructured)
	if same == got ||
		live != nil && live.GetResourceVersion() != "" && live.GetResourceVersion() == got.GetResourceVersion() {
		end.in = &a.result.Unchanged
	}
	a.markIf(a.options.DryRun == nil && got.GetDeletionTimestamp() == nil, w, got) // else an apply fails
}
