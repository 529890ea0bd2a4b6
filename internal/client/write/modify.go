package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/loops/fence"
	"github.com/kates-go/kates/internal/loops/keyed"
	objects "github.com/kates-go/kates/internal/object"
)

// Modify changes an object with a function, by one patch of what the function has altered, and
// again if another writer was faster.
func Modify[T any](ctx context.Context, c Writer, resource any, change func(*T) error, w Options) (*T, error) {
	return modify(ctx, c, &modification{op: OpModify}, resource, change, w)
}

// ModifyStatus is [Modify] for the status of an object, through its status subresource. It is bound
// to the object that is given, by its UID.
func ModifyStatus[T any](ctx context.Context, c Writer, resource any, change func(*T) error, w Options) (*T, error) {
	return modify(ctx, c, &modification{op: OpModifyStatus, bound: true}, resource, change, w)
}

// modifyBackoff paces the tries. Under contention each round has one winner, so longer and longer
// waits help little.
var modifyBackoff = wait.Backoff{Duration: 5 * time.Millisecond, Factor: 1.3, Jitter: 1, Steps: 20}

// modification is a call of Modify, independent of its T.
type modification struct {
	op      Operation
	object  *core.Subject
	options Options
	// bound: if the object that was given has a UID, another object of its name is a conflict.
	bound bool
	// shows reports whether an object that is not untyped shows all that the change depends on,
	// and all that it may write to. Nil: a *T does.
	shows func(objects.Object) bool
	// edit changes an object. It returns the object in the form of the Go type, before and after.
	// Both are nil if the change has altered nothing of what a watch holds as a *T. Then same is
	// set.
	edit func(from *base) (before, after *unstructured.Unstructured, err error)
	// view returns what the Go type has of an object.
	view func(*unstructured.Unstructured) (*unstructured.Unstructured, error)
	// same is a copy of what a watch holds, a *T that is the caller's own.
	same any
}

func modify[T any](ctx context.Context, c Writer, m *modification, resource any, change func(*T) error, w Options) (*T, error) {
	m.options = w
	err := cmp.Or(m.options.Wrong, jsonform.CheckTarget(new(T)))
	if err == nil && change == nil {
		err = errors.New("the function that changes the object is nil")
	}
	if err == nil {
		if m.object, err = c.SubjectNamedBy(ctx, resource); err == nil {
			err = cmp.Or(m.object.CheckName(), c.Fits(reflect.TypeFor[T](), m.object.Resource.Kind), fence.Check(ctx), ctx.Err())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.op, err)
	}
	if m.bound {
		m.options = m.options.About(m.object)
	}
	if m.shows == nil {
		m.shows = func(o objects.Object) bool { return reflect.TypeOf(held(o)) == reflect.TypeFor[*T]() }
	}
	m.view = func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) { return viewed(new(T), o) }
	m.edit = func(from *base) (before, after *unstructured.Unstructured, err error) { return edit(m, from, change) }
	got, err := c.modify(ctx, m)
	if err != nil {
		return nil, err
	}
	if same, ok := m.same.(*T); ok {
		return same, nil
	}
	var result *T
	return result, jsonform.Fill(&result, got)
}

// viewed fills a Go type from an object, and returns what the type has of the object.
func viewed[T any](view *T, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := jsonform.Fill(view, o); err != nil {
		return nil, err
	}
	return jsonform.ToUnstructured(nil, view)
}

// copied returns a copy of what a watch holds, if that is a *T that copies itself as one.
func copied[T any](part objects.Object) (view *T, typed bool) {
	if _, typed = any(part).(*T); typed {
		view, typed = any(part.DeepCopyObject()).(*T)
	}
	if !typed {
		view = new(T)
	}
	return view, typed
}

