package kates

import (
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/jsonform"
)

// base is the version of an object that a change starts from.
type base struct {
	object *Unstructured // nil: the server is to be asked
	// partial: the object is only what a Go type knows of it. See patch.Blind.
	partial bool
}

// newest returns the newest known version of the object. A fake has no versions and so no
// conflicts; there the object is always read. A typed version will do if the change sees no more
// than that.
func (c *Client) newest(m *modification) base {
	var from base
	if whole, ok := c.known(m, stream.Whole).(*Unstructured); ok {
		from.object = whole
	}
	typed := c.known(m, stream.Typed)
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

// known returns the newest version in one form, nil if there is none.
func (c *Client) known(m *modification, form stream.Form) stream.Object {
	return c.core.server.newest(m.object.resource, m.object.key(), form)
}
