package owned

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/client/write"
	"github.com/kates-go/kates/internal/engine/intake"
	objects "github.com/kates-go/kates/internal/object"
)

// pruneTries limits how often an object that changes is checked again.
const pruneTries = 5

// unwanted is an object that may have to be pruned.
type unwanted struct {
	objects.Object
	of objects.Resource
}

func (u unwanted) Stored() applied.Key {
	return applied.Key{Storage: u.of.Storage, Key: objects.KeyOf(u)}
}

// prune removes the objects that are no longer wanted.
func (a *call) prune(ctx context.Context) {
	var all []unwanted
	seen := make(map[types.UID]bool) // Existing may hold an object in several forms
	for _, u := range a.existing(ctx) {
		isWanted := a.keys[u.Stored()] || a.applied[u.GetUID()] || a.unapplied[u.GetName()]
		if isWanted || !a.set.Prunable(u) || seen[u.GetUID()] {
			continue
		}
		seen[u.GetUID()] = u.GetUID() != "" // objects of a fake have none
		all = append(all, u)
	}
	ends := make([]outcome, len(all))
	tried := write.SideBySide(ctx, len(all), func(i int) {
		ends[i].err = guard.Call(func() error { return a.remove(ctx, all[i], &ends[i]) })
	})
	a.addToResult(ends)
	if tried < len(all) {
		a.fail(fmt.Errorf("prune an owned set: %w, with %d of %d objects not tried",
			ctx.Err(), len(all)-tried, len(all)))
	}
}

// existing returns the objects among which to prune.
func (a *call) existing(ctx context.Context) (all []unwanted) {
	if a.given.Existing != nil {
		for _, o := range a.given.Existing {
			mapping, err := a.Kinds.GVK(ctx, a.KindOf(o))
			if err != nil {
				a.fail(fmt.Errorf("prune %q: %w", o.GetName(), err))
				continue
			}
			r := a.Resource(ctx, mapping)
			a.used = append(a.used, r)
			all = append(all, unwanted{o, r})
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

// kinds returns the resources to prune, each stored one once.
func (a *call) kinds(ctx context.Context) (all []objects.Resource) {
	add := func(r objects.Resource) {
		if !slices.ContainsFunc(all, func(other objects.Resource) bool { return other.Storage == r.Storage }) {
			all = append(all, r)
		}
	}
	for _, o := range a.wanted {
		add(o.Resource)
	}
	for _, kind := range a.given.Kinds {
		mapping, err := a.Kinds.Kind(ctx, kind)
		if err != nil {
			a.fail(fmt.Errorf("prune: %w", err))
			continue
		}
		r := a.Resource(ctx, mapping)
		a.used = append(a.used, r)
		if !r.Namespaced && a.reach() != "" {
			a.fail(fmt.Errorf("prune %s: %w", r.Resource, owners.ErrOwnerScope))
		} else {
			add(r)
		}
	}
	return all
}

// labelled returns the objects of a kind that have the label, from a running watch or the server.
func (a *call) labelled(ctx context.Context, r objects.Resource) (all []objects.Object, err error) {
	if known, ok := a.Streams.List(r, a.reach(), a.set.Selector(), intake.Meta); ok {
		return known, nil
	}
	listed, err := a.List(ctx, r, objects.Spec{Namespace: a.reach(), Selection: objects.Selection{Labels: a.set.Selector()}})
	for _, u := range listed {
		all = append(all, u)
	}
	return all, err
}

// remove deletes an object of the set, or releases it. If the object changes meanwhile, it is
// checked again.
func (a *call) remove(ctx context.Context, u unwanted, end *outcome) error {
	o := core.Bare(u.of, objects.KeyOf(u))
	uid := u.GetUID()
	for try := 1; ; try++ {
		if a.set.HasOtherOwners(u) {
			return a.release(ctx, o, u, end)
		}
		err := a.delete(ctx, o, u)
		switch {
		case err == nil:
			a.Applied.Marks.Forget(u.Stored())
			end.is(&a.result.Pruned, u.of, u)
			return nil
		case apierrors.IsNotFound(err) && !(core.Misplaced(err) && a.ServedOtherwise(ctx, u.of)):
			return nil
		case !apierrors.IsConflict(err) || try == pruneTries:
			return err
		}
		now, readErr := a.Get(ctx, o)
		switch {
		case apierrors.IsNotFound(readErr):
			return nil
		case readErr != nil:
			return o.Failed(write.OpPrune, readErr)
		case now.GetUID() != uid || !a.set.Prunable(now):
			return nil // it no longer belongs to the set
		}
		u.Object = now
	}
}

// delete deletes the very object and version that was checked.
func (a *call) delete(ctx context.Context, o *core.Subject, u unwanted) error {
	w := a.options
	if w.Propagation == nil {
		background := metav1.DeletePropagationBackground
		w.Propagation = &background // the default of some old kinds leaves orphans
	}
	if uid, version := u.GetUID(), u.GetResourceVersion(); uid != "" {
		w.UID, w.Version = &uid, &version
	}
	return a.DeleteKnown(ctx, write.OpPrune, o, u.GetUID(), w)
}

// release removes the label and the owner reference from an object that others own too.
func (a *call) release(ctx context.Context, o *core.Subject, u unwanted, end *outcome) error {
	left := false
	options := write.Options{DryRun: a.options.DryRun, FieldManager: a.options.FieldManager}.About(u)
	_, err := write.Modify(ctx, a.Writer, o.Unstructured, func(now *unstructured.Unstructured) error {
		if left = a.set.Prunable(now) && a.set.HasOtherOwners(now); left {
			a.set.Release(now)
		}
		return nil
	}, options)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil && left:
		a.Applied.Marks.Forget(u.Stored())
		end.is(&a.result.Released, u.of, u)
	}
	return err
}
