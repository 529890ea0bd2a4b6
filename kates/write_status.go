package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/conditions"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/loops/fence"
	objects "github.com/kates-go/kates/internal/object"
)

// ErrDropped is the error of a write of a status of which the server has dropped a part. The error
// names the fields. The kind's schema does not have them, or a webhook has removed them. The rest
// of the status is stored, and later snapshots show it. No other try helps before the schema
// changes. It is also the error of a [Modify] that has changed a status which only [ModifyStatus]
// writes: the rest of that change is stored.
var ErrDropped = errors.New("the server has dropped a part of the status")

// Condition is one aspect of an object's state, in its status.conditions.
type Condition = metav1.Condition

// SetCondition sets a condition in the status of an object, which it modifies, and reports
// whether that changed anything. The object is the caller's own: a pointer to a Go type with
// Status.Conditions of []metav1.Condition, an *[Unstructured], or a map[string]any. A condition
// of that type is changed in its place, others stay. The transition time changes only with the
// status: to the condition's own, or to now. A zero observedGeneration becomes the object's
// generation.
//
// A condition that was set for a newer generation of the object stays, without an error: a
// statement about an older one is out of date. It is an error, and nothing is modified, if the
// object cannot have such conditions, or if the API would reject the condition. The type is a
// qualified name, the status True, False or Unknown, and the reason a CamelCase word. See
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
// and KEP-1623.
func SetCondition(object any, condition Condition) (changed bool, err error) {
	return conditions.Set(object, condition)
}

// FindCondition returns a copy of an object's condition of that type. It is nil if the object has
// none, or none that can be read. The object is as for [SetCondition], but may be shared.
func FindCondition(object any, conditionType string) *Condition {
	return conditions.Find(object, conditionType)
}

// SetConditions writes conditions into the status of the object, as [SetCondition] does, through
// its status subresource: read, modify, write, and again after a conflict (see [ModifyStatus]).
// It starts from the newest version that the client knows, also that of a watch in a Go type or in
// a struct of the program's own, if that has all of these conditions' fields in status.conditions.
// Conditions of other types, and the rest of the status, stay as they are. If nothing changes,
// nothing is sent.
//
// A kind whose status has no conditions (Ingress, ResourceQuota) is an error: [ErrDropped].
//
// The conditions are about the object as given. A zero observedGeneration becomes its generation,
// though there may be a newer one by now. It stays zero where the kind's conditions have no such
// field in the client's scheme (those of Deployment, Node, Job, …). If the object has a UID,
// another object of its name is a
// conflict ([IsConflict]). It is not modified. See [Client.Create] for what holds for every
// write.
func (c *Client) SetConditions(ctx context.Context, object any, set []Condition, opts ...WriteOption) error {
	about, opts, err := c.given(object, opts)
	if err == nil {
		err = conditions.Check(set...)
	}
	if err != nil {
		return fmt.Errorf("set conditions: %w", err)
	}
	stated := slices.Clone(set)
	t, known := wire.TypeOf(c.core.scheme, about.GroupVersionKind())
	observe := !known || conditions.Observe(t)
	for i := range stated {
		if stated[i].ObservedGeneration == 0 && observe {
			stated[i].ObservedGeneration = about.GetGeneration()
		}
	}
	shows := func(o objects.Object) bool { return conditions.Shown(held(o), stated) }
	m := &modification{op: opModifyStatus, shows: shows}
	_, err = modify(ctx, c, m, about, func(u *Unstructured) error {
		for _, condition := range stated {
			if _, err := conditions.SetUntyped(u.Object, condition); err != nil {
				return fmt.Errorf("set conditions of %s: %w", jsonform.Describe(u), err)
			}
		}
		return nil
	}, opts)
	return err
}

