package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/heard"
	"github.com/kates-go/kates/internal/client/wire"
	objects "github.com/kates-go/kates/internal/object"
)

// object is a copy of the caller's value, ready for a request: its kind is as the server serves
// it, its namespace is filled in.
type object struct {
	*Unstructured
	resource objects.Resource
	sent     []byte   // the patch under way, if there is one
	plain    []string // the keys of data that a Secret has from stringData
	// given is how the caller has named it; nil: no caller has, and it is not placed again.
	given *given
}

// overwriting sends an apply. It is sent with force if fields of others are in the way that were
// given as stringData alone: the API says of stringData that it overwrites any existing values.
// https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1/
func (o *object) overwriting(w writeOptions, apply func(w writeOptions) error) error {
	err := apply(w)
	var status apierrors.APIStatus
	if w.force || len(o.plain) == 0 || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	causes := status.Status().Details.Causes
	if len(causes) == 0 || slices.ContainsFunc(causes, func(c metav1.StatusCause) bool {
		key, inData := strings.CutPrefix(c.Field, ".data.")
		return c.Type != metav1.CauseTypeFieldManagerConflict || !inData || !slices.Contains(o.plain, key)
	}) {
		return err
	}
	w.force = true
	return apply(w)
}

// given is what a caller says of an object's place.
type given struct {
	kind      schema.GroupVersionKind
	namespace string
}

// object reads a caller's value. The value is copied, never modified.
func (c *Client) object(ctx context.Context, value any) (*object, error) {
	u, err := jsonform.ToUnstructured(c.core.scheme, value)
	if err != nil {
		return nil, err
	}
	if err := kindless(value, u.GroupVersionKind()); err != nil {
		return nil, err
	}
	o := &object{Unstructured: u, given: &given{u.GroupVersionKind(), u.GetNamespace()}}
	mapping, err := c.core.kinds.GVK(ctx, o.given.kind)
	if err != nil {
		return nil, err
	}
	c.core.place(o, c.resource(ctx, mapping))
	return o, nil
}

// place fills in what an object's kind says: how it is named, and the namespace.
func (c *core) place(o *object, r objects.Resource) {
	o.resource = r
	o.SetGroupVersionKind(r.Kind)
	namespace := ""
	if r.Namespaced {
		namespace = cmp.Or(o.given.namespace, c.namespace)
	}
	o.SetNamespace(namespace)
}

// moved reports whether err means that the kind of an object is served in another way than it was:
// the server answers so, and fresh discovery says so. Then the object is placed again, and the
// request may succeed now. The server has not begun what it has answered so.
func (c *core) moved(ctx context.Context, o *object, err error) bool {
	if o.given == nil || !misplaced(err) {
		return false
	}
	r, changed := c.served(ctx, o.given.kind, o.resource)
	if changed {
		c.place(o, r)
	}
	return changed
}

// otherwise reports whether err means that a resource is served in another way by now.
func (c *core) otherwise(ctx context.Context, r objects.Resource, err error) bool {
	if !misplaced(err) {
		return false
	}
	_, changed := c.served(ctx, r.Kind, r)
	return changed
}

// served looks a kind up in fresh discovery. It reports whether it is served in another way.
func (c *core) served(
	ctx context.Context, kind schema.GroupVersionKind, was objects.Resource,
) (r objects.Resource, changed bool) {
	c.kinds.Refresh(ctx)
	mapping, err := c.kinds.GVK(ctx, kind)
	if err != nil {
		return r, false
	}
	r = c.resource(ctx, mapping)
	return r, !r.Serves(was)
}

// misplaced reports whether an error may be the answer to a request at a path that is not there,
// or about another kind. That an object is not there, or its namespace, is told with its name.
func misplaced(err error) bool {
	if apierrors.IsMethodNotSupported(err) {
		return true
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch status := answer.Status(); {
	case apierrors.IsBadRequest(err):
		return ofAnotherKind(status.Message)
	case apierrors.IsNotFound(err):
		return status.Details == nil || status.Details.Name == "" || unexpected(status.Details)
	}
	return false
}

// ofAnotherKind reports whether a server has refused a body because the path is that of another
// kind or version. Most answers 400 are about the content, which discovery does not explain.
func ofAnotherKind(message string) bool {
	is, want, undecoded := strings.Cut(message, " cannot be handled as a ")
	kind, _, _ := strings.Cut(is, " ")
	return undecoded && !strings.HasPrefix(want, kind+":") || strings.Contains(message, " does not match the expected ")
}

// unexpected reports whether an answer was no Status, so that client-go has made one.
func unexpected(details *metav1.StatusDetails) bool {
	return slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

func (o *object) key() objects.Key {
	return objects.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
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
	if !utf8.ValidString(name) {
		return fmt.Errorf("invalid %s %q: it is no UTF-8", what, name) // JSON would say another name
	}
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
	return heard.Error(plain.Error(fmt.Errorf("%s %s: %w", op, o, o.discreetly(err))))
}

// at returns the dynamic client for the resource and the namespace of an object.
func (c *core) at(o *object) dynamic.ResourceInterface {
	return wire.In(c.dynamic, o.resource, o.GetNamespace())
}

// get asks the server for an object, or for a subresource of it.
func (c *core) get(ctx context.Context, o *object, subresource ...string) (*Unstructured, error) {
	got, err := c.at(o).Get(ctx, o.GetName(), GetOptions{}, subresource...)
	if c.moved(ctx, o, err) {
		got, err = c.at(o).Get(ctx, o.GetName(), GetOptions{}, subresource...)
	}
	if err == nil && got == nil { // a reactor of a fake may answer with nothing
		err = apierrors.NewNotFound(o.resource.GroupResource(), o.GetName())
	}
	return got, err
}

// bare returns an object with nothing but its kind and name.
func bare(r objects.Resource, key objects.Key) *object {
	o := &object{Unstructured: &Unstructured{Object: map[string]any{}}, resource: r}
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
