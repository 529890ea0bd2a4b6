package kates

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/kinds/selectable"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// A Projection says which fields of its objects a query holds. The zero value holds all. See
// [Keep].
type Projection struct {
	paths []string
	set   bool
}

// Keep returns a [Query.Projection] that holds only the fields at the paths:
//
//	kates.Query{Name: "Pods", Projection: kates.Keep("spec.nodeName", "status.podIP")}
//
// All other fields of the objects are as if they were not there: zero in a Go type, and missing in
// an untyped object. The client does not decode them, and they take no memory but the size of the
// Go type itself. Of many small objects in a large Go type that is most of it: a struct of your
// own is smaller.
//
// A path is that of the object's JSON, with dots. It leads through a list into each of its
// elements (spec.containers.image; the list keeps its length), and through a map by a key, which
// is in quotes and brackets where it has dots:
//
//	kates.Keep("spec.containers.image", `metadata.annotations["example.com/team"]`)
//
// A path to an object, a list or a map holds it as a whole, whatever other paths say. If the
// field's Go type has no field at a path, Watch returns an error that names one of a similar
// name. For an untyped field nobody knows.
//
// These fields are always held: apiVersion, kind, and of the metadata name, namespace, uid,
// resourceVersion, deletionTimestamp and generation. And a query holds what its selectors and the
// functions of this package need that it has as Key or Signal: the labels for a label selector, a
// [Lookup], a [Lister], [LabelsChanged] and [ByLabel], ownerReferences for [ByOwner] and for what
// a controller owns, annotations for [AnnotationsChanged], the field of [ByField], and so on.
// Functions of your own (Key, Signal, Transform, Refs, predicates) get the objects as they are
// held: name the fields that they read. Finalizers are not held unless they are named;
// [UnderFinalizer] and the like do not need them.
//
// Such an object is no whole one. [Modify], [ModifyStatus], [Client.SetConditions],
// [Client.AddFinalizer], [Client.ApplyOwned] and the like never take it for one: they start from
// a whole object, and ask the server for it if no watch has it. Nor does [GetCached]. But an
// [Client.Update] of a copy of it would remove whatever is not held. Update, UpdateStatus,
// [SetStatus], Apply and Upsert refuse it with [ErrPartial]. They recognize it by its UID, and by
// the creationTimestamp that each object has and this one lacks. So they do not if the projection
// holds that, or all of the metadata: then it is up to you. Write with Modify or a patch.
//
// Queries share a watch if they hold the same fields, however these are written. A query with a
// projection is not served from the watch of another one ([Tuning].ShareWider). A change of fields
// that are not held is a new version of the object, and a signal: see [Query.Signal].
//
// It goes with neither MetadataOnly nor a field of a struct type of your own, which says itself
// what is held. List ignores it.
func Keep(paths ...string) Projection { return Projection{paths: paths, set: true} }

// form returns the form in which a target's objects are held.
func (c *Client) form(t target) (objects.Form, error) {
	base := t.formOf()
	if !t.Projection.set {
		return base, nil
	}
	if err := t.projectable(base); err != nil {
		return "", err
	}
	paths := append([]project.Path{}, objects.Identity...)
	for _, text := range t.Projection.paths {
		path, err := project.ParsePath(text)
		if err != nil {
			return "", fmt.Errorf("its Projection: %w", err)
		}
		paths = append(paths, path)
	}
	paths = append(paths, t.needed()...)
	typ, typed := wire.TypeOf(c.core.Scheme, t.kind)
	k, err := project.NewKeep(paths...)
	if err != nil {
		return "", fmt.Errorf("its Projection, with what its functions need: %w", err)
	}
	if typed {
		if _, err := k.For(typ); err != nil {
			return "", fmt.Errorf("its Projection: %w", err)
		}
	}
	for _, path := range t.judged() {
		// Other kinds may have a field of that name elsewhere, which their Go type has not.
		if base != objects.Typed || project.Has(typ, path...) {
			paths = append(paths, path)
		}
	}
	if k, err = project.NewKeep(paths...); err != nil {
		return "", fmt.Errorf("its Projection, with what its AnyOf is judged by: %w", err)
	}
	return base.Keeping(k), nil
}

