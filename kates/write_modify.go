package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/loops/fence"
	"github.com/kates-go/kates/internal/loops/keyed"
	objects "github.com/kates-go/kates/internal/object"
)

// Modify changes an object with a function: read, change, write, and again if another writer was
// faster. The resource, an object of any form, names the object: kind, namespace and name. T is
// the form in which change sees it: a Go type of that kind and version (another is an error),
// [Unstructured], map[string]any, or any struct with the right JSON.
//
//	_, err := kates.Modify(ctx, client, deployment, func(d *appsv1.Deployment) error {
//	    d.Spec.Replicas = &n
//	    return nil
//	})
//
// It starts from the newest version that the client knows: the answer to an own write, or what a
// watch has brought. The watch holds it untyped and whole, or in the very form T, also if T is a
// struct of the program's own (then without managedFields, unless [WithManagedFields]). If the
// client watches no such object, Modify first reads it from the server; the fake client always
// does. An object that does not exist is [IsNotFound]; see [Client.Upsert].
//
// The object that change gets is its own, to write to and to keep. Change may be called several
// times, each time with a newer object or with one that was read, so it decides by its argument.
// It runs without any lock held. Its error ends Modify and is returned as it is; then nothing has
// been written.
//
// Modify sends a JSON merge patch (RFC 7396) of what change altered, on the condition that it is
// still the same object (UID) at the same version. So fields that T does not know stay. This
// holds for the elements of a list that is sent, too: an unaltered element stays as the server
// has it, and an altered one keeps the fields that T does not know. An element is found by its
// key (name, type, …), or else by its place.
//
// A watch may know no more of the object than T does. If then a list with remaining elements was
// altered, Modify sends a JSON patch (RFC 6902), which names what was altered in the elements. If
// T cannot tell what the patch would meet (an object that is either empty or absent), or if the
// server refuses the patch, Modify reads the object and calls change again. As a rule, a write of
// a status with conditions is one request. Modify never starts from objects that a watch holds
// shortened.
//
// If change alters nothing, nothing is sent, and the known object is returned. With [DryRun],
// [IfUID] or [IfResourceVersion] the server is asked for the object first. An object's
// apiVersion, kind, name, namespace and UID cannot be changed: that is an error. Fields that only
// the server writes (resourceVersion, managedFields, …) are left out. The server ignores changes
// of a status that is a subresource. If that leaves nothing of what change has altered in the
// status, the error is [ErrDropped], and the rest is stored. See [ModifyStatus].
//
// After a conflict Modify waits a little, reads the object from the server, since watches may
// lag, and calls change again. After some twenty tries it returns the conflict ([IsConflict]).
// [IfUID] and [IfResourceVersion] bind it to one object and to one version; then a conflict is
// final. A [DryRun] does all of this but store the result.
//
// It returns the server's answer, which is the caller's own. See [Client.Create] for what holds
// for every write.
func Modify[T any](ctx context.Context, c *Client, resource any, change func(*T) error, opts ...WriteOption) (*T, error) {
	return modify(ctx, c, &modification{op: opModify}, resource, change, opts)
}

// ModifyStatus is [Modify] for the status of an object, through its status subresource. It sends
// only the status. It is an error if change alters anything else, since the server would ignore
// it; then nothing is sent. A kind without that subresource is an error that says so. It is not
// [IsNotFound], which is what the server answers.
func ModifyStatus[T any](ctx context.Context, c *Client, resource any, change func(*T) error, opts ...WriteOption) (*T, error) {
	return modify(ctx, c, &modification{op: opModifyStatus}, resource, change, opts)
}

// modifyBackoff paces the tries. Under contention each round has one winner, so longer and longer
// waits help little.
var modifyBackoff = wait.Backoff{Duration: 5 * time.Millisecond, Factor: 1.3, Jitter: 1, Steps: 20}

// modification is a call of Modify, independent of its T.
type modification struct {
	op      operation
	object  *object
	options writeOptions
	// bound: if the object that was given has a UID, another object of its name is a conflict.
	bound bool
	// replaces: a part of the object that was given replaces that of the server's.
	replaces bool
	// shows reports whether an object that is not untyped shows all that the change depends on, and
	// all that it may write to. Nil: a *T does.
	shows func(objects.Object) bool
	// edit changes base and returns it in the form of the Go type, before and after.
	edit func(base *Unstructured) (before, after *Unstructured, err error)
	// view returns what the Go type has of an object.
	view func(*Unstructured) (*Unstructured, error)
}

