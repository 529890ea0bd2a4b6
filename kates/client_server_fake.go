package kates

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/kinds/selectable"
	"github.com/kates-go/kates/internal/patch"
	"github.com/kates-go/kates/internal/wire"
)

// bareFake is client-go's fake dynamic client. It sets no UID and no resource version, so nothing
// can be a precondition. It ignores field selectors, finalizers and subresources, and knows no
// server-side apply.
type bareFake struct{ wire.Dynamic }

// Delete deletes an object. Without finalizers the object is gone.
func (f *bareFake) Delete(
	ctx context.Context, at wire.Address, o metav1.DeleteOptions,
) (wire.Deletion, error) {
	in := wire.In(f.Client, at.Resource, at.Namespace)
	return wire.Deletion{}, in.Delete(ctx, at.Name, o)
}

func (f *bareFake) checkFields(_ context.Context, r stream.Resource, t target) error {
	return f.checkList(r, t.Query)
}

// checkList refuses the fields of built-in kinds that a server refuses. Which fields a custom kind
// declares is not known here.
func (*bareFake) checkList(r stream.Resource, q Query) error {
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

func (*bareFake) declaredFields(
	context.Context, schema.GroupVersionKind, []string,
) selectable.Fields {
	return nil
}

func (*bareFake) selects(
	r stream.Resource, s stream.Selection, listed *Unstructured,
) bool {
	return stream.Selects(r, s, listed)
}

// checkSubresource is an error for all but the status: a fake takes a subresource for the object
// itself, which is right only if the status is read or changed.
func (*bareFake) checkSubresource(subresource string, likeObject bool) error {
	if likeObject && subresource == "status" {
		return nil
	}
	return ErrSubresourceNotSupported
}

// stored drops from the status of a built-in kind what the kind's Go type does not know, because a
// server does. The fake has no schemas of other kinds.
func (*bareFake) stored(op operation, r stream.Resource, o *Unstructured) *Unstructured {
	if op.subresource != statusSubresource || o.Object["status"] == nil {
		return o
	}
	if !ofKubernetes(r.Kind) {
		return o
	}
	typed, err := scheme.Scheme.New(r.Kind)
	if err != nil {
		return o
	}
	convert := runtime.DefaultUnstructuredConverter
	if convert.FromUnstructured(map[string]any{"status": o.Object["status"]}, typed) != nil {
		return o // a value of another kind is none that the server drops
	}
	known, err := convert.ToUnstructured(typed)
	if err != nil {
		return o
	}
	kept := maps.Clone(o.Object)
	kept["status"] = patch.Kept(o.Object["status"], known["status"])
	return &Unstructured{Object: kept}
}

// own copies the answer, because a fake may answer with an object that it keeps.
func (*bareFake) own(answer *Unstructured) *Unstructured { return answer.DeepCopy() }

func (*bareFake) checkVersion(*Unstructured) error { return nil }

func (*bareFake) checkOwner(*object) error { return nil }

// newest is always nil: without versions a write cannot be made conditional, so every change
// starts from what the fake has now.
func (*bareFake) newest(
	stream.Resource, stream.Key, stream.Form,
) stream.Object {
	return nil
}

func (*bareFake) shown(*object) (Object, bool) { return nil, false }

func (*bareFake) bind(
	_ context.Context, _ operation, _ *object, w writeOptions,
) (writeOptions, error) {
	return w, nil
}

func (*bareFake) possible(operation, *object, writeOptions) error { return nil }

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
