package compile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
)

// Functions are the functions of users that get the objects of a query. Two of them are the same
// function if they are the same pointer. nil: the query has none.
type Functions struct {
	Where     *Where
	Transform *Transform
	Signal    *Signal
	Key       *Key
	byDefault bool // the Transform is that of a watch option
}

// check returns an error if a function of the query makes no sense.
func (f *Functions) check() error {
	for _, f := range f.all() {
		if f.reads.err != nil {
			return fmt.Errorf("%s makes no sense: %w", f.name, f.reads.err)
		}
	}
	return nil
}

// function is one of a query's functions.
type function struct {
	name  string // in errors
	reads Reads
}

// all returns the functions that the query has.
func (f *Functions) all() (all []function) {
	if f.Where != nil {
		all = append(all, function{"its Where", f.Where.Reads})
	}
	if f.Key != nil {
		all = append(all, function{"its Key", f.Key.Reads})
	}
	if f.Signal != nil {
		all = append(all, function{"its Signal", f.Signal.Reads})
	}
	if f.Transform != nil {
		name := "its Transform"
		if f.byDefault {
			name = "WithTransform"
		}
		all = append(all, function{name, f.Transform.Reads})
	}
	return all
}

// checkTypes returns an error if a function of a query takes an API type of another kind than the
// one that the field's Go type fixes. A Ref's function gets the objects of the query it names.
func (c *Compiler) checkTypes(w *Wanted, all []Wanted) error {
	for _, f := range w.all() {
		if err := c.takesOther(f.reads, w); err != nil {
			return fmt.Errorf("the function of %s %w", f.name, err)
		}
	}
	for i, r := range w.Refs {
		for j := range all {
			if all[j].Name != r.ref.Query {
				continue
			}
			if err := c.takesOther(r.reads, &all[j]); err != nil {
				return fmt.Errorf("the function of its reference %d, of %q, %w", i, r.ref.Query, err)
			}
		}
	}
	return nil
}

// checkKind is checkTypes for functions of the query itself, when its kind is known.
func (c *Compiler) checkKind(w *Wanted, kind schema.GroupVersionKind) error {
	of := *w
	of.GVK = kind
	for _, f := range w.all() {
		if err := c.takesOther(f.reads, &of); err != nil {
			return fmt.Errorf("%w: the function of %s %w", query.ErrUnfit, f.name, err)
		}
	}
	return nil
}

// takesOther returns an error if a function takes a registered type, and of no version of the kind
// of a query, or if it reads more than the metadata that the query holds.
func (c *Compiler) takesOther(r Reads, w *Wanted) error {
	for _, one := range r.all {
		var kinds []schema.GroupVersionKind
		if one.takes != nil {
			kinds = c.KindsOf(bareType(one.takes))
		}
		same := func(kind schema.GroupVersionKind) bool { return kind.GroupKind() == w.GVK.GroupKind() }
		if !w.GVK.Empty() && len(kinds) > 0 && !slices.ContainsFunc(kinds, same) {
			return fmt.Errorf("takes a %s, but the objects of %q are of kind %s", one.takes, w.Name, w.GVK.GroupKind())
		}
		if w.watchedForm() != objects.Metadata {
			continue
		}
		if one.any {
			return fmt.Errorf("takes a %s, but of the objects of %q only the metadata is held: have it take a metav1.Object", one.takes, w.Name)
		}
		if i := slices.IndexFunc(one.paths, isBeside); i >= 0 {
			return fmt.Errorf("reads %s, but of the objects of %q only the metadata is held", strings.Join(one.paths[i], "."), w.Name)
		}
	}
	return nil
}

func bareType(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
