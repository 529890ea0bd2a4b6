package kates

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/client/kinds/selectable"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/loops/fence"
	objects "github.com/kates-go/kates/internal/object"
)

// server is how the cluster of a client behaves. There are two: an API server ([apiServer]), and
// client-go's bare fake ([bareFake]), which has neither versions nor UIDs for a user to see. A
// client gets one at construction; nothing else asks which one it is.
type server interface {
	wire.Requests

	// checkFields is an error if the server refuses a field selector of the query.
	checkFields(ctx context.Context, r objects.Resource, t target) error
	// checkList is an error if a list of the query would be refused for its fields, and the server
	// itself does not say so.
	checkList(r objects.Resource, q Query) error
	// fields reads the fields of a kind that are known without the server; nil: none.
	fields(builtIn selectable.Fields) objects.FieldReader
	// divides is false if the server cannot send a share of what is watched.
	divides() bool
	// selects reports whether an object belongs to the answer to a list with this selection.
	selects(r objects.Resource, spec objects.Spec, listed *Unstructured) bool
	// checkSubresource is an error if the server has no such subresource. likeObject says that it
	// is read or changed as a part of its object, and not created.
	checkSubresource(subresource string, likeObject bool) error

	// stored is what is sent to have an object stored, without what the server would drop of its
	// status and this server does not.
	stored(op operation, r objects.Resource, o *Unstructured) *Unstructured
	// begin is called before a write is sent. What it returns takes in the answer, or, with nil, that
	// the write has failed.
	begin(o *object) (answered func(*reply))
	// checkVersion is an error if an object's resource version cannot be compared.
	checkVersion(o *Unstructured) error
	// checkOwner is an error if an object cannot be an owner.
	checkOwner(o *object) error
	// newest is the newest version of an object that streams show in a form that will do, nil if
	// there is none. It has a resource version, so a write can be made conditional on it.
	newest(r objects.Resource, key objects.Key, has func(objects.Object) bool) objects.Object
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
func (s *apiServer) checkFields(ctx context.Context, r objects.Resource, t target) error {
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

func (*apiServer) checkList(objects.Resource, Query) error { return nil }

func (*apiServer) fields(builtIn selectable.Fields) objects.FieldReader { return reader(builtIn) }

func (*apiServer) divides() bool { return true }

// declaredFields returns the selectable fields of a custom kind, as far as they can be known.
func (c *core) declaredFields(
	ctx context.Context, kind schema.GroupVersionKind, wanted []string,
) (selectable.Fields, error) {
	declared, err := c.kinds.Declared(ctx, kind, wanted)
	if err != nil {
		const says = "selectable fields not known: own writes are settled by a list each"
		c.log.V(1).Info(says, "kind", kind.String(), "fields", wanted, "err", err)
	}
	return declared, err
}

func (*apiServer) selects(r objects.Resource, spec objects.Spec, listed *Unstructured) bool {
	return objects.SelectsAlternative(r, spec, listed)
}

func (*apiServer) checkSubresource(string, bool) error { return nil }

func (*apiServer) stored(_ operation, _ objects.Resource, o *Unstructured) *Unstructured {
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
	r objects.Resource, key objects.Key, has func(objects.Object) bool,
) objects.Object {
	o := s.core.streams.Newest(r, key, has)
	if o == nil || o.GetResourceVersion() == "" {
		return nil
	}
	return o
}

func (s *apiServer) shown(o *object) (live Object, known bool) {
	return s.core.streams.Lookup(o.resource, o.key(), intake.Meta)
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
	var found objects.Object
	known, ok := s.core.streams.Lookup(o.resource, o.key(), intake.Version)
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
