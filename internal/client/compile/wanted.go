package compile

import (
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
)

// Wanted is a query as the user has written it, with what a struct's field adds to it. The
// documentation of kates.Query says what its fields mean.
type Wanted struct {
	Name string // of the query, and of the snapshot's field
	Kind string
	Place
	Selection
	AnyOf        []Selection
	Optional     bool
	MetadataOnly bool
	Keep         []string // the paths of fields that are held; nil: no projection
	Functions
	Refs []Ref
	Field
	Given *query.Given // what the user has written; nil: nothing
	After *query.Given // what that is to replace; nil: whatever there is
}

// Place says in which namespaces objects are.
type Place struct {
	Namespace         string
	Namespaces        []string
	NamespaceSelector string
}

// Selection is labels and fields that select an object, in words.
type Selection struct {
	LabelSelector string
	FieldSelector string
}

// Field is what the Go type of a struct's field says. It is empty for a query without a field.
type Field struct {
	GVK   schema.GroupVersionKind // empty: the type fixes no kind
	Form  objects.Form            // of the objects
	Index []int                   // of the field
	Type  reflect.Type            // of the field that objects are put into
	Role  Role                    // in a controller's type
	// Labelled: objects are looked up by their labels.
	Labelled bool
	// scope of the root of a controller that owns objects: their keys go by it. Else it is empty.
	scope meta.RESTScopeName
}

// selections returns the query's own selection, and those of AnyOf.
func (w *Wanted) selections() []Selection { return append([]Selection{w.Selection}, w.AnyOf...) }

// Narrows reports whether the query may leave objects of its namespaces out, or whole namespaces
// by their labels.
func (w *Wanted) Narrows() bool {
	s := w.Selection
	return s.LabelSelector != "" || s.FieldSelector != "" ||
		w.AnyOf != nil || w.NamespaceSelector != "" || w.Refs != nil || w.Where != nil
}

// selectors returns the selectors, parsed; nil where there are none.
func (s Selection) selectors() (objects.Selection, error) {
	return query.ParseSelection(s.LabelSelector, s.FieldSelector)
}

// fieldsOf returns the fields that selections name, except for metadata's.
func fieldsOf(all []Selection) (fields []string) {
	for _, one := range all {
		s, err := one.selectors()
		if err != nil || s.Fields == nil {
			continue
		}
		for _, req := range s.Fields.Requirements() {
			if req.Field != "metadata.name" && req.Field != "metadata.namespace" {
				fields = append(fields, req.Field)
			}
		}
	}
	return fields
}

// checkNamespaces returns an error for namespaces and selections that make no sense.
func (w *Wanted) checkNamespaces() error {
	switch {
	case w.Namespaces != nil && w.Namespace != "":
		return errors.New("it has both a Namespace and Namespaces: say one")
	case w.NamespaceSelector != "" && (w.Namespace != "" || w.Namespaces != nil):
		return errors.New("a NamespaceSelector narrows all namespaces: it goes with neither Namespace nor Namespaces")
	case slices.Contains(w.Namespaces, ""):
		return errors.New("one of its Namespaces is empty: for all namespaces leave them out")
	case w.AnyOf != nil && len(w.AnyOf) == 0:
		return errors.New("AnyOf is empty, so nothing could be selected: leave it out to select everything")
	}
	for _, namespace := range append(slices.Clone(w.Namespaces), w.Namespace) {
		if err := core.CheckNamespace(namespace); err != nil {
			return err
		}
	}
	return nil
}
