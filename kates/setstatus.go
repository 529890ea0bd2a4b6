package kates

import (
	"context"
	"fmt"
	"reflect"
	"slices"
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
	about, err := c.looked(object, opts)
	if err == nil {
		err = checkTarget(new(T))
	}
	if err != nil {
		return nil, fmt.Errorf("set the status: %w", err)
	}
	given := new(T)
	if err := fill(given, about.object); err != nil {
		return nil, fmt.Errorf("set the status: %w", err)
	}
	m := &modification{verb: "set the status of", subresource: "status"}
	return modify(ctx, c, m, about.object, func(now *T) error { return copyStatus(now, given) }, about.options)
}

// copyStatus makes the status of one object that of another of its type. They may share memory then.
func copyStatus(to, from any) error {
	if content, ok := untypedContent(to); ok {
		given, _ := untypedContent(from)
		if status, has := given["status"]; has {
			content["status"] = status
		} else {
			delete(content, "status")
		}
		return nil
	}
	if v := reflect.ValueOf(to).Elem(); v.Kind() == reflect.Struct {
		if status := v.FieldByName("Status"); status.IsValid() && status.CanSet() {
			status.Set(reflect.ValueOf(from).Elem().FieldByName("Status"))
			return nil
		}
	}
	return fmt.Errorf("set the status: a %T has no Status", to)
}

// looked is an object as the caller has looked at it.
type looked struct {
	object  *Unstructured
	options []WriteOption // binding a write to that very object
}

func (c *Client) looked(object any, opts []WriteOption) (*looked, error) {
	u, err := toUnstructured(c.core.scheme, object)
	if err != nil {
		return nil, err
	}
	return &looked{u, about(u, slices.Clone(opts))}, nil
}
