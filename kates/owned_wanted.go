package kates

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/applied"
	"github.com/kates-go/kates/internal/jsonform"
)

// want takes in one object of the set. An object that its owner may not own is reported, but does
// not make the wanted objects uncertain: its error is not returned.
func (a *ownedApply) want(ctx context.Context, given Object) error {
	if _, err := jsonform.Dereference(given); err != nil {
		return err
	}
	mapping, err := a.client.core.kinds.GVK(ctx, a.client.kindOf(given))
	if err != nil {
		return err
	}
	w := &applied.Wanted{Given: given, Resource: a.client.resource(ctx, mapping)}
	w.Key = stream.Key{Namespace: a.namespaceOf(w), Name: given.GetName()}
	o := bare(w.Resource, w.Key)
	if err := o.named(); err != nil {
		return err
	}
	if w.Stored() == a.owner.stored() {
		return fmt.Errorf("%s is the owner itself", a.owner)
	}
	if a.keys[w.Stored()] {
		return fmt.Errorf("%s is there twice", o)
	}
	a.keys[w.Stored()] = true
	if err := a.set.Refer(w); err != nil {
		a.fail(o.failed(opApply, err))
		return nil
	}
	a.wanted = append(a.wanted, w)
	return a.set.Summarize(w)
}

// namespaceOf is the namespace of an object: its own, that of the owner, or the client's default.
func (a *ownedApply) namespaceOf(w *applied.Wanted) string {
	switch {
	case !w.Resource.Namespaced:
		return ""
	case w.Given.GetNamespace() != "":
		return w.Given.GetNamespace()
	case a.owner.GetNamespace() != "":
		return a.owner.GetNamespace()
	}
	return a.client.core.namespace
}

// knownUnchanged returns the object if applying it again certainly changes nothing.
func (a *ownedApply) knownUnchanged(ctx context.Context, w *applied.Wanted) (Object, bool) {
	streams := a.client.core.streams
	known, _ := streams.Lookup(w.Resource, w.Key, stream.Version)
	switch {
	case known == nil:
		return nil, false
	case a.marked(w, known):
		return known, true
	}
	// An untyped watch is more likely to have the managed fields.
	for _, part := range []stream.Part{stream.All, stream.Meta} {
		known, _ = streams.Lookup(w.Resource, w.Key, part)
		if known != nil && len(known.GetManagedFields()) > 0 {
			return known, a.holds(ctx, w, known, a.fullest(w, known))
		}
	}
	if known == nil || !a.set.Says(w, known) {
		return nil, false
	}
	return known, a.recalls(ctx, w, known)
}

// marked reports whether the object is at the version at which it was applied.
func (a *ownedApply) marked(w *applied.Wanted, now Object) bool {
	return a.client.core.applied.At(w, a.options.fieldManager, now)
}

// mark remembers that w is applied in this version of the object.
func (a *ownedApply) mark(w *applied.Wanted, now metav1.Object) {
	core := a.client.core
	core.applied.Put(core.streams, w, a.options.fieldManager, now.GetUID(), now.GetResourceVersion())
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
	known, _ := a.client.core.streams.Lookup(w.Resource, w.Key, stream.Known)
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

// owns reports whether fields are exactly those of what is applied, and the object still has it,
// in its order. Now is as much of the object as is known, or nil.
func (a *ownedApply) owns(ctx context.Context, w *applied.Wanted, fields []byte, now Object) bool {
	core := a.client.core
	check := &applied.Check{
		Detail: a.set.DetailOf(w.Resource.Kind, now),
		Whole: func(path fieldpath.Path, part any) bool {
			return core.kinds.Whole(ctx, w.Resource.Kind, path, part)
		},
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
	return a.set.Make(w) == nil && check.OwnsJust(fields, w.Object)
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
	o, ok := core.recollected.Take(r, w.Key, now)
	if !ok || o.Sum != w.Sum || !a.owns(ctx, w, o.Fields, a.knownAt(w, o.RV)) {
		return false
	}
	core.applied.Put(core.streams, w, a.options.fieldManager, o.UID, o.RV)
	return true
}

// recollection returns a list of metadata, or makes it if that saves requests.
func (a *ownedApply) recollection(ctx context.Context, of applied.Recollectable, w *applied.Wanted) *applied.Recollection {
	core := a.client.core
	known := func() int { return core.applied.Count(of.Storage) }
	list := func(ctx context.Context) (map[stream.Key]applied.Recalled, error) {
		source := core.server.Source(w.Resource, of.Namespace, stream.Metadata)
		return applied.List(ctx, of, a.set.Annotation, pageSize, source.ListItems)
	}
	return core.recollected.Of(ctx, of, known, list)
}

// took takes in the answer to an apply.
func (a *ownedApply) took(w *applied.Wanted, live Object, got *Unstructured) {
	same, _ := live.(*Unstructured)
	unchanged := same == got ||
		live != nil && live.GetResourceVersion() != "" && live.GetResourceVersion() == got.GetResourceVersion()
	done := &a.result.Applied
	if unchanged {
		done = &a.result.Unchanged
	}
	*done = append(*done, referenceOf(w.Resource, got))
	if a.options.dryRun == nil && got.GetDeletionTimestamp() == nil { // else an apply fails
		a.mark(w, got)
	}
}