// edit is the edit of a [modification]. What a watch holds as a *T is copied and compared as it is:
// encoding the object would be most of the cost of a change that alters nothing.
func edit[T any](m *modification, from *base, change func(*T) error) (before, after *unstructured.Unstructured, err error) {
	fail := func(err error) (_, _ *unstructured.Unstructured, _ error) {
		return nil, nil, m.object.Failed(m.op, err)
	}
	view, typed := copied[T](from.part)
	if typed {
		// it is compared below
	} else if err := from.encode(); err != nil {
		return fail(err)
	} else if before, err = viewed(view, from.object); err != nil {
		return fail(err)
	}
	if err := change(view); err != nil {
		return nil, nil, err
	}
	if typed {
		if reflect.DeepEqual(any(from.part), any(view)) {
			m.same, _ = copied[T](from.part) // the view may share memory with what change has
			return nil, nil, nil
		}
		if err := from.encode(); err != nil {
			return fail(err)
		}
		if before, err = viewed(new(T), from.object); err != nil {
			return fail(err)
		}
	}
	if after, err = jsonform.ToUnstructured(nil, view); err != nil {
		return fail(err)
	}
	return before, after, nil
}

// modify tries until the object is written, or an error is final.
func (c Writer) modify(ctx context.Context, m *modification) (*unstructured.Unstructured, error) {
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
			return nil, fmt.Errorf("%w (last: %v)", m.object.Failed(m.op, ctx.Err()), err)
		}
		from = base{} // from was not the newest version, or not the whole object
	}
}

// tryModify changes an object and writes it. If from has none, it reads the object first. Again:
// another try with the server's object may succeed, since that is newer or more complete.
func (c Writer) tryModify(ctx context.Context, m *modification, from base) (got *unstructured.Unstructured, again bool, err error) {
	read := from.none()
	if read {
		if from.object, err = c.Get(ctx, m.object); err == nil {
			err = m.holds(from.object)
		}
		if err != nil {
			return nil, false, m.object.Failed(m.op, err)
		}
	}
	before, after, err := m.edit(&from)
	switch {
	case err != nil:
		return nil, false, err
	case before == nil && m.options.Asks:
		m.same = nil
		return c.tryModify(ctx, m, base{})
	case before == nil:
		return nil, false, c.Await(ctx, m.op, m.object, from.part)
	}
	for _, u := range []*unstructured.Unstructured{before, after} {
		u.Object, _ = patch.WithoutStringData(m.object.Resource.Kind, u.Object)
	}
	change, err := m.patch(from, before, c.stored(m.op, m.object.Resource, after))
	switch {
	case err != nil:
		return nil, false, err
	case change == nil && (read || !m.options.Asks):
		if err := c.Await(ctx, m.op, m.object, from.object); err != nil {
			return nil, false, err
		}
		return m.whole(before, after, from.object)
	case change == nil, change.Unknown():
		return c.tryModify(ctx, m, base{})
	}
	got, err = c.patchFrom(ctx, m, from.object, change)
	if uid := from.object.GetUID(); apierrors.IsNotFound(err) && m.op.subresource != "" && uid != "" &&
		c.lacks(ctx, m.op, m.object, uid) {
		return nil, false, m.object.Failed(m.op, errNoSubresource(m.op))
	}
	if err != nil {
		return got, apierrors.IsConflict(err) || apierrors.IsNotFound(err) || change.Refused(err), err
	}
	if err := m.ignored(before, after, got); err != nil {
		return nil, false, m.object.Failed(m.op, err)
	}
	return m.whole(before, after, got)
}

