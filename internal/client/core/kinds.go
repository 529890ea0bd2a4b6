package core

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/kinds/selectable"
	objects "github.com/kates-go/kates/internal/object"
)

// Resource returns a resource as streams and requests take it.
func (c *Core) Resource(ctx context.Context, m *meta.RESTMapping) objects.Resource {
	field := ReaderOf(selectable.BuiltIn(m.Resource))
	if c.Fake != nil {
		field = fake.Fields(field)
	}
	return objects.Resource{
		GroupVersionResource: m.Resource,
		Kind:                 m.GroupVersionKind,
		Namespaced:           m.Scope.Name() == meta.RESTScopeNameNamespace,
		Storage:              c.Kinds.Storage(ctx, m.Resource),
		Field:                field,
	}
}

// KindOf returns the kind that obj carries, or else the one that the client's scheme knows.
func (c *Core) KindOf(obj objects.Object) schema.GroupVersionKind {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		if kinds, _, err := c.Scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 {
			return kinds[0]
		}
	}
	return gvk
}

// Kindless is an error if a value of the caller's has no kind: neither in itself, nor by its type.
func Kindless(value any, gvk schema.GroupVersionKind) error {
	if gvk.Kind != "" {
		return nil
	}
	cure := "fill in its apiVersion and kind"
	if t := reflect.TypeOf(value); t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t != reflect.TypeFor[*unstructured.Unstructured]() {
		cure += ", or register the type in the client's scheme (kates.WithScheme); a controller whose root is a plain struct has the object in Info.Root"
	}
	return fmt.Errorf("a %T without a kind: %s", value, cure)
}

// KindsOf returns the kinds that a Go type is registered for; none for a type that takes any kind.
func (c *Core) KindsOf(t reflect.Type) []schema.GroupVersionKind {
	typed, ok := reflect.New(t).Interface().(runtime.Object)
	if _, partial := typed.(*metav1.PartialObjectMetadata); !ok || partial || t == reflect.TypeFor[unstructured.Unstructured]() {
		return nil
	}
	gvks, _, err := c.Scheme.ObjectKinds(typed)
	if err != nil {
		return nil
	}
	return gvks
}

// Fits is an error if a Go type belongs to another kind or version than an object.
func (c *Core) Fits(t reflect.Type, kind schema.GroupVersionKind) error {
	gvks := c.KindsOf(t)
	if len(gvks) == 0 || slices.Contains(gvks, kind) {
		return nil
	}
	return fmt.Errorf("%s is %s, not %s", t, gvks[0], kind)
}

// FitsTarget is Fits for the objects that a target holds: one, or a list.
func (c *Core) FitsTarget(target any, kind schema.GroupVersionKind) error {
	if target == nil {
		return nil
	}
	t := reflect.TypeOf(target)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if jsonform.IsTypedList(t) && len(c.KindsOf(t)) > 0 { // a kind may have Items of its own
		if items, _ := t.FieldByName("Items"); strings.HasSuffix(c.KindsOf(t)[0].Kind, "List") {
			t = items.Type
		}
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return c.Fits(t, kind)
}

// ErrShared is the error of a target that a snapshot shows. Package kates exports it.
var ErrShared = errors.New("the target is an object of a live snapshot, which is shared and read-only")

// CheckTarget checks a target before anything is sent.
func (c *Core) CheckTarget(target any) error {
	if err := jsonform.CheckTarget(target); err != nil {
		return err
	}
	if target != nil && c.Streams.Shares(target) {
		return fmt.Errorf("%w: %T", ErrShared, target)
	}
	return nil
}

// ReaderOf is how streams read selectable fields; nil if there are none.
func ReaderOf(f selectable.Fields) objects.FieldReader {
	if len(f) == 0 {
		return nil
	}
	return func(o objects.Object, field string) (string, bool) { return f.Value(o, field) }
}

// ErrPartial is the error of what is sent as a whole and is held in part. Package kates exports
// it.
var ErrPartial = errors.New("only some of the object's fields are held")

// CheckWhole returns an error if what is about to replace an object is a copy of one that a watch
// holds in part. Such a copy has no creationTimestamp, which every object has that a server has
// stored.
func (c *Core) CheckWhole(o *Subject, sent *unstructured.Unstructured) error {
	created := sent.GetCreationTimestamp()
	if sent.GetUID() == "" || !created.IsZero() || sent.GroupVersionKind() != o.Resource.Kind {
		return nil
	}
	held := c.Streams.Partly(o.Resource, o.Key(), "metadata", "creationTimestamp")
	if held == "" {
		return nil
	}
	return fmt.Errorf("%w: this is a copy of what a watch holds of it (%s), and the rest would be lost: use Modify or Patch",
		ErrPartial, held)
}

// Newest is the newest version of an object that streams show in a form that will do, nil if there
// is none. It has a resource version, so a write can be made conditional on it: there is none on a
// fake.
func (c *Core) Newest(r objects.Resource, key objects.Key, has func(objects.Object) bool) objects.Object {
	if c.Fake != nil {
		return nil
	}
	o := c.Streams.Newest(r, key, has)
	if o == nil || o.GetResourceVersion() == "" {
		return nil
	}
	return o
}

// CheckNamespace is an error if no namespace can have the name; "" stands for none.
func CheckNamespace(name string) error {
	if name == "" {
		return nil
	}
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("invalid namespace %q: %s", name, strings.Join(wrong, ", "))
	}
	return nil
}