func modify[T any](ctx context.Context, c *Client, m *modification, resource any, change func(*T) error, opts []WriteOption) (*T, error) {
	m.options = c.writeOptions(opts)
	err := cmp.Or(m.options.wrong, jsonform.CheckTarget(new(T)))
	if err == nil && change == nil {
		err = errors.New("the function that changes the object is nil")
	}
	if err == nil {
		if m.object, err = c.object(ctx, resource); err == nil {
			err = cmp.Or(m.object.named(), c.fits(reflect.TypeFor[T](), m.object.resource.Kind), fence.Check(ctx), ctx.Err())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.op, err)
	}
	if m.replaces {
		if err := c.checkWhole(m.object, m.object.Unstructured); err != nil {
			return nil, m.object.failed(m.op, err)
		}
	}
	if uid := m.object.GetUID(); m.bound && uid != "" && m.options.uid == nil {
		m.options.uid = &uid
	}
	if m.shows == nil {
		m.shows = func(o objects.Object) bool { return reflect.TypeOf(held(o)) == reflect.TypeFor[*T]() }
	}
	m.view = func(o *Unstructured) (*Unstructured, error) {
		view := new(T)
		if err := jsonform.Fill(view, o); err != nil {
			return nil, err
		}
		return jsonform.ToUnstructured(nil, view)
	}
	m.edit = func(base *Unstructured) (before, after *Unstructured, err error) {
		var view *T
		if err := jsonform.Fill(&view, base); err != nil {
			return nil, nil, m.object.failed(m.op, err)
		}
		if before, err = jsonform.ToUnstructured(nil, view); err != nil {
			return nil, nil, m.object.failed(m.op, err)
		}
		if err := change(view); err != nil {
			return nil, nil, err
		}
		if after, err = jsonform.ToUnstructured(nil, view); err != nil {
			return nil, nil, m.object.failed(m.op, err)
		}
		return before, after, nil
	}
	got, err := c.modify(ctx, m)
	if err != nil {
		return nil, err
	}
	var result *T
	return result, jsonform.Fill(&result, got)
}

// modify tries until the object is written, or an error is final.
func (c *Client) modify(ctx context.Context, m *modification) (*Unstructured, error) {
	from, backoff := c.newest(m), modifyBackoff
	for {
		got, again, err := c.tryModify(ctx, m, from)
		if !again {
			return got, err
		}
		if backoff.Steps == 0 {
			return nil, fmt.Errorf("%w (after %d tries)", err, modifyBackoff.Steps+1)
		}
		keyed.Pause(ctx, backoff.Step(), nil)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w (last: %v)", m.object.failed(m.op, ctx.Err()), err)
		}
		from = base{} // from was not the newest version
	}
}

// tryModify changes an object and writes it. If from has none, it reads the object first. Again:
// another try with the server's object may succeed, since that is newer or more complete.
func (c *Client) tryModify(ctx context.Context, m *modification, from base) (got *Unstructured, again bool, err error) {
	read := from.object == nil
	if read {
		if from.object, err = c.core.get(ctx, m.object); err == nil {
			err = m.holds(from.object)
		}
		if err != nil {
			return nil, false, m.object.failed(m.op, err)
		}
	}
	before, after, err := m.edit(from.object)
	if err != nil {
		return nil, false, err
	}
	for _, u := range []*Unstructured{before, after} {
		u.Object, _ = patch.WithoutStringData(m.object.resource.Kind, u.Object)
	}
	change, err := m.patch(from, before, c.core.server.stored(m.op, m.object.resource, after))
	switch {
	case err != nil:
		return nil, false, err
	case change == nil && (read || !m.options.asks):
		return m.whole(before, after, from.object)
	case change == nil, change.Unknown():
		return c.tryModify(ctx, m, base{})
	}
	got, err = c.patchFrom(ctx, m, from.object, change)
	if uid := from.object.GetUID(); apierrors.IsNotFound(err) && m.op.subresource != "" && uid != "" &&
		c.lacks(ctx, m.op, m.object, uid) {
		return nil, false, m.object.failed(m.op, errNoSubresource(m.op))
	}
	if err != nil {
		return got, apierrors.IsConflict(err) || apierrors.IsNotFound(err) || change.Refused(err), err
	}
	if err := m.ignored(before, after, got); err != nil {
		return nil, false, m.object.failed(m.op, err)
	}
	return m.whole(before, after, got)
}

