package kates

import (
	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/jsonform"
)

// base is the version of an object that a change starts from.
type base struct {
	object *Unstructured // nil: the server is to be asked
	// partial: it is what a Go type knows of it. See blindPatch.
	partial bool
}

// newest is the newest known version of the object. A fake has no versions and so no conflicts: there
// only what it has now will do. What a Go type knows is good enough for who sees no more than that.
func (c *Client) newest(m *modification) base {
	var from base
	if whole, ok := c.known(m, accumulator.Whole).(*Unstructured); ok {
		from.object = whole
	}
	typed := c.known(m, accumulator.Typed)
	if typed != nil && m.shows(typed) &&
		(from.object == nil || coherence.Newer(typed.GetResourceVersion(), from.object.GetResourceVersion())) {
		if u, err := jsonform.ToUnstructured(nil, typed); err == nil {
			from = base{object: u, partial: true}
		}
	}
	if from.object == nil || m.holds(from.object) != nil {
		return base{}
	}
	return from
}

// known is the newest version in one form, nil if there is none.
func (c *Client) known(m *modification, form accumulator.Form) accumulator.Object {
	return c.core.server.newest(m.object.resource, m.object.key(), form)
}
