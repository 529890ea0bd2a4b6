package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// SubjectNamedBy is [Core.SubjectOf] where nothing of the value is sent. Of a Go type it has what
// says which object it is, and nothing else: encoding all of it would be in vain. The values of a
// Secret are kept, so that no error says them.
func (c *Core) SubjectNamedBy(ctx context.Context, value any) (*Subject, error) {
	o, ok := value.(objects.Object)
	if v := reflect.ValueOf(value); !ok || v.Kind() != reflect.Pointer || v.IsNil() || objects.IsWhole(o) {
		return c.SubjectOf(ctx, value)
	}
	said, kind := o.GetObjectKind().GroupVersionKind(), c.KindOf(o)
	if kind.Kind == "" || kind.Kind == "Secret" || !said.Empty() && said != kind {
		return c.SubjectOf(ctx, value) // it knows what half a kind stands for
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	u.SetGenerateName(o.GetGenerateName())
	u.SetUID(o.GetUID())
	u.SetResourceVersion(o.GetResourceVersion())
	return c.SubjectOf(ctx, u)
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
	if err := cmp.Or(Segment("name", o.GetName()), Segment("namespace", o.GetNamespace())); err != nil {
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

// place fills in what an object's kind says: how it is named, and the namespace.
func (c *Core) place(o *Subject, r objects.Resource) {
	o.Resource = r
	o.SetGroupVersionKind(r.Kind)
	namespace := ""
	if r.Namespaced {
		namespace = cmp.Or(o.given.namespace, c.Namespace)
	}
	o.SetNamespace(namespace)
}

// Moved reports whether err means that the kind of an object is served in another way than it was:
// the server answers so, and fresh discovery says so. Then the object is placed again, and the
// request may succeed now. The server has not begun what it has answered so.
func (c *Core) Moved(ctx context.Context, o *Subject, err error) bool {
	if o.given == nil || !Misplaced(err) {
		return false
	}
	r, changed := c.served(ctx, o.given.kind, o.Resource)
	if changed {
		c.place(o, r)
	}
	return changed
}

// ServedOtherwise reports whether a resource is served in another way by now.
func (c *Core) ServedOtherwise(ctx context.Context, r objects.Resource) bool {
	_, changed := c.served(ctx, r.Kind, r)
	return changed
}

// served looks a kind up in fresh discovery. It reports whether it is served in another way.
func (c *Core) served(
	ctx context.Context, kind schema.GroupVersionKind, was objects.Resource,
) (r objects.Resource, changed bool) {
	c.Kinds.Refresh(ctx)
	mapping, err := c.Kinds.GVK(ctx, kind)
	if err != nil {
		return r, false
	}
	r = c.Resource(ctx, mapping)
	return r, !r.Serves(was)
}

// Misplaced reports whether an error may be the answer to a request at a path that is not there,
// or about another kind. That an object is not there, or its namespace, is told with its name.
func Misplaced(err error) bool {
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
		d := status.Details
		return d == nil || d.Name == "" || slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool {
			return c.Type == metav1.CauseTypeUnexpectedServerResponse // no Status: client-go has made one
		})
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

// Gone reports whether the error of a list or watch certainly means that nothing is left to watch.
// In doubt it is false, and what is shown stays (G8). If the kind may be served in another way,
// discovery is read again.
func (c *Core) Gone(ctx context.Context, r objects.Resource, namespace string, err error) bool {
	if objects.Misplaced(err) {
		served, err := c.Kinds.Serves(ctx, r.GroupResource())
		return err == nil && !served
	}
	// The rights within a namespace are deleted with it, so a list there is forbidden. This get is
	// forbidden, too, unless a cluster role allows it: then nobody can tell, and what is shown
	// stays.
	if namespace == "" || !apierrors.IsForbidden(err) {
		return false
	}
	namespaces := c.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	_, err = namespaces.Get(ctx, namespace, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// Replaced reports whether the object of that UID is gone, or another one has its name.
func (c *Core) Replaced(ctx context.Context, o *Subject, uid types.UID) bool {
	now, err := c.Get(ctx, o)
	return apierrors.IsNotFound(err) || err == nil && now.GetUID() != uid
}
