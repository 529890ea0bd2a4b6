package kates

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/jsonform"
	"github.com/kates-go/kates/internal/patch"
)

// wanted is one of the objects of a set.
type wanted struct {
	given    Object
	resource accumulator.Resource
	key      accumulator.Key
	owners   []metav1.OwnerReference
	sum      string  // of all that is applied: the AppliedAnnotation's value
	object   *object // as it is applied; made when it is needed
}

func (w *wanted) stored() storedKey { return storedKey{w.resource.Storage, w.key} }

func (w *wanted) failed(verb string, err error) error {
	return bare(w.resource, w.key).failed(verb, err)
}

// bare is an object's kind and name alone.
func bare(r accumulator.Resource, key accumulator.Key) *object {
	o := &object{&Unstructured{Object: map[string]any{}}, r}
	o.SetGroupVersionKind(r.Kind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}

// want takes in one of the objects.
func (a *ownedApply) want(ctx context.Context, given Object) error {
	if _, err := jsonform.Dereference(given); err != nil {
		return err
	}
	mapping, err := a.client.core.resolver.gvkContext(ctx, a.client.kindOf(given))
	if err != nil {
		return err
	}
	w := &wanted{given: given, resource: a.client.resource(ctx, mapping)}
	w.key = accumulator.Key{Namespace: a.namespaceOf(w), Name: given.GetName()}
	if err := bare(w.resource, w.key).named(); err != nil {
		return err
	}
	if w.stored() == a.owner.stored() {
		return fmt.Errorf("%s is the owner itself", a.owner)
	}
	if a.keys[w.stored()] {
		return fmt.Errorf("%s is there twice", bare(w.resource, w.key))
	}
	a.keys[w.stored()] = true
	if err := a.refer(w); err != nil {
		a.fail(w.failed("apply", err)) // known, but not to be
		return nil
	}
	a.wanted = append(a.wanted, w)
	if _, applied := given.GetAnnotations()[a.annotation]; applied || serverWritten(given) {
		return a.make(w) // which leaves that out, and so is to be summed up
	}
	w.sum, err = a.sum(w, given)
	return err
}

// namespaceOf is the namespace of an object: its own, that of the owner, or the client's default.
func (a *ownedApply) namespaceOf(w *wanted) string {
	switch {
	case !w.resource.Namespaced:
		return ""
	case w.given.GetNamespace() != "":
		return w.given.GetNamespace()
	case a.owner.GetNamespace() != "":
		return a.owner.GetNamespace()
	}
	return a.client.core.namespace
}

// refer decides about the object's owners.
func (a *ownedApply) refer(w *wanted) error {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.key.Namespace, Name: w.key.Name, OwnerReferences: w.given.GetOwnerReferences(),
	}}
	refer := SetControllerReference
	if a.set.Plain {
		refer = AddOwnerReference
	}
	err := refer(a.owner, o)
	w.owners = o.OwnerReferences
	return err
}

// serverWritten reports whether an object has what only the server writes, as one that was read from it.
func serverWritten(o Object) bool {
	return o.GetUID() != "" || o.GetResourceVersion() != "" || o.GetGeneration() != 0 || o.GetCreationTimestamp() != (metav1.Time{}) ||
		o.GetDeletionTimestamp() != nil || len(o.GetManagedFields()) > 0 || o.GetSelfLink() != ""
}

// sum says what is applied, in a few letters.
func (a *ownedApply) sum(w *wanted, content any) (string, error) {
	return digest(w.resource.Kind, w.key, a.label, a.value, w.owners, content)
}

// make makes the object that is applied, if it is not made yet. What only the server writes is left out of it.
func (a *ownedApply) make(w *wanted) error {
	if w.object != nil {
		return nil
	}
	u, err := jsonform.ToUnstructured(a.client.core.scheme, w.given)
	if err != nil {
		return err
	}
	u.SetGroupVersionKind(w.resource.Kind)
	u.SetNamespace(w.key.Namespace)
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		for _, field := range append([]string{"uid"}, patch.ServerFields...) {
			delete(metadata, field)
		}
	}
	if saysNothing(u.Object["status"]) || builtIn(w.resource.Kind) {
		delete(u.Object, "status") // a Go type's, and what a built-in kind has only by a subresource
	}
	if notes := u.GetAnnotations(); notes[a.annotation] != "" { // of what was applied before
		delete(notes, a.annotation)
		u.SetAnnotations(notes)
	}
	u.SetLabels(merged(u.GetLabels(), map[string]string{a.label: a.value}))
	u.SetOwnerReferences(w.owners)
	if w.sum == "" {
		if w.sum, err = a.sum(w, u.Object); err != nil {
			return err
		}
	}
	if !a.client.core.fake {
		u.SetAnnotations(merged(u.GetAnnotations(), map[string]string{a.annotation: w.sum}))
	}
	w.object = &object{u, w.resource}
	return nil
}