// ignored returns an error if the status was to be changed with the rest of the object, and the
// server has left it as it was. That is what servers do with a status that is a subresource.
func (m *modification) ignored(before, after, got *unstructured.Unstructured) error {
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
func (m *modification) replaced(ctx context.Context, c Writer, err error) bool {
	return m.bound && apierrors.IsConflict(err) && m.object.GetUID() != "" && c.Replaced(ctx, m.object, m.object.GetUID())
}

// whole returns the object as the server has it now. It is an error if the server has dropped a
// part of the status that was to be written. No other try would help.
func (m *modification) whole(before, after, got *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	if err := dropped(m.op, before, after, got); err != nil {
		return nil, false, m.object.Failed(m.op, err)
	}
	return got, false, nil
}

// holds returns a conflict if the object is not the one that the options require.
func (m *modification) holds(base objects.Object) error {
	if err := m.options.met(base); err != nil {
		return m.object.Conflict(err)
	}
	return nil
}

// patchFrom sends a patch on the condition that the object has not changed since base.
func (c Writer) patchFrom(ctx context.Context, m *modification, base *unstructured.Unstructured, change *patch.Patch) (*unstructured.Unstructured, error) {
	w := m.options
	if uid := base.GetUID(); uid != "" {
		w.UID = &uid
	}
	if version := base.GetResourceVersion(); version != "" {
		w.Version = &version
	}
	data, err := jsonform.Encode(change.Body)
	if err == nil {
		data, err = w.preconditionPatch(m.object, change.Type, data)
	}
	if err != nil {
		return nil, m.object.Failed(m.op, err)
	}
	m.object.Sent = data
	return c.Do(ctx, m.op, m.object, w, func(o *core.Subject, w Options) (Reply, error) {
		got, err := c.At(o).Patch(ctx, o.GetName(), change.Type, data, w.patch(change.Type), m.op.subresources()...)
		switch {
		case change.Refused(err):
			return Reply{}, err // the object is read next
		case err != nil:
			return Reply{}, c.patchError(ctx, o, w, change.Type, err)
		}
		return c.Answered(m.op, got), nil
	})
}

// patch returns what a change has altered, nil if that is nothing.
func (m *modification) patch(from base, before, after *unstructured.Unstructured) (*patch.Patch, error) {
	if err := patch.KeepIdentity(before.Object, after.Object); err != nil {
		return nil, m.object.Failed(m.op, err)
	}
	known := from.object.Object
	merge := patch.Merge(known, patch.CarryObject(known, before.Object, after.Object))
	for section := range merge {
		if m.op.subresource != "" && section != m.op.subresource {
			return nil, m.object.Failed(m.op, fmt.Errorf("its %s was changed as well, which is not written with the %s", section, m.op.subresource))
		}
	}
	switch {
	case len(merge) == 0:
		return nil, nil
	case from.part != nil:
		return patch.Blind(known, before.Object, after.Object, merge), nil
	}
	return &patch.Patch{Type: types.MergePatchType, Body: merge}, nil
}

// base is the version of an object that a change starts from. Without an object and a part, the
// server is to be asked.
type base struct {
	object *unstructured.Unstructured
	// part is what a watch knows of the object in a Go type, if the change starts from that. The
	// object has no more, once encode has made it. See patch.Blind.
	part objects.Object
}

func (b *base) none() bool { return b.object == nil && b.part == nil }

// encode makes the object of a part.
func (b *base) encode() (err error) {
	if b.object == nil {
		b.object, err = jsonform.ToUnstructured(nil, b.part)
	}
	return err
}

// newest returns the newest known version of the object. A fake has no versions and so no
// conflicts; there the object is always read. Another form than the untyped one will do if the
// change sees no more than that.
func (c Writer) newest(m *modification) base {
	known := func(has func(objects.Object) bool) objects.Object {
		return c.Newest(m.object.Resource, m.object.Key(), has)
	}
	if u, ok := known(objects.IsWhole).(*unstructured.Unstructured); ok {
		if m.holds(u) == nil {
			return base{object: u}
		}
		return base{}
	}
	part := known(func(o objects.Object) bool { return !objects.IsWhole(o) && m.shows(o) })
	if part == nil || m.holds(part) != nil {
		return base{}
	}
	return base{part: part}
}

// held is what a stream holds of an object: the object, or a struct with some of its fields.
func held(o objects.Object) any {
	if p, some := o.(*objects.Projected); some {
		return p.Value()
	}
	return o
}
