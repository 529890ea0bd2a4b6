package kates

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/conditions"
	"github.com/kates-go/kates/internal/fence"
	"github.com/kates-go/kates/internal/jsonform"
)

// SetStatus writes the status of an object, as the object has it, through the status subresource.
// It is for the only writer of the whole status: fields that the object's status lacks are
// removed, except those that T does not know. If several writers own parts of it, see
// [ModifyStatus] and [Client.SetConditions].
//
//	app := snap.App.DeepCopy()
//	app.Status.Replicas = n
//	_, err := kates.SetStatus(ctx, client, app)
//
// It compares with the newest version that the client knows. If that has the status already,
// nothing is sent. Conflicts with writers of the rest of the object are retried (see [Modify]).
// If the object has a UID, another object of its name is a conflict ([IsConflict]). The object is
// not modified. The result is the object as the server then has it, and the caller's own. T is as
// for [Modify]. See [Client.Create] for what holds for every write.
func SetStatus[T any](ctx context.Context, c *Client, object *T, opts ...WriteOption) (*T, error) {
	if known, ok := any(c.sameStatus(ctx, object, opts)).(*T); ok {
		return known, nil
	}
	about, err := c.looked(object, opts)
	if err == nil {
		err = jsonform.CheckTarget(new(T))
	}
	if err != nil {
		return nil, fmt.Errorf("set the status: %w", err)
	}
	given := new(T)
	if err := jsonform.Fill(given, about.object); err != nil {
		return nil, fmt.Errorf("set the status: %w", err)
	}
	m := &modification{op: opSetStatus}
	return modify(ctx, c, m, about.object, func(now *T) error { return copyStatus(now, given) }, about.options)
}

// sameStatus returns a copy of the object as a watch of Go types has it, if that has the same
// status. Otherwise it returns nil, and the two have to be compared as JSON. Encoding both is
// most of the cost of a call that changes nothing; this spares it.
func (c *Client) sameStatus(ctx context.Context, object any, opts []WriteOption) any {
	given, ok := object.(Object)
	if !ok || reflect.ValueOf(object).IsNil() || given.GetName() == "" || cmp.Or(ctx.Err(), fence.Check(ctx)) != nil {
		return nil
	}
	mapping, err := c.core.kinds.GVK(ctx, c.kindOf(given))
	if err != nil {
		return nil
	}
	r, key := c.resource(ctx, mapping), stream.Key{Namespace: given.GetNamespace(), Name: given.GetName()}
	if r.Namespaced && key.Namespace == "" {
		key.Namespace = c.core.namespace
	}
	known, whole := c.core.server.newest(r, key, stream.Typed), c.core.server.newest(r, key, stream.Whole)
	m := &modification{object: bare(r, key), options: c.writeOptions(about(given, opts))}
	switch {
	case known == nil || reflect.TypeOf(known) != reflect.TypeOf(object) || m.holds(known) != nil:
		return nil
	case whole != nil && coherence.Newer(whole.GetResourceVersion(), known.GetResourceVersion()):
		return nil
	}
	if is, ok := statusField(known); ok {
		if want, _ := statusField(given); reflect.DeepEqual(is.Interface(), want.Interface()) {
			return known.DeepCopyObject()
		}
	}
	return nil
}

// statusField returns the Status of an object whose Go type has one.
func statusField(o any) (reflect.Value, bool) {
	v := reflect.ValueOf(o).Elem()
	if v.Kind() != reflect.Struct {
		return v, false
	}
	status := v.FieldByName("Status")
	return status, status.IsValid() && status.CanSet()
}

// copyStatus sets the status of one object to that of another of its type. They may then share
// memory.
func copyStatus(to, from any) error {
	if content, ok := conditions.Untyped(to); ok {
		given, _ := conditions.Untyped(from)
		if status, has := given["status"]; has {
			content["status"] = status
		} else {
			delete(content, "status")
		}
		return nil
	}
	if status, ok := statusField(to); ok {
		status.Set(reflect.ValueOf(from).Elem().FieldByName("Status"))
		return nil
	}
	return fmt.Errorf("set the status: a %T has no Status", to)
}

// looked is an object as the caller has given it.
type looked struct {
	object  *Unstructured
	options []WriteOption // bind a write to that very object
}

func (c *Client) looked(object any, opts []WriteOption) (*looked, error) {
	u, err := jsonform.ToUnstructured(c.core.scheme, object)
	if err != nil {
		return nil, err
	}
	return &looked{u, about(u, slices.Clone(opts))}, nil
}
