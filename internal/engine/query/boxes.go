package query

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kates-go/kates/internal/engine/plan"
	"github.com/kates-go/kates/internal/object"
)

// An object is in exactly one stream of a query, for all time: its namespace and its name never
// change, and say in which. So nothing has to decide which of several streams is right. The rules:
//
//   - D1. Each alternative lies in a box: in a namespace or in all, under a name or any. A query
//     without AnyOf is one alternative for each of its namespaces. Boxes that overlap are widened
//     until all are disjoint. Each is a stream. Where the query names its namespaces, no box leaves
//     them, so rights there suffice.
//   - D2. The server of a box selects by what its alternatives have in common.
//   - D3. What is left of them is judged here, for each version of an object.
//
// Package stream keeps D2 and D3: see [object.Common].

// alternative is a selection, and the box in which it selects.
type alternative struct {
	plan.Box
	object.Selection
}

// Watches returns the lists and watches of the query for a resource. No object is in two of them.
func (q Query) Watches(r object.Resource) (all []object.Spec) {
	alternatives := q.alternatives(r)
	boxes := make([]plan.Box, len(alternatives))
	for i, a := range alternatives {
		boxes[i] = a.Box
	}
	for _, box := range plan.Cover(boxes) {
		var in []object.Selection
		for _, a := range alternatives {
			if a.In(box) {
				in = append(in, a.within(box))
			}
		}
		spec := object.Spec{Namespace: box.Namespace, Where: q.Where, Form: q.Form, Transform: q.Transform, Valid: q.Judge()}
		spec.Selection, spec.AnyOf = object.Common(in)
		spec.Shard = q.Shard
		all = append(all, spec)
	}
	return all
}

// alternatives returns those of the query, in each of its namespaces.
func (q Query) alternatives(r object.Resource) (all []alternative) {
	namespaces := q.Namespaces
	if namespaces == nil {
		namespaces = []string{q.Namespace}
	}
	if !r.Namespaced {
		namespaces = []string{""}
	}
	selections := q.AnyOf
	if selections == nil {
		selections = []object.Selection{{}}
	}
	for _, ns := range namespaces {
		for _, s := range selections {
			a := alternative{plan.Box{Namespace: ns}, q.narrowed(s)}
			ok := true
			if r.Namespaced && q.AnyOf != nil && q.Spaces == nil {
				a.Namespace, a.Fields, ok = place(ns, a.Fields)
			}
			if a.Fields != nil {
				a.Name, _ = a.Fields.RequiresExactMatch(nameField)
				ok = ok && (q.AnyOf == nil || !requiresOther(a.Fields, a.Name))
			}
			if ok {
				all = append(all, a)
			}
		}
	}
	return all
}

// requiresOther reports whether fields require another name, too: then they select nothing, and a
// box under one of the names would overlap with that under the other.
func requiresOther(f fields.Selector, name string) bool {
	return slices.ContainsFunc(f.Requirements(), func(r fields.Requirement) bool {
		return r.Field == nameField && r.Operator != selection.NotEquals && r.Value != name
	})
}

// within returns the selection of an alternative as that of a wider box: with the namespace that
// it requires.
func (a alternative) within(box plan.Box) object.Selection {
	s := a.Selection
	if a.Namespace != box.Namespace {
		s = s.And(object.Selection{Fields: fields.OneTermEqualSelector(namespaceField, a.Namespace)})
	}
	return s
}
