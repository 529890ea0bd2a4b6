package kates

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/conditions"
	"github.com/kates-go/kates/internal/fence"
	"github.com/kates-go/kates/internal/jsonform"
)

// SetStatus writes the status of an object, as it is in the object, through the status subresource. It is for the
// one writer of all of the status: what the object's status does not have is removed, except for fields that T
// does not know. Where several write parts of it, see [ModifyStatus] and [Client.SetConditions].
//
//	app := snap.App.DeepCopy()
//	app.Status.Replicas = n
//	_, err := kates.SetStatus(ctx, client, app)
//
// What is compared with is the newest version that the client knows; where that has the status already, nothing is
// sent. Conflicts with writers of the rest of the object are retried (see [Modify]). With its UID, another object
// of its name is a conflict ([IsConflict]). The object is not modified; what is returned is the object as the
// server has it then, and the caller's own. T is as for [Modify]. See [Client.Create] for what holds for every
// write.
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

// sameStatus is a copy of what a watch of Go types knows of an object, if that has the very same status; else nil, and it is to be looked
// at closer. It spares making JSON of both, which is most of what it costs to find out that there is nothing to do.
func (c *Client) sameStatus(ctx context.Context, object any, opts []WriteOption) any {
	given, ok := object.(Object)
	if !ok || reflect.ValueOf(object).IsNil() || given.GetName() == "" || cmp.Or(ctx.Err(), fence.Check(ctx)) != nil {
		return nil
	}
	mapping, err := c.core.kinds.GVK(ctx, c.kindOf(given))
	if err != nil {
		return nil
	}
	r, key := c.resource(ctx, mapping), accumulator.Key{Namespace: given.GetNamespace(), Name: given.GetName()}
	if r.Namespaced && key.Namespace == "" {
		key.Namespace = c.core.namespace
	}
	known, whole := c.core.server.newest(r, key, accumulator.Typed), c.core.server.newest(r, key, accumulator.Whole)
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

// statusField is the Status of an object whose Go type has one.
func statusField(o any) (reflect.Value, bool) {
	v := reflect.ValueOf(o).Elem()
	if v.Kind() != reflect.Struct {
		return v, false
	}
	status := v.FieldByName("Status")
	return status, status.IsValid() && status.CanSet()
}

// copyStatus makes the status of one object that of another of its type. They may share memory then.
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

// looked is an object as the caller has looked at it.
type looked struct {
	object  *Unstructured
	options []WriteOption // binding a write to that very object
}

func (c *Client) looked(object any, opts []WriteOption) (*looked, error) {
	u, err := jsonform.ToUnstructured(c.core.scheme, object)
	if err != nil {
		return nil, err
	}
	return &looked{u, about(u, slices.Clone(opts))}, nil
}
