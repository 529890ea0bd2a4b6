package kates

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/fence"
	"github.com/kates-go/kates/internal/kinds/selectable"
	"github.com/kates-go/kates/internal/wire"
)

// server is how the cluster of a client behaves. There are two: an API server ([apiServer]), and
// client-go's bare fake ([bareFake]), which has neither versions nor UIDs for a user to see. A
// client gets one at construction; nothing else asks which one it is.
type server interface {
	wire.Requests

	// checkFields is an error if the server refuses a field selector of the query.
	checkFields(ctx context.Context, r stream.Resource, t target) error
	// checkList is an error if a list of the query would be refused for its fields, and the server
	// itself does not say so.
	checkList(r stream.Resource, q Query) error
	// fields reads the fields of a kind that are known without the server; nil: none.
	fields(builtIn selectable.Fields) stream.FieldReader
	// declaredFields returns the selectable fields of a custom kind, as far as they can be known. The
	// error says why some that are wanted are not.
	declaredFields(
		ctx context.Context, kind schema.GroupVersionKind, wanted []string,
	) (selectable.Fields, error)
	// divides is false if the server cannot send a share of what is watched.
	divides() bool
	// selects reports whether an object belongs to the answer to a list with this selection.
	selects(r stream.Resource, spec stream.Spec, listed *Unstructured) bool
	// checkSubresource is an error if the server has no such subresource. likeObject says that it
	// is read or changed as a part of its object, and not created.
	checkSubresource(subresource string, likeObject bool) error

	// stored is what is sent to have an object stored, without what the server would drop of its
	// status and this server does not.
	stored(op operation, r stream.Resource, o *Unstructured) *Unstructured
	// begin is called before a write is sent. What it returns takes in the answer, or, with nil, that
	// the write has failed.
	begin(o *object) (answered func(*reply))
	// checkVersion is an error if an object's resource version cannot be compared.
	checkVersion(o *Unstructured) error
	// checkOwner is an error if an object cannot be an owner.
	checkOwner(o *object) error
	// newest is the newest version of an object that streams show in a form that will do, nil if
	// there is none. It has a resource version, so a write can be made conditional on it.
	newest(r stream.Resource, key stream.Key, has func(stream.Object) bool) stream.Object
	// shown is the metadata of an object as the streams show it, nil if they show that there is no
	// such object. known says that the streams answer for the object.
	shown(o *object) (live Object, known bool)

	// bind returns the options of a write, and with them the preconditions that it needs to be sent
	// under ctx. If ctx is bound to a lease, the next holder of the lease breaks them as soon as it
	// writes to the object. Their version was known while the lease was held and when the work
	// began, or the work wrote it itself. So it is older than all that another holder has written
	// since, whatever the clocks say.
	bind(ctx context.Context, op operation, o *object, w writeOptions) (writeOptions, error)
	// possible is a conflict if no object can have what the options ask for. It is an error if the
	// server would not notice that the kind has no status to write.
	possible(op operation, o *object, w writeOptions) error
	// outlived reports whether a deletion failed because the object of that UID is gone.
	outlived(ctx context.Context, o *object, uid types.UID, err error) bool

	// applyError is the error of a server-side apply.
	applyError(err error) error
	// applyOwned applies an object of an owned set. created says that it certainly did not exist
	// before.
	applyOwned(
		ctx context.Context, a *ownedApply, o *object, w writeOptions, live Object,
	) (r reply, created bool, err error)
	// hasManagedFields says that objects show who owns their fields.
	hasManagedFields() bool
}

// apiServer is a real API server, over REST or through a dynamic.Interface.
type apiServer struct {
	wire.Requests
	core *core
}

// checkFields asks the server whether it knows the query's fields: a watch would repeat the error
// for ever.
func (s *apiServer) checkFields(ctx context.Context, r stream.Resource, t target) error {
	namespace := t.Namespace
	if len(t.Namespaces) > 0 {
		namespace = t.Namespaces[0]
	}
	source := s.Source(r, namespace, t.formOf())
	for i, s := range t.selections() {
		_, f, err := s.selectors()
		if err != nil {
			return err
		}
		// Every resource has metadata.name, and nothing else for certain: some resources without
		// namespaces refuse metadata.namespace.
		doubted := func(req fields.Requirement) bool { return req.Field != "metadata.name" }
		if i > 0 && r.Namespaced {
			// In AnyOf a namespace that is required is part of the path, and no field.
			doubted = func(req fields.Requirement) bool {
				return req.Field != "metadata.name" &&
					(req.Field != "metadata.namespace" || req.Operator == selection.NotEquals)
			}
		}
		if f == nil || !slices.ContainsFunc(f.Requirements(), doubted) {
			continue
		}
		o := metav1.ListOptions{FieldSelector: f.String(), Limit: 1}
		drop := func(runtime.Object) error { return nil }
		if _, err = source.ListItems(ctx, o, drop); apierrors.IsBadRequest(err) {
			return fmt.Errorf("field selector %q: %w", f, err)
		}
	}
	return nil
}

func (*apiServer) checkList(stream.Resource, Query) error { return nil }

func (*apiServer) fields(builtIn selectable.Fields) stream.FieldReader { return reader(builtIn) }

func (*apiServer) divides() bool { return true }

func (s *apiServer) declaredFields(
	ctx context.Context, kind schema.GroupVersionKind, wanted []string,
) (selectable.Fields, error) {
	declared, err := s.core.kinds.Declared(ctx, kind, wanted)
	if err != nil {
		const says = "selectable fields not known: own writes are settled by a list each"
		s.core.log.V(1).Info(says, "kind", kind.String(), "fields", wanted, "err", err)
	}
	return declared, err
}