// saysNothing reports whether a value consists of empty objects.
func saysNothing(value any) bool {
	object, ok := value.(map[string]any)
	for _, part := range object {
		ok = ok && saysNothing(part)
	}
	return ok || value == nil
}

// knownUnchanged returns the object if it is known that to apply it again would change nothing.
func (a *ownedApply) knownUnchanged(ctx context.Context, w *wanted) (Object, bool) {
	streams, marks := a.client.core.streams, &a.client.core.applied
	known, _ := streams.Lookup(w.resource, w.key, accumulator.Version)
	switch {
	case known == nil:
		return nil, false
	case marks.at(w, a.options.fieldManager, known):
		return known, true
	}
	for _, part := range []accumulator.Part{accumulator.All, accumulator.Meta} { // the first is more likely to have managedFields
		known, _ = streams.Lookup(w.resource, w.key, part)
		if known != nil && len(known.GetManagedFields()) > 0 {
			return known, a.holds(ctx, w, known, a.fullest(w, known))
		}
	}
	if known == nil || !a.says(w, known) {
		return nil, false
	}
	return known, a.recalls(ctx, w, known)
}

// fullest is what is known of an object at its version: more than a watch of metadata has, if another one has it.
func (a *ownedApply) fullest(w *wanted, now Object) Object {
	if _, less := now.(*metav1.PartialObjectMetadata); !less {
		return now
	}
	whole, _ := a.client.core.streams.Lookup(w.resource, w.key, accumulator.Known)
	if whole == nil || whole.GetResourceVersion() != now.GetResourceVersion() {
		return now
	}
	return whole
}

// says reports whether an object says that it was applied as it is wanted.
func (a *ownedApply) says(w *wanted, now Object) bool {
	return now.GetDeletionTimestamp() == nil && now.GetAnnotations()[a.annotation] == w.sum
}

// holds reports whether an object that has its managedFields is as it is applied. Whole is as much of it as is known.
func (a *ownedApply) holds(ctx context.Context, w *wanted, now, whole Object) bool {
	if !a.says(w, now) || !a.owns(ctx, w, appliedAs(a.options.fieldManager, now.GetManagedFields()), whole) {
		return false
	}
	a.client.core.applied.put(a.client.core.streams, w, a.options.fieldManager, now.GetUID(), now.GetResourceVersion())
	return true
}

// owns reports whether fields are those of what is applied, no more and no less, and the object has it still, in its order. Now is
// as much of the object as is known, or nil.
func (a *ownedApply) owns(ctx context.Context, w *wanted, fields []byte, now Object) bool {
	o := &owning{
		detail: detailOf(w.resource.Kind, now),
		whole: func(path fieldpath.Path, part any) bool {
			return a.client.core.resolver.whole(ctx, w.resource.Kind, path, part)
		},
		live: sync.OnceValue(func() map[string]any {
			if u, ok := now.(*Unstructured); ok {
				return u.Object
			}
			u, err := jsonform.ToUnstructured(a.client.core.scheme, now)
			if err != nil {
				return nil // of which nothing is known
			}
			return u.Object
		}),
	}
	return a.make(w) == nil && o.ownsJust(fields, w.object.Unstructured)
}

// took takes in the answer to an apply.
func (a *ownedApply) took(w *wanted, live Object, got *Unstructured) {
	done := &a.result.Applied
	if same, ok := live.(*Unstructured); ok && same == got ||
		live != nil && live.GetResourceVersion() != "" && live.GetResourceVersion() == got.GetResourceVersion() {
		done = &a.result.Unchanged
	}
	*done = append(*done, referenceOf(w.resource, got))
	if a.options.dryRun == nil && got.GetDeletionTimestamp() == nil { // else it is not to be applied again, which is an error
		a.client.core.applied.put(a.client.core.streams, w, a.options.fieldManager, got.GetUID(), got.GetResourceVersion())
	}
}
