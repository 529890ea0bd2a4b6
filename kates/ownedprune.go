package kates

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	objects "github.com/kates-go/kates/internal/object"
)

// pruneTries is how often an object that changes is judged anew.
const pruneTries = 5

// unwanted is an object that may be to go.
type unwanted struct {
	Object
	resource accumulator.Resource
}

func (u unwanted) stored() storedKey { return storedKey{u.resource.Storage, objects.KeyOf(u)} }

// prune removes what is no longer wanted.
func (a *ownedApply) prune(ctx context.Context) {
	candidates, removed := a.existing(ctx), make(map[types.UID]bool) // in several forms there may be several of one
	for i, u := range candidates {
		if ctx.Err() != nil {
			a.fail(fmt.Errorf("prune an owned set: %w, with %d of %d objects not tried", ctx.Err(), len(candidates)-i, len(candidates)))
			return
		}
		if a.keys[u.stored()] || !a.prunable(u) || removed[u.GetUID()] {
			continue
		}
		removed[u.GetUID()] = u.GetUID() != "" // a fake's have none
		a.fail(a.remove(ctx, u))
	}
}

// prunable reports whether an object is of the set, and not on its way out.
func (a *ownedApply) prunable(o Object) bool { return a.ours(o) && o.GetDeletionTimestamp() == nil }

// existing are the objects among which to prune.
func (a *ownedApply) existing(ctx context.Context) (all []unwanted) {
	if a.set.Existing != nil {
		for _, o := range a.set.Existing {
			mapping, err := a.client.core.resolver.gvkContext(ctx, a.client.kindOf(o))
			if err != nil {
				a.fail(fmt.Errorf("prune %q: %w", o.GetName(), err))
				continue
			}
			all = append(all, unwanted{o, a.client.resource(ctx, mapping)})
		}
		return all
	}
	for _, r := range a.kinds(ctx) {
		objects, err := a.labelled(ctx, r)
		if err != nil {
			a.fail(fmt.Errorf("prune %s: %w", r.Resource, err))
		}
		for _, o := range objects {
			all = append(all, unwanted{o, r})
		}
	}
	return all
}

// kinds are those to prune, each stored resource once.
func (a *ownedApply) kinds(ctx context.Context) (all []accumulator.Resource) {
	seen := make(map[string]bool)
	add := func(r accumulator.Resource) {
		if !seen[r.Storage] {
			seen[r.Storage], all = true, append(all, r)
		}
	}
	for _, o := range a.wanted {
		add(o.resource)
	}
	for _, kind := range a.set.Kinds {
		mapping, err := a.client.core.resolver.kindContext(ctx, kind)
		switch {
		case err != nil:
			a.fail(fmt.Errorf("prune: %w", err))
		case mapping.Scope.Name() == meta.RESTScopeNameRoot && a.owner.GetNamespace() != "":
			a.fail(fmt.Errorf("prune %s: %w", mapping.Resource.Resource, ErrOwnerScope))
		default:
			add(a.client.resource(ctx, mapping))
		}
	}
	return all
}

// labelled are the objects of a kind that have the label, from a running watch or from the server.
func (a *ownedApply) labelled(ctx context.Context, r accumulator.Resource) (all []Object, err error) {
	if known, ok := a.client.core.streams.List(r, a.owner.GetNamespace(), a.selector(), accumulator.Meta); ok {
		return known, nil
	}
	listed, err := a.client.listOne(ctx, r, a.owner.GetNamespace(), accumulator.Selection{Labels: a.selector()})
	for _, u := range listed {
		all = append(all, u)
	}
	return all, err
}

// remove deletes an object of the set, or releases it, if it is still that. Where it has changed meanwhile, it is
// judged anew.
func (a *ownedApply) remove(ctx context.Context, u unwanted) error {
	o := bare(u.resource, objects.KeyOf(u))
	uid := u.GetUID()
	for try := 1; ; try++ {
		if a.hasOtherOwners(u) {
			return a.release(ctx, o, u)
		}
		err := a.delete(ctx, o, u)
		switch {
		case err == nil:
			a.client.core.applied.forget(u.stored())
			a.result.Pruned = append(a.result.Pruned, referenceOf(u.resource, u))
			return nil
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || try == pruneTries:
			return err
		}
		now, readErr := a.client.in(o.resource, o.GetNamespace()).Get(ctx, o.GetName(), getOptions)
		switch {
		case apierrors.IsNotFound(readErr):
			return nil
		case readErr != nil:
			return o.failed("prune", readErr)
		case now.GetUID() != uid || !a.prunable(now):
			return nil // it is no longer ours to remove
		}
		u.Object = now
	}
}

// hasOtherOwners reports whether an object would live on when our owner is gone.
func (a *ownedApply) hasOtherOwners(o Object) bool {
	reference := controllerReference(a.owner)
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return !sameOwner(r, reference) })
}

// delete deletes the very object and version that was judged.
func (a *ownedApply) delete(ctx context.Context, o *object, u unwanted) error {
	w := a.options
	if w.propagation == nil {
		background := metav1.DeletePropagationBackground
		w.propagation = &background // some old kinds would leave orphans
	}
	if uid, version := u.GetUID(), u.GetResourceVersion(); uid != "" {
		w.uid, w.version = &uid, &version
	}
	_, err := a.client.do(ctx, "prune", o, w, func(o *object, w writeOptions) (reply, error) {
		r, err := a.client.delete(ctx, o, w)
		if err == nil || a.client.core.fake || !a.client.outlived(ctx, o, u.GetUID(), err) {
			return r, err
		}
		return reply{Outcome: accumulator.Outcome{Unknown: true}}, nil // gone already; what watches show may be older
	})
	return err
}

// release takes the label and the owner reference off an object that others own too.
func (a *ownedApply) release(ctx context.Context, o *object, u unwanted) error {
	released := false
	options := about(u, []WriteOption{func(w *writeOptions) { w.dryRun, w.fieldManager = a.options.dryRun, a.options.fieldManager }})
	_, err := Modify(ctx, a.client, o.Unstructured, func(now *Unstructured) error {
		if released = a.prunable(now) && a.hasOtherOwners(now); !released {
			return nil
		}
		RemoveOwnerReference(a.owner, now)
		kept, notes := now.GetLabels(), now.GetAnnotations()
		delete(kept, a.label)
		now.SetLabels(kept)
		delete(notes, a.annotation)
		now.SetAnnotations(notes)
		return nil
	}, options...)
	switch {
	case IsNotFound(err):
		return nil
	case err == nil && released:
		a.client.core.applied.forget(u.stored())
		a.result.Released = append(a.result.Released, referenceOf(u.resource, u))
	}
	return err
}
