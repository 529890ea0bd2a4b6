package kates

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/kinds/selectable"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// bareFake is client-go's fake dynamic client. What it has, has UIDs and versions for the streams
// alone: neither it nor a user sees them, so nothing can be a precondition. It ignores field
// selectors, finalizers and subresources, and knows no server-side apply.
type bareFake struct {
	wire.Dynamic
	versions *fake.Server
}

// Source lists and watches a resource, with versions.
func (f *bareFake) Source(r objects.Resource, namespace string, _ objects.Form) source.Source {
	return f.versions.Source(r, namespace)
}

// begin gives the write a version. The fake has what the answer says: it keeps no object from being
// deleted, and deletes none that nothing keeps. The streams get what the fake has stored, and the
// user what it has answered. A reactor can make these differ.
func (f *bareFake) begin(o *object) func(*reply) {
	write := f.versions.Begin(o.resource)
	return func(a *reply) {
		if a == nil || a.unsent || a.unrelated || a.Unknown {
			write.End()
			return
		}
		var answer, stored objects.Object
		if a.object != nil {
			answer = a.object
		}
		a.Key = cmp.Or(a.Key, o.key())
		saw := write.Saw
		if a.past {
			saw = write.Observed
		}
		a.UID, a.Version, stored = saw(a.Key, answer)
		if a.Object = nil; stored != nil {
			a.Object = stored
		}
	}
}

// Delete deletes an object. Without finalizers the object is gone.
func (f *bareFake) Delete(
	ctx context.Context, at wire.Address, o metav1.DeleteOptions,
) (wire.Deletion, error) {
	in := wire.In(f.Client, at.Resource, at.Namespace)
	return wire.Deletion{}, in.Delete(ctx, at.Name, o)
}

func (f *bareFake) checkFields(_ context.Context, r objects.Resource, t target) error {
	return f.checkList(r, t.Query)
}

// checkList refuses the fields of built-in kinds that a server refuses. Which fields a custom kind
// declares is not known here.
func (*bareFake) checkList(r objects.Resource, q Query) error {
	if !ofKubernetes(r.Kind) {
		return nil
	}
	for _, selection := range q.selections() {
		_, f, err := selection.selectors()
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		for _, term := range f.Requirements() {
			if err := selectable.Unsupported(r.GroupVersionResource, r.Namespaced, term.Field); err != nil {
				return fmt.Errorf("field selector %q: %w", f, apierrors.NewBadRequest(err.Error()))
			}
		}
	}
	return nil
}

// ofKubernetes reports whether a kind is built into Kubernetes, so that its Go type is the
// server's. Programs add types of their own to client-go's scheme.
func ofKubernetes(kind schema.GroupVersionKind) bool {
	t := scheme.Scheme.AllKnownTypes()[kind]
	return t != nil && strings.HasPrefix(t.PkgPath(), "k8s.io/api/")
}

func (*bareFake) fields(builtIn selectable.Fields) objects.FieldReader {
	return fake.Fields(reader(builtIn))
}

func (*bareFake) divides() bool { return false }

func (*bareFake) selects(
	r objects.Resource, spec objects.Spec, listed *Unstructured,
) bool {
	return fake.Selects(r, spec.Selection, listed) && objects.SelectsAlternative(r, spec, listed)
}

// checkSubresource is an error for all but the status: a fake takes a subresource for the object
// itself, which is right only if the status is read or changed.
func (*bareFake) checkSubresource(subresource string, likeObject bool) error {
	if likeObject && subresource == "status" {
		return nil
	}
	return ErrSubresourceNotSupported
}

func (*bareFake) checkVersion(*Unstructured) error { return nil }

func (*bareFake) checkOwner(*object) error { return nil }

// newest is always nil: without versions a write cannot be made conditional, so every change
// starts from what the fake has now.
func (*bareFake) newest(
	objects.Resource, objects.Key, func(objects.Object) bool,
) objects.Object {
	return nil
}

func (*bareFake) shown(*object) (Object, bool) { return nil, false }

func (*bareFake) bind(
	_ context.Context, _ operation, _ *object, w writeOptions,
) (writeOptions, error) {
	return w, nil
}

func (*bareFake) outlived(context.Context, *object, types.UID, error) bool { return false }

func (*bareFake) applyError(err error) error {
	if err == nil || apierrors.IsConflict(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrApplyNotSupported, err)
}

// applyOwned merges the object into the one that the fake has. created is true because the merge
// fails if somebody else created the object meanwhile.
func (*bareFake) applyOwned(
	ctx context.Context, a *ownedApply, o *object, w writeOptions, live Object,
) (reply, bool, error) {
	r, err := a.merge(ctx, o, w, live)
	return r, true, err
}

func (*bareFake) hasManagedFields() bool { return false }
