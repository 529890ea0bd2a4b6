package kates

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/applied"
	"github.com/kates-go/kates/internal/jsonform"
	"github.com/kates-go/kates/internal/wire"
)

// object is a copy of the caller's value, ready for a request: its kind is as the server serves
// it, its namespace is filled in.
type object struct {
	*Unstructured
	resource stream.Resource
}

// object reads a caller's value. The value is copied, never modified.
func (c *Client) object(ctx context.Context, value any) (*object, error) {
	u, err := jsonform.ToUnstructured(c.core.scheme, value)
	if err != nil {
		return nil, err
	}
	mapping, err := c.core.kinds.GVK(ctx, u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	o := &object{u, c.resource(ctx, mapping)}
	switch {
	case !o.resource.Namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(c.core.namespace)
	}
	return o, nil
}

func (o *object) key() stream.Key {
	return stream.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (o *object) String() string {
	name := o.GetName()
	if name == "" {
		name = o.GetGenerateName() + "*"
	}
	return fmt.Sprintf("%s %q", o.resource.Resource, join(o.GetNamespace(), name))
}

// named is an error if the object has no name, or one that no object can have.
func (o *object) named() error {
	if o.GetName() == "" {
		return fmt.Errorf("a %s without a name", o.GetKind())
	}
	if err := segment("name", o.GetName()); err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	if err := segment("namespace", o.GetNamespace()); err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	return nil
}

// segment is an error if a name cannot be part of a path: the request would have another meaning,
// for example all objects in place of one.
func segment(what, name string) error {
	if why := content.IsPathSegmentName(name); len(why) > 0 {
		return fmt.Errorf("invalid %s %q: %s", what, name, strings.Join(why, ", "))
	}
	return nil
}

// namespaceName is an error if no namespace can have the name; "" stands for none.
func namespaceName(name string) error {
	if name == "" {
		return nil
	}
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("invalid namespace %q: %s", name, strings.Join(wrong, ", "))
	}
	return nil
}

// conflict is the error of a write whose precondition does not hold.
func (o *object) conflict(reason error) error {
	return apierrors.NewConflict(o.resource.GroupResource(), o.GetName(), reason)
}

func (o *object) failed(op operation, err error) error {
	return fmt.Errorf("%s %s: %w", op, o, err)
}

// replaced reports whether the object of that UID is gone, or another one has its name.
func (c *core) replaced(ctx context.Context, o *object, uid types.UID) bool {
	now, err := c.get(ctx, o)
	return IsNotFound(err) || err == nil && now.GetUID() != uid
}

// while wraps an error with what was being done; nil stays nil.
func while(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ErrShared is returned by methods that are given, as the target, an object that a
// snapshot shows: it is shared, and nobody may write to it. Give a copy, or nil.
var ErrShared = errors.New("the target is an object of a live snapshot, which is shared and read-only")

// checkTarget checks a target before anything is sent.
func (c *Client) checkTarget(target any) error {
	if err := jsonform.CheckTarget(target); err != nil {
		return err
	}
	if target != nil && c.core.streams.Shares(target) {
		return fmt.Errorf("%w: %T", ErrShared, target)
	}
	return nil
}

// at returns the dynamic client for the resource and the namespace of an object.
func (c *core) at(o *object) dynamic.ResourceInterface {
	return wire.In(c.dynamic, o.resource, o.GetNamespace())
}

// get asks the server for an object, or for a subresource of it.
func (c *core) get(ctx context.Context, o *object, subresource ...string) (*Unstructured, error) {
	return c.at(o).Get(ctx, o.GetName(), GetOptions{}, subresource...)
}

// bare returns an object with nothing but its kind and name.
func bare(r stream.Resource, key stream.Key) *object {
	o := &object{&Unstructured{Object: map[string]any{}}, r}
	o.SetGroupVersionKind(r.Kind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}

// address is the place of the object on its server.
func (o *object) address() wire.Address {
	return wire.Address{Resource: o.resource, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// stored names the object, whatever version serves it.
func (o *object) stored() applied.Key { return applied.Key{Storage: o.resource.Storage, Key: o.key()} }