// SetStatus writes the status of an object, as the object has it, through the status subresource.
// It is for the only writer of the whole status: fields that the object's status lacks are
// removed, except those that T does not know. If several writers own parts of it, see
// [ModifyStatus] and [Client.SetConditions].
//
//	app := snap.App.DeepCopy()
//	app.Status.Replicas = n
//	_, err := kates.SetStatus(ctx, client, app)
//
// The object is a copy that you have changed (DeepCopy). It compares with the newest version that
// the client knows. If that has the status already, nothing is sent. So nothing is sent either,
// and there is no error, if you change an object of a snapshot in place, which is wrong anyway:
// the newest known version is that very object. Tests notice it, see katestest.DetectMutations.
// Conflicts with writers of the rest of the object are retried (see [Modify]).
// What the server drops is an error: [ErrDropped]. If the object has a UID, another object of its
// name is a conflict ([IsConflict]). The object is not modified. The result is the object as the
// server then has it, and the caller's own. T is as for [Modify]. See [Client.Create] for what
// holds for every write.
func SetStatus[T any](ctx context.Context, c *Client, object *T, opts ...WriteOption) (*T, error) {
	if known, ok := any(c.sameStatus(ctx, object, opts)).(*T); ok {
		return known, nil
	}
	about, opts, err := c.given(object, opts)
	if err == nil {
		err = jsonform.CheckTarget(new(T))
	}
	given := new(T)
	if err == nil {
		err = jsonform.Fill(given, about)
	}
	if err != nil {
		return nil, fmt.Errorf("set the status: %w", err)
	}
	m := &modification{op: opSetStatus, replaces: true}
	return modify(ctx, c, m, about, func(now *T) error { return copyStatus(now, given) }, opts)
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
	r, key := c.resource(ctx, mapping), objects.Key{Namespace: given.GetNamespace(), Name: given.GetName()}
	if r.Namespaced && key.Namespace == "" {
		key.Namespace = c.core.namespace
	}
	typed := func(o objects.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(object) && !objects.IsWhole(o) }
	known := c.core.server.newest(r, key, typed)
	m := &modification{object: bare(r, key), options: c.writeOptions(about(given, opts))}
	switch {
	case m.options.wrong != nil, m.options.asks:
		return nil // the write says what is wrong, or asks
	case known == nil || m.holds(known) != nil:
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

// dropped returns an error if an operation has written a status, and the answer lacks a part of
// what was written. Before is nil if the whole status was written.
func dropped(op operation, before, after, answer *Unstructured) error {
	if op.subresource != statusSubresource {
		return nil
	}
	status := func(u *Unstructured) map[string]any {
		if u == nil || u.Object["status"] == nil {
			return nil
		}
		return map[string]any{"status": u.Object["status"]}
	}
	if fields := patch.Dropped(status(before), status(after), status(answer)); fields != nil {
		return fmt.Errorf("%w: %s", ErrDropped, strings.Join(fields, ", "))
	}
	return nil
}

// given returns the object that the caller has given, and the options that bind a write to it.
func (c *Client) given(object any, opts []WriteOption) (*Unstructured, []WriteOption, error) {
	u, err := jsonform.ToUnstructured(c.core.scheme, object)
	if err == nil {
		err = kindless(object, u.GroupVersionKind())
	}
	if err != nil {
		return nil, nil, err
	}
	return u, about(u, opts), nil
}

// ErrSubresourceNotSupported is returned by the methods for subresources on client-go's bare fake
// client. The fake treats a subresource as the object itself: an eviction would replace the pod.
// It knows only the status.
var ErrSubresourceNotSupported = errors.New("this subresource is not supported by this (fake) client")

// GetSubresource reads a subresource of the object that the resource names ("scale", "status")
// into target. See [Client.Get].
func (c *Client) GetSubresource(ctx context.Context, resource any, subresource string, target any) error {
	err := c.checkTarget(target)
	if err == nil {
		err = c.checkSubresource(subresource, true)
	}
	var o *object
	if err == nil {
		if o, err = c.object(ctx, resource); err == nil {
			err = cmp.Or(o.named(), ctx.Err())
		}
	}
	if err != nil {
		return fmt.Errorf("get the %s of: %w", subresource, err)
	}
	got, err := c.core.get(ctx, o, subresource)
	if err != nil {
		return o.failed(operation{toGet, subresource}, err)
	}
	return jsonform.Fill(target, got)
}

// CreateSubresource posts a body to a subresource of the object that the resource names: an
// Eviction or a Binding of a pod, a TokenRequest of a service account. The target receives the
// answer, which may be a Status.
//
//	err := client.CreateSubresource(ctx, pod, "eviction", &policyv1.Eviction{}, nil, kates.GracePeriod(0))
//
// This holds for the write methods of subresources: the body is an object of any form, and is not
// modified. If it has no name or namespace, it gets those of the object. Once the method has
// returned nil, every later snapshot of this client shows the effect of the write on the object.
// The answer may not tell it, so each watch that may show the object asks the server before the
// method returns. [IfUID] and [IfResourceVersion] go into the body; for an Eviction they go into
// its deleteOptions, as [GracePeriod] and [Propagation] do. client-go's fake knows only the
// status, and not here: ErrSubresourceNotSupported. See [Client.Create] for what holds for every
// write.
func (c *Client) CreateSubresource(ctx context.Context, resource any, subresource string, body, target any, opts ...WriteOption) error {
	return c.writeSubresource(ctx, operation{toCreate, subresource}, resource, target, opts, func(o *object, w writeOptions) (got, wrote *Unstructured, err error) {
		u, err := c.body(o, body)
		if err == nil {
			err = w.preconditionBody(o, u)
		}
		if err != nil {
			return nil, nil, err
		}
		got, err = c.core.at(o).Create(ctx, u, w.create(), subresource)
		return got, nil, err
	})
}

// UpdateSubresource replaces a subresource of the object that the resource names (its scale, a
// pod's resize, …) by the body, and fills target with the result. If the body is nil, the
// resource is the body. If the body has a resource version that is not the newest, it fails with
// a conflict. What the server drops of a status is an error: [ErrDropped]. If the kind has no such
// subresource, the error says so, and is the server's: [IsNotFound]. See
// [Client.CreateSubresource].
func (c *Client) UpdateSubresource(ctx context.Context, resource any, subresource string, body, target any, opts ...WriteOption) error {
	if isNil(body) {
		body = resource
	} else if u, err := jsonform.ToUnstructured(c.core.scheme, body); err == nil { // else c.body says why
		opts = append(slices.Clip(opts), func(w *writeOptions) { w.body = u })
	}
	op := operation{toUpdate, subresource}
	return c.writeSubresource(ctx, op, resource, target, opts, func(o *object, w writeOptions) (got, wrote *Unstructured, err error) {
		u, err := c.body(o, body)
		if err == nil {
			err = cmp.Or(c.checkWhole(o, u), w.precondition(o, u))
		}
		if err != nil {
			return nil, nil, err
		}
		got, err = c.core.at(o).Update(ctx, c.core.server.stored(op, o.resource, u), w.update(), subresource)
		return got, u, err
	})
}

// PatchSubresource changes a subresource of the object that the resource names, and fills target
// with the result.
//
//	err := client.PatchSubresource(ctx, deployment, "scale", kates.MergePatchType, []byte(`{"spec":{"replicas":3}}`), nil)
//
// What the server drops of a status that the patch sets is an error, as far as the patch tells
// what it sets: [ErrDropped]. See [Client.UpdateSubresource] and [Client.CreateSubresource].
func (c *Client) PatchSubresource(ctx context.Context, resource any, subresource string, pt PatchType, data []byte, target any, opts ...WriteOption) error {
	op := operation{toPatch, subresource}
	return c.writeSubresource(ctx, op, resource, target, opts, func(o *object, w writeOptions) (got, wrote *Unstructured, err error) {
		if subresource == statusSubresource {
			wrote = &Unstructured{Object: patch.Written(pt, data)}
		}
		if pt == MergePatchType && wrote != nil && wrote.Object != nil {
			if stored := c.core.server.stored(op, o.resource, wrote); stored != wrote {
				if data, err = jsonform.Encode(stored.Object); err != nil {
					return nil, nil, err
				}
			}
		}
		got, err = c.patch(ctx, op, o, pt, data, w)
		return got, wrote, err
	})
}

func (c *Client) writeSubresource(ctx context.Context, op operation, resource any, target any, opts []WriteOption,
	send func(*object, writeOptions) (got, wrote *Unstructured, err error),
) error {
	if err := c.checkSubresource(op.subresource, op.verb != toCreate); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return c.send(ctx, op, resource, target, opts, func(o *object, w writeOptions) (reply, error) {
		got, wrote, err := send(o, w)
		if err != nil {
			return reply{}, err
		}
		sameKind := got.GroupVersionKind() == o.resource.Kind && got.GetName() == o.GetName()
		if sameKind && c.core.server.checkVersion(got) == nil {
			answer := c.answered(op, got)
			answer.wrote = wrote
			return answer, nil
		}
		return reply{
			object: got, Outcome: intake.Outcome{Unknown: true},
			unrelated: o.resource.Group == "" && o.resource.Resource == "serviceaccounts" && op.subresource == "token",
		}, nil
	})
}

// connections are the subresources that are no objects.
var connections = map[string]bool{"attach": true, "exec": true, "portforward": true, "proxy": true}

var subresourceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// checkSubresource checks the name of a subresource before anything is sent. likeObject says that
// it is read or changed, and not created.
func (c *Client) checkSubresource(subresource string, likeObject bool) error {
	switch {
	case !subresourceName.MatchString(subresource):
		return fmt.Errorf("%q is not the name of a subresource, such as scale", subresource)
	case subresource == "log":
		return errors.New("log is a connection, not an object: use Client.PodLogs")
	case connections[subresource]:
		return fmt.Errorf("%s is a connection, not an object: use client-go", subresource)
	}
	return c.core.server.checkSubresource(subresource, likeObject)
}

// body returns what is sent to a subresource of o.
func (c *Client) body(o *object, value any) (*Unstructured, error) {
	u, err := jsonform.ToUnstructured(c.core.scheme, value)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the body: %w", err)
	case u.GetKind() == "" || u.GetAPIVersion() == "":
		return nil, errors.New("the body has no apiVersion or kind")
	case u.GetName() != "" && u.GetName() != o.GetName(), u.GetNamespace() != "" && u.GetNamespace() != o.GetNamespace():
		return nil, fmt.Errorf("the body is of another object: %s", jsonform.Describe(u))
	}
	u.SetName(o.GetName())
	if ns := o.GetNamespace(); ns != "" {
		u.SetNamespace(ns)
	}
	return u, nil
}
