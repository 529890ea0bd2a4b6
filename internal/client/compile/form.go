package compile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/kinds/selectable"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// watchedForm returns the form in which the query's objects are watched, but for what a projection
// drops of them.
func (w *Wanted) watchedForm() objects.Form {
	if w.MetadataOnly {
		return objects.Metadata
	}
	return w.Form
}

// projected returns the form of a query's objects. Where its field's elements are structs of some
// fields, that is a projection: what the struct has, and the metadata that functions of this
// library say they need. Any other function may read whatever it likes, so whole objects are held
// for it, which is logged. Everything that is wanted of the objects is known here, and not later.
func (c *Compiler) projected(w *Wanted, all []Wanted) objects.Form {
	if w.Form == objects.Typed && !fake.OfKubernetes(w.GVK) && len(fieldsOf(w.AnyOf)) > 0 {
		// The alternatives are judged by what the server compares, which is its JSON. A custom
		// kind's Go type may lack the field, or write it in another way.
		return objects.Whole
	}
	elem := w.element()
	// A union judges its objects by all of its selectors.
	if c.Untyped || w.MetadataOnly || w.Form != objects.Whole || w.Role != "" || w.AnyOf != nil || elem == nil || !tables.Projects(elem) {
		return w.Form
	}
	why := w.takesWhole(elem, all)
	beside, ok := besideOf(w.needed(elem))
	if why == "" && !ok {
		why = "a function reads a field that the type may lack"
	}
	if why != "" {
		c.Log.Info("whole objects are held, though the field's type has some of their fields only",
			"query", w.Name, "type", elem.String(), "why", why)
		return w.Form
	}
	return objects.Projection{Into: elem, Beside: beside}.Form()
}

// element is the type of the elements of the query's field, nil if the query has no field.
func (w *Wanted) element() reflect.Type {
	if w.Type == nil {
		return nil
	}
	return elementOf(w.Type)
}

// besideOf is the metadata that has the fields at some paths. ok is false if it has not all of
// them.
func besideOf(paths []project.Path) (b objects.Beside, ok bool) {
	for _, path := range paths {
		switch {
		case slices.Equal(path, labelsPath):
			b.Labels = true
		case slices.Equal(path, annotationsPath):
			b.Annotations = true
		case slices.Equal(path, ownersPath):
			b.Owners = true
		case slices.Equal(path, finalizersPath):
			b.Finalizers = true
		case slices.Equal(path, generationPath):
			b.Generation = true
		default:
			return b, false
		}
	}
	return b, true
}

// takesWhole says which function may read any field of the query's objects; "" if there is none.
// Others say what they read, or take the type of its field's elements.
func (w *Wanted) takesWhole(elem reflect.Type, all []Wanted) string {
	const anyField = " may read any field"
	if t := w.Transform; t != nil && (t.drops == nil || project.Has(elem, t.drops...)) {
		return "Transform" + anyField
	}
	for _, f := range w.all() {
		if f.reads.takesOtherThan(elem) {
			return strings.TrimPrefix(f.name, "its ") + anyField
		}
	}
	for _, of := range all {
		for _, r := range of.Refs {
			if r.ref.Query == w.Name && r.ref.Takes != elem {
				return "Refs of " + of.Name + anyField
			}
		}
	}
	return ""
}

// checkProjection returns an error if a kind has not what the query's struct type names.
func (c *Compiler) checkProjection(w *Wanted, kind schema.GroupVersionKind) error {
	p, ok := w.Form.Projection()
	if elem := w.element(); !ok && w.Keep == nil && w.Form != objects.Whole && elem != nil && tables.Projects(elem) {
		p, ok = objects.Projection{Into: elem}, true
	}
	if !ok {
		return nil
	}
	if err := wire.Projects(c.Scheme, kind, p); err != nil {
		return fmt.Errorf("%w: %w", query.ErrUnfit, err)
	}
	return nil
}

// form returns the form in which a query's objects are held.
func (c *Compiler) form(w *Wanted) (objects.Form, error) {
	base := w.watchedForm()
	if w.Keep == nil {
		return base, nil
	}
	if err := w.projectable(base); err != nil {
		return "", err
	}
	paths := append([]project.Path{}, objects.Identity...)
	for _, text := range w.Keep {
		path, err := project.ParsePath(text)
		if err != nil {
			return "", fmt.Errorf("its Projection: %w", err)
		}
		paths = append(paths, path)
	}
	chosen, err := project.NewKeep(paths...)
	if err != nil {
		return "", fmt.Errorf("its Projection: %w", err)
	}
	typ, typed := wire.TypeOf(c.Scheme, w.GVK)
	paths = append(paths, w.selected()...)
	if w.Where != nil && w.Where.readsAny() {
		return "", errors.New("its Where may read any field, and its Projection holds some: have it take a metav1.Object, or a struct with the fields that it reads")
	}
	for _, f := range w.all() {
		read, err := f.reads.held(typ, chosen)
		if err != nil {
			return "", fmt.Errorf("the function of %s %w", f.name, err)
		}
		paths = append(paths, read...)
	}
	k, err := project.NewKeep(paths...)
	if err != nil {
		return "", fmt.Errorf("its Projection, with what its functions need: %w", err)
	}
	if typed {
		if _, err := k.For(typ); err != nil {
			return "", fmt.Errorf("its Projection: %w", err)
		}
	}
	for _, path := range w.judged() {
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

// projectable returns an error if a projection makes no sense for a query.
func (w *Wanted) projectable(base objects.Form) error {
	switch {
	case len(w.Keep) == 0:
		return errors.New("its Projection names no field: use MetadataOnly, or leave it out")
	case base == objects.Metadata:
		return errors.New("its Projection says which fields of whole objects are held, and it wants metadata only: choose one")
	}
	elem := w.element()
	if elem == nil || elem.Kind() != reflect.Struct || reflect.PointerTo(elem).Implements(reflect.TypeFor[objects.Object]()) {
		return nil
	}
	return fmt.Errorf("its type %s says itself which fields are held: leave its Projection out", elem)
}

// needed returns the paths of fields that the query's selectors and functions need of each object
// that is held as a type.
func (w *Wanted) needed(held reflect.Type) (paths []project.Path) {
	paths = w.selected()
	for _, f := range w.all() {
		paths = append(paths, f.reads.beside(held)...)
	}
	return paths
}

// selected returns the paths of fields that the query's selectors need of each object.
func (w *Wanted) selected() (paths []project.Path) {
	selects := w.Labelled || w.Type != nil && tables.LookupElement(w.Type) != nil
	for _, s := range w.selections() {
		selects = selects || s.LabelSelector != ""
	}
	if selects {
		paths = append(paths, labelsPath)
	}
	return paths
}

// judged returns the paths of what AnyOf selects by, but for metadata: the client judges that.
func (w *Wanted) judged() (paths []project.Path) {
	for _, field := range fieldsOf(w.AnyOf) {
		for _, path := range selectable.Paths(field) {
			paths = append(paths, strings.Split(path, "."))
		}
	}
	return paths
}