// projectable returns an error if a projection makes no sense for a target.
func (t target) projectable(base objects.Form) error {
	switch {
	case len(t.Projection.paths) == 0:
		return errors.New("its Projection names no field: use MetadataOnly, or leave it out")
	case base == objects.Metadata:
		return errors.New("its Projection says which fields of whole objects are held, and it wants metadata only: choose one")
	case t.typ == nil:
		return nil
	}
	elem := elementOf(t.typ)
	if elem == nil || elem.Kind() != reflect.Struct || reflect.PointerTo(elem).Implements(reflect.TypeFor[Object]()) {
		return nil
	}
	return fmt.Errorf("its type %s says itself which fields are held: leave its Projection out", elem)
}

// needed returns the paths of fields that the query's selectors, and its functions that this
// package has made, need of each object.
func (t target) needed() []project.Path {
	var q question
	selects := t.labelled || t.typ != nil && tables.LookupElement(t.typ) != nil
	for _, s := range t.selections() {
		selects = selects || s.LabelSelector != "" || s.Labels != nil
	}
	if selects {
		q.needs = append(q.needs, labelsPath)
	}
	if isKeyOf(t.Key, keysOfOurs) {
		t.Key(&q)
	}
	q.askSignal(t.Signal)
	return q.needs
}

// judged returns the paths of what AnyOf selects by, but for metadata: the client judges that.
func (t target) judged() (paths []project.Path) {
	for _, field := range fieldsSelected(Query{AnyOf: t.AnyOf}) {
		for _, path := range selectable.Paths(field) {
			paths = append(paths, strings.Split(path, "."))
		}
	}
	return paths
}

// keyOfMetadata reports whether this package has made the query's Key, which reads metadata alone.
func (t target) keyOfMetadata() bool {
	if !isKeyOf(t.Key, keysOfOurs) {
		return isKeyOf(t.Key, keysByIdentity)
	}
	var q question
	t.Key(&q)
	_, ok := besideOf(q.needs)
	return ok
}

// askSignal asks a [Query.Signal] what it needs, if this package has made it. Any other may need
// whole objects.
func (q *question) askSignal(f func(old, current Object) bool) {
	switch {
	case f == nil:
	case slices.ContainsFunc([]any{GenerationChanged, LabelsChanged, AnnotationsChanged, AnySignal()}, func(known any) bool { return sameCode(f, known) }):
		f(nil, q)
	default:
		q.whole = true
	}
}

// isKeyOf reports whether a function Key is one of these, or made by the same code.
func isKeyOf(f func(Object) []string, of []func(Object) []string) bool {
	return f != nil && slices.ContainsFunc(of, func(known func(Object) []string) bool { return sameCode(f, known) })
}

// keysOfOurs are the functions Key of this package that need more than which object it is. What
// makes them is not inlined, so each is known by its code: see [sameCode].
var keysOfOurs = []func(Object) []string{
	ByLabel(""), ByAnnotation(""), ByRemoteOwner(""), ByOwner(""), ByField(""),
	keyOfController(&meta.RESTMapping{Scope: meta.RESTScopeRoot}),
}

// keysByIdentity are those that need nothing else.
var keysByIdentity = []func(Object) []string{ByNamespace, ByName, ByNamespacedName, ByUID}

var (
	labelsPath      = project.Path{"metadata", "labels"}
	annotationsPath = project.Path{"metadata", "annotations"}
	ownersPath      = project.Path{"metadata", "ownerReferences"}
	generationPath  = project.Path{"metadata", "generation"}
)

// needs answers a question of which fields a function needs, and reports whether it was one.
func needs(o Object, paths ...project.Path) bool {
	q, ok := o.(*question)
	if ok {
		q.needs = append(q.needs, paths...)
	}
	return ok
}

// ErrPartial is returned by methods that would replace a whole object by one of which a watch
// holds only some fields ([Query.Projection]): what is not held would be lost.
var ErrPartial = core.ErrPartial