func (*apiServer) selects(r stream.Resource, spec stream.Spec, listed *Unstructured) bool {
	return stream.SelectsAlternative(r, spec, listed)
}

func (*apiServer) checkSubresource(string, bool) error { return nil }

func (*apiServer) stored(_ operation, _ stream.Resource, o *Unstructured) *Unstructured {
	return o
}

func (*apiServer) begin(*object) func(*reply) { return func(*reply) {} }

func (*apiServer) checkVersion(o *Unstructured) error {
	if version := o.GetResourceVersion(); !coherence.Comparable(version) {
		return fmt.Errorf("%w: %q", errNoVersion, version)
	}
	return nil
}

func (*apiServer) checkOwner(o *object) error {
	if o.GetUID() == "" {
		return fmt.Errorf("the owner %s has no UID: it is to be as the server has it", o)
	}
	return nil
}

func (s *apiServer) newest(
	r stream.Resource, key stream.Key, has func(stream.Object) bool,
) stream.Object {
	o := s.core.streams.Newest(r, key, has)
	if o == nil || o.GetResourceVersion() == "" {
		return nil
	}
	return o
}

func (s *apiServer) shown(o *object) (live Object, known bool) {
	return s.core.streams.Lookup(o.resource, o.key(), stream.Meta)
}

func (s *apiServer) bind(
	ctx context.Context, op operation, o *object, w writeOptions,
) (writeOptions, error) {
	if !fence.Fenced(ctx) || w.unfenced || w.version != nil || !op.preconditioned(w.sent(o)) {
		return w, nil
	}
	uid, version, err := s.seen(ctx, o, w.uid)
	switch {
	case apierrors.IsNotFound(err) && !misplaced(err) && op == opApply:
		return w, nil // it creates the object, and a create takes no precondition
	case err != nil:
		return w, err
	}
	if !fence.HorizonOf(ctx, s.core).Includes(o.resource.Storage, o.stored(), version) {
		return w, o.conflict(errUnseen)
	}
	w.uid, w.version = &uid, &version
	return w, nil
}

// seen returns the UID and the version of an object as the client knows it, or else the server.
func (s *apiServer) seen(
	ctx context.Context, o *object, wanted *types.UID,
) (uid types.UID, version string, err error) {
	var found stream.Object
	known, ok := s.core.streams.Lookup(o.resource, o.key(), stream.Version)
	if ok && known != nil {
		found = known
	} else if found, err = s.core.get(ctx, o); err != nil {
		return "", "", err
	}
	if wanted != nil && found.GetUID() != *wanted {
		return *wanted, found.GetResourceVersion(), nil // the server will answer with a conflict
	}
	return found.GetUID(), found.GetResourceVersion(), nil
}

// outlived reports whether nothing is left to delete: the object is gone, or another one has its
// name.
func (s *apiServer) outlived(ctx context.Context, o *object, uid types.UID, err error) bool {
	switch {
	case apierrors.IsNotFound(err):
		return !misplaced(err) // a path that is not there says nothing of the object
	case !apierrors.IsConflict(err):
		return false
	}
	return s.core.replaced(ctx, o, uid)
}

func (*apiServer) possible(op operation, o *object, w writeOptions) error {
	if !op.takesOptions() {
		return nil
	}
	if err := w.possible(); err != nil {
		return o.conflict(err)
	}
	return nil
}

func (*apiServer) applyError(err error) error { return err }

func (*apiServer) applyOwned(
	ctx context.Context, a *ownedApply, o *object, w writeOptions, _ Object,
) (reply, bool, error) {
	return a.client.applied(ctx, o, w)
}

func (*apiServer) hasManagedFields() bool { return true }

// bareFake is client-go's fake dynamic client. What it has, has UIDs and versions for the streams
// alone: neither it nor a user sees them, so nothing can be a precondition. It ignores field
// selectors, finalizers and subresources, and knows no server-side apply.
type bareFake struct {
	wire.Dynamic
	versions *fake.Server
}

// Source lists and watches a resource, with versions.
func (f *bareFake) Source(r stream.Resource, namespace string, _ stream.Form) stream.Source {
	return f.versions.Source(r, namespace)
}

// begin gives the write a version. The fake has what the answer says: it keeps no object from being
// deleted, and deletes none that nothing keeps. The answer is copied, because a fake may answer with
// an object that it keeps.
func (f *bareFake) begin(o *object) func(*reply) {
	write := f.versions.Begin(o.resource)
	return func(a *reply) {
		if a == nil || a.unsent || a.unrelated || a.Unknown {
			write.End()
			return
		}
		var stored stream.Object
		if a.object != nil {
			stored = a.object.DeepCopy()
		}
		a.Key = cmp.Or(a.Key, o.key())
		a.UID, a.Version, stored = write.Saw(a.Key, stored)
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

func (*bareFake) fields(builtIn selectable.Fields) stream.FieldReader {
	return fake.Fields(reader(builtIn))
}

func (*bareFake) divides() bool { return false }

func (*bareFake) declaredFields(
	context.Context, schema.GroupVersionKind, []string,
) (selectable.Fields, error) {
	return nil, nil
}

func (*bareFake) selects(
	r stream.Resource, spec stream.Spec, listed *Unstructured,
) bool {
	return fake.Selects(r, spec.Selection, listed) && stream.SelectsAlternative(r, spec, listed)
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
	stream.Resource, stream.Key, func(stream.Object) bool,
) stream.Object {
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
