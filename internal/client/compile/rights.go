package compile

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/kates-go/kates/internal/client/rights"
	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
)

// namespaces is the resource of namespaces.
var namespaces = rights.Right{Resource: "namespaces"}

// Rights adds what the watch of one query of several needs. Asked: the server is asked for an
// object that has left the query.
func (c *Compiler) Rights(ctx context.Context, to *rights.Set, w Wanted, all []Wanted, asked bool) error {
	q, err := c.oneOf(w, all)
	if err != nil {
		return err
	}
	r, err := q.Resolve(ctx)
	if err != nil {
		return err
	}
	if q.Spaces != nil {
		to.Add(namespaces, "list", "watch")
	}
	for _, watch := range watches(q, r) {
		right := rights.Right{Group: r.Group, Resource: r.Resource, Namespace: watch.Namespace}
		right.Name = nameIn(watch)
		to.Add(right, "list", "watch")
		if asked {
			to.Add(right, "get")
		}
		if watch.Namespace != "" { // its roles are deleted with it
			of := namespaces
			of.Name = watch.Namespace
			to.Add(of, "get")
		}
	}
	return nil
}

// watches returns the watches of a query. What others name has one for each name, and the names are
// not known.
func watches(q query.Query, r objects.Resource) []objects.Spec {
	if q.Refs != nil {
		return []objects.Spec{{}}
	}
	return q.Watches(r)
}

// nameIn returns the one name that a watch selects by, as an API server finds it in the selector.
func nameIn(s objects.Spec) string {
	if s.Fields == nil {
		return ""
	}
	name, _ := s.Fields.RequiresExactMatch("metadata.name")
	return name
}

// EveryField is Fields for all fields of a struct type: those whose query comes at run time are
// like the others.
func (c *Compiler) EveryField(ctx context.Context, s Struct, t reflect.Type, queries []Wanted) (Struct, error) {
	var now, later []Wanted
	for _, q := range queries {
		if t.Kind() == reflect.Struct {
			if sf, ok := t.FieldByName(q.Name); ok && isLater(sf) {
				later = append(later, q)
				continue
			}
		}
		now = append(now, q)
	}
	s, err := c.Fields(ctx, s, t, now)
	if err != nil {
		return s, err
	}
	for _, w := range s.Later {
		if !slices.ContainsFunc(later, func(q Wanted) bool { return q.Name == w.Name }) {
			later = append(later, Wanted{Name: w.Name})
		}
	}
	all, err := c.WantedAtRunTime(ctx, s, t, later)
	if err != nil {
		return s, fmt.Errorf("%w; its query comes later", err)
	}
	s.Wanted, s.Later = append(s.Wanted, all...), nil
	return s, CheckStruct(s.Shape(), s.Wanted)
}
