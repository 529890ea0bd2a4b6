package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/intake"
	objects "github.com/kates-go/kates/internal/object"
)

// ReadCached fills a target with an object as the streams show it, or else the server. The target
// is a pointer to the form of the object.
func (c *Core) ReadCached(ctx context.Context, o *Subject, target any) error {
	known, ok := c.Streams.Lookup(o.Resource, o.Key(), c.partFor(reflect.TypeOf(target).Elem(), o.Resource))
	switch {
	case !ok:
		got, err := c.Get(ctx, o)
		if err != nil {
			return err
		}
		return jsonform.Fill(target, got)
	case known == nil:
		return apierrors.NewNotFound(o.Resource.GroupResource(), o.GetName())
	}
	return fillFrom(target, known)
}

// partFor says how much of an object a type can hold.
func (c *Core) partFor(t reflect.Type, r objects.Resource) intake.Part {
	if t == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return intake.Meta
	}
	if of, ok := wire.TypeOf(c.Scheme, r.Kind); ok && of == t && t != reflect.TypeFor[unstructured.Unstructured]() {
		return intake.Known
	}
	return intake.All
}

// SubjectNamed returns the object to be read. Its kind comes from the Go type, or from the caller.
// If both name one, they must agree.
func (c *Core) SubjectNamed(ctx context.Context, t reflect.Type, kind, namespace, name string) (*Subject, error) {
	if err := jsonform.CheckTarget(reflect.New(t).Interface()); err != nil {
		return nil, err
	}
	var of schema.GroupVersionKind
	if gvks := c.KindsOf(t); len(gvks) > 0 {
		of = gvks[0]
	}
	if kind != "" {
		mapping, err := c.Kinds.Kind(ctx, kind)
		switch {
		case err != nil:
			return nil, err
		case !of.Empty() && of != mapping.GroupVersionKind:
			return nil, fmt.Errorf("%s is %s, not %q (%s)", t, of, kind, mapping.GroupVersionKind)
		}
		of = mapping.GroupVersionKind
	}
	switch {
	case of.Empty():
		return nil, fmt.Errorf("%s does not say a kind that the client's scheme knows: use OfKind", t)
	case name == "":
		return nil, fmt.Errorf("a %s without a name", of.Kind)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(of)
	u.SetNamespace(namespace)
	u.SetName(name)
	o, err := c.SubjectOf(ctx, u)
	return o, cmp.Or(err, ctx.Err())
}

// fillFrom fills a target from an object of a stream, in any form.
func fillFrom(target any, shown objects.Object) error {
	if u, ok := shown.(*unstructured.Unstructured); ok {
		return jsonform.Fill(target, u)
	}
	if reflect.TypeOf(shown) == reflect.TypeOf(target) {
		reflect.ValueOf(target).Elem().Set(reflect.ValueOf(shown.DeepCopyObject()).Elem())
		return nil
	}
	u, err := jsonform.ToUnstructured(nil, shown)
	if err != nil {
		return err
	}
	if u.GetKind() == "" {
		return errors.New("what a watch shows has no kind")
	}
	return jsonform.Fill(target, u)
}