// ignored returns an error if the status was to be changed with the rest of the object, and the
// server has left it as it was. That is what servers do with a status that is a subresource.
func (m *modification) ignored(before, after, got *Unstructured) error {
	was, wanted := before.Object["status"], after.Object["status"]
	if m.op.subresource != "" || patch.Dropped(was, wanted, nil) == nil && patch.Dropped(wanted, was, nil) == nil {
		return nil
	}
	if now, err := m.view(got); err != nil || !reflect.DeepEqual(now.Object["status"], was) {
		return nil
	}
	return fmt.Errorf("%w: nothing of what was changed there is stored; ModifyStatus writes a status", ErrDropped)
}

// replaced reports whether the error is a conflict because the object that was given no longer
// exists, and another one has its name.
func (m *modification) replaced(ctx context.Context, c *Client, err error) bool {
	return m.bound && IsConflict(err) && m.object.GetUID() != "" && c.core.replaced(ctx, m.object, m.object.GetUID())
}

// whole returns the object as the server has it now. It is an error if the server has dropped a
// part of the status that was to be written. No other try would help.
func (m *modification) whole(before, after, got *Unstructured) (*Unstructured, bool, error) {
	if err := dropped(m.op, before, after, got); err != nil {
		return nil, false, m.object.failed(m.op, err)
	}
	return got, false, nil
}

// holds returns a conflict if the object is not the one that the options require.
func (m *modification) holds(base objects.Object) error {
	if err := m.options.met(base); err != nil {
		return m.object.conflict(err)
	}
	return nil
}

// patchFrom sends a patch on the condition that the object has not changed since base.
func (c *Client) patchFrom(ctx context.Context, m *modification, base *Unstructured, change *patch.Patch) (*Unstructured, error) {
	w := m.options
	if uid := base.GetUID(); uid != "" {
		w.uid = &uid
	}
	if version := base.GetResourceVersion(); version != "" {
		w.version = &version
	}
	data, err := jsonform.Encode(change.Body)
	if err == nil {
		data, err = w.preconditionPatch(m.object, change.Type, data)
	}
	if err != nil {
		return nil, m.object.failed(m.op, err)
	}
	m.object.sent = data
	return c.do(ctx, m.op, m.object, w, func(o *object, w writeOptions) (reply, error) {
		got, err := c.core.at(o).Patch(ctx, o.GetName(), change.Type, data, w.patch(change.Type), m.op.subresources()...)
		switch {
		case change.Refused(err):
			return reply{}, err // the object is read next
		case err != nil:
			return reply{}, c.patchError(ctx, o, w, change.Type, err)
		}
		return c.answered(m.op, got), nil
	})
}

// patch returns what a change has altered, nil if that is nothing.
func (m *modification) patch(from base, before, after *Unstructured) (*patch.Patch, error) {
	if err := patch.KeepIdentity(before.Object, after.Object); err != nil {
		return nil, m.object.failed(m.op, err)
	}
	known := from.object.Object
	merge := patch.Merge(known, patch.CarryObject(known, before.Object, after.Object))
	for section := range merge {
		if m.op.subresource != "" && section != m.op.subresource {
			return nil, m.object.failed(m.op, fmt.Errorf("its %s was changed as well, which is not written with the %s", section, m.op.subresource))
		}
	}
	switch {
	case len(merge) == 0:
		return nil, nil
	case from.partial:
		return patch.Blind(known, before.Object, after.Object, merge), nil
	}
	return &patch.Patch{Type: types.MergePatchType, Body: merge}, nil
}

// base is the version of an object that a change starts from.
type base struct {
	object *Unstructured // nil: the server is to be asked
	// partial: the object is only what a Go type knows of it. See patch.Blind.
	partial bool
}

// newest returns the newest known version of the object. A fake has no versions and so no
// conflicts; there the object is always read. Another form than the untyped one will do if the
// change sees no more than that.
func (c *Client) newest(m *modification) base {
	var from base
	known := func(has func(objects.Object) bool) objects.Object {
		return c.core.server.newest(m.object.resource, m.object.key(), has)
	}
	from.object, _ = known(objects.IsWhole).(*Unstructured)
	if from.object == nil {
		part := known(func(o objects.Object) bool { return !objects.IsWhole(o) && m.shows(o) })
		if u, err := jsonform.ToUnstructured(nil, part); err == nil {
			from = base{object: u, partial: true}
		}
	}
	if from.object == nil || m.holds(from.object) != nil {
		return base{}
	}
	return from
}

// held is what a stream holds of an object: the object, or a struct with some of its fields.
func held(o objects.Object) any {
	if p, some := o.(*objects.Projected); some {
		return p.Value()
	}
	return o
}
