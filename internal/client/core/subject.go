package core

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/heard"
	"github.com/kates-go/kates/internal/client/wire"
	objects "github.com/kates-go/kates/internal/object"
)

// Subject is a copy of the caller's value, ready for a request: its kind is as the server serves
// it, its namespace is filled in.
type Subject struct {
	*unstructured.Unstructured
	Resource objects.Resource
	Sent     []byte   // the patch under way, if there is one
	Plain    []string // the keys of data that a Secret has from stringData
	// given is how the caller has named it; nil: no caller has, and it is not placed again.
	given *given
}

// given is what a caller says of an object's place.
type given struct {
	kind      schema.GroupVersionKind
	namespace string
}

// SubjectOf reads a caller's value. The value is copied, never modified.
func (c *Core) SubjectOf(ctx context.Context, value any) (*Subject, error) {
	u, err := c.Untyped(value)
	if err != nil {
		return nil, err
	}
	o := &Subject{Unstructured: u, given: &given{u.GroupVersionKind(), u.GetNamespace()}}
	mapping, err := c.Kinds.GVK(ctx, o.given.kind)
	if err != nil {
		return nil, err
	}
	c.place(o, c.Resource(ctx, mapping))
	return o, nil
}

// Untyped copies a caller's value, which has a kind.
func (c *Core) Untyped(value any) (*unstructured.Unstructured, error) {
	u, err := jsonform.ToUnstructured(c.Scheme, value)
	if err != nil {
		return nil, err
	}
	return u, Kindless(value, u.GroupVersionKind())
}

// Key is the namespace and the name of the object.
func (o *Subject) Key() objects.Key {
	return objects.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// String names the object in errors: pods "prod/web".
func (o *Subject) String() string {
	name := o.GetName()
	if name == "" {
		name = o.GetGenerateName() + "*"
	}
	return fmt.Sprintf("%s %q", o.Resource.Resource, objects.Path(o.GetNamespace(), name))
}

// CheckName is an error if the object has no name, or one that no object can have.
func (o *Subject) CheckName() error {
	if o.GetName() == "" {
		return fmt.Errorf("a %s without a name", o.GetKind())
	}
	if err := Segment("name", o.GetName()); err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	if err := Segment("namespace", o.GetNamespace()); err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	return nil
}

// Segment is an error if a name cannot be part of a path: the request would have another meaning,
// for example all objects in place of one.
func Segment(what, name string) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("invalid %s %q: it is no UTF-8", what, name) // JSON would say another name
	}
	if why := content.IsPathSegmentName(name); len(why) > 0 {
		return fmt.Errorf("invalid %s %q: %s", what, name, strings.Join(why, ", "))
	}
	return nil
}

// Conflict is the error of a write whose precondition does not hold.
func (o *Subject) Conflict(reason error) error {
	return apierrors.NewConflict(o.Resource.GroupResource(), o.GetName(), reason)
}

// Failed is the error of an operation on the object.
func (o *Subject) Failed(op fmt.Stringer, err error) error {
	return heard.Error(plain.Error(fmt.Errorf("%s %s: %w", op, o, o.discreetly(err))))
}

// At returns the dynamic client for the resource and the namespace of an object.
func (c *Core) At(o *Subject) dynamic.ResourceInterface {
	return wire.In(c.Dynamic, o.Resource, o.GetNamespace())
}

// Get asks the server for an object, or for a subresource of it.
func (c *Core) Get(ctx context.Context, o *Subject, subresource ...string) (*unstructured.Unstructured, error) {
	got, err := c.At(o).Get(ctx, o.GetName(), metav1.GetOptions{}, subresource...)
	if c.Moved(ctx, o, err) {
		got, err = c.At(o).Get(ctx, o.GetName(), metav1.GetOptions{}, subresource...)
	}
	if err == nil && got == nil { // a reactor of a fake may answer with nothing
		err = apierrors.NewNotFound(o.Resource.GroupResource(), o.GetName())
	}
	return got, err
}

// Bare returns an object with nothing but its kind and name.
func Bare(r objects.Resource, key objects.Key) *Subject {
	o := &Subject{Unstructured: &unstructured.Unstructured{Object: map[string]any{}}, Resource: r}
	o.SetGroupVersionKind(r.Kind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}

// Address is the place of the object on its server.
func (o *Subject) Address() wire.Address {
	return wire.Address{Resource: o.Resource, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Stored names the object, whatever version serves it.
func (o *Subject) Stored() applied.Key { return applied.Key{Storage: o.Resource.Storage, Key: o.Key()} }
