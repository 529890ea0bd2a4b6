package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/keyed"
	"github.com/kates-go/kates/snapshot"
)

// PlanController is what package controller stands on, and is for that package alone: its result
// cannot be named elsewhere. It reads the struct type and the options of a controller, as far as
// that is possible without a request. A field of the special type is no query.
func PlanController(c *Client, name string, t, special reflect.Type, options []RunOption) (*keyed.Plan[Status], error) {
	if c == nil {
		return nil, errors.New("the client is nil")
	}
	// A change is due at once, unless the options say otherwise: while a key has a turn, changes
	// coalesce anyway.
	settings, err := newRunSettings(c, false, append([]RunOption{WithInterval(0)}, options...))
	if err != nil {
		return nil, err
	}
	p := &controlled{client: c.With(settings.watch...), typ: t, special: special, settings: settings}
	fields, err := p.fields(context.Background(), true)
	if err != nil {
		return nil, err
	}
	root, err := fields.root()
	if err == nil {
		err = checkStruct(fields.shape(), fields.targets)
	}
	if err == nil {
		_, err = p.client.compile(fields.targets)
	}
	if err != nil {
		return nil, err
	}
	config := settings.config(p.client, c.core.log.WithValues("controller", name))
	return &keyed.Plan[Status]{Config: config, Special: fields.place, Root: root.index, Open: p.open}, nil
}

// controlled is a controller's type and options.
type controlled struct {
	client   *Client
	typ      reflect.Type
	special  reflect.Type
	settings *runSettings
}

// fields reads the struct type; blind, without asking the server.
func (p *controlled) fields(ctx context.Context, blind bool) (structFields, error) {
	return p.client.readFieldsOf(ctx, structFields{roles: true, special: p.special, blind: blind}, p.typ, p.settings.queries)
}

func (p *controlled) open(ctx context.Context) (keyed.Roots[Status], error) {
	c := p.client
	fields, err := p.fields(ctx, false)
	if err == nil {
		err = c.keyRoles(ctx, &fields)
	}
	if err != nil {
		return nil, err
	}
	compiled, err := c.compile(fields.targets)
	if err != nil {
		return nil, err
	}
	all, err := accumulator.Partition(ctx, c.core.streams, fields.shape(), compiled, accumulator.PartitionOptions{
		Options: c.watch.get().options(), Backoff: p.settings.policy.Backoff, Lasting: true,
	})
	if err != nil {
		return nil, err
	}
	return &roots{parts: parts{newPartitioned(c, all, fields)}, typ: p.typ, targets: fields.targets}, nil
}

// roots are partitions by roots.
type roots struct {
	parts
	typ     reflect.Type // of the controller's struct
	targets []target
}

// Next implements [keyed.Source].
func (r *roots) Next(ctx context.Context) (*keyed.Root, error) {
	turn, err := r.all.Next(ctx)
	if err != nil {
		return nil, r.because(err)
	}
	t := &rootTurn{turn: turn, of: r, into: reflect.New(r.typ).Elem()}
	root := &keyed.Root{RootTurn: t, Struct: t.into}
	shape := reflect.ValueOf(turn.Snapshot).Elem()
	for i, target := range r.targets {
		if target.role != rootRole {
			t.into.FieldByIndex(target.index).Set(shape.Field(i))
			continue
		}
		if all := shape.Field(i); all.Len() > 0 {
			root.Object = all.Index(0).Interface().(Object)
			root.UID = root.Object.GetUID()
		}
		for _, invalid := range turn.Invalid {
			if invalid.Query == target.Name {
				root.UID = invalid.Object.GetUID()
				root.Unread = fmt.Errorf("the root cannot be read: %w", invalid.Err)
			}
		}
	}
	if root.Object != nil {
		t.OwnedBy(root.Object.GetUID())
	}
	t.changes = r.report(turn, t.into)
	return root, nil
}

// Selective implements [keyed.Roots].
func (r *roots) Selective() bool {
	for _, t := range r.targets {
		if t.role == rootRole {
			return t.LabelSelector != "" || t.FieldSelector != "" || t.AnyOf != nil || t.NamespaceSelector != "" || t.Refs != nil
		}
	}
	return false
}

// rootTurn is the turn of a root's key.
type rootTurn struct {
	turn    *accumulator.Turn
	of      *roots
	into    reflect.Value // the controller's struct
	changes *changes      // nil if that has no field for deltas
}

// Name implements [keyed.Turn].
func (t *rootTurn) Name() string { return t.turn.Key }

// Context implements [keyed.Turn].
func (t *rootTurn) Context(ctx context.Context) context.Context { return t.of.begin(ctx) }

// OwnedBy implements [keyed.RootTurn]. The fields have what names the root as its controller: what
// remains has its UID, too.
func (t *rootTurn) OwnedBy(uid types.UID) {
	for _, target := range t.of.targets {
		if target.role != ownedRole {
			continue
		}
		if all := t.turn.Only(target.Name, func(o Object) bool { return controls(uid, o) }); all != nil {
			t.into.FieldByIndex(target.index).Set(reflect.ValueOf(all))
		}
	}
}

// Done implements [keyed.Turn].
func (t *rootTurn) Done(err error) {
	t.report(err != nil)
	t.turn.Done(err)
}

// Drop implements [keyed.Turn].
func (t *rootTurn) Drop() {
	t.report(!t.turn.Gone)
	t.turn.Done(nil)
}

// Again implements [keyed.Turn].
func (t *rootTurn) Again(after time.Duration) {
	t.report(true)
	t.turn.Again(after)
}

// Yield implements [keyed.Turn].
func (t *rootTurn) Yield() { t.Again(0) }

// Keep implements [keyed.Turn].
func (t *rootTurn) Keep() {
	t.report(false)
	t.turn.Keep()
}

// report says whether the next turn has the deltas of this one, too.
func (t *rootTurn) report(again bool) { t.of.done(t.turn.Key, t.changes, again) }

// role is the role of a field's objects for a controller. It is empty for watched objects.
type role string

const (
	rootRole  role = "root"
	ownedRole role = "owned"
)

// roleTarget returns what a field watches. The field may have a role.
func (c *Client) roleTarget(ctx context.Context, f *structFields, sf reflect.StructField, tag string, tagged bool, q Query, named bool) (target, error) {
	if !f.roles {
		return c.fieldTarget(ctx, sf, tag, tagged, q, named)
	}
	said, err := parseTag(tag)
	if err != nil {
		return target{}, err
	}
	switch {
	case said.role != "" && q.Key != nil:
		return target{}, fmt.Errorf("its query has a Key: the key of what is %q is the root's name", said.role)
	case said.role == rootRole && (said.optional || q.Optional):
		return target{}, errors.New("a root is not optional")
	case said.role == rootRole && (sf.Type.Kind() != reflect.Pointer || !sf.Type.Implements(reflect.TypeFor[Object]())):
		return target{}, fmt.Errorf("a root is a pointer to an API type, or *kates.Unstructured, not %s", sf.Type)
	case said.role == ownedRole && (elementOf(sf.Type) == nil || snapshot.LookupElement(sf.Type) != nil):
		return target{}, fmt.Errorf("what is owned is a slice or a map, not %s", sf.Type)
	case said.role == rootRole:
		sf.Type = reflect.SliceOf(sf.Type)
	}
	t, err := c.taggedTarget(ctx, sf, said, tagged, q, named, f.blind)
	t.role, t.typ = said.role, sf.Type
	return t, err
}

// root returns the root among the fields.
func (f *structFields) root() (root *target, err error) {
	for i, t := range f.targets {
		if t.role != rootRole {
			continue
		}
		if root != nil {
			return nil, fmt.Errorf("field %s: there is another root, %s", t.Name, root.Name)
		}
		root = &f.targets[i]
	}
	if root == nil {
		return nil, errors.New("no field is the root: tag one `kates:\",root\"`")
	}
	return root, nil
}

// shape is the struct type of a partition: it has a field for each target.
func (f *structFields) shape() reflect.Type {
	fields := make([]reflect.StructField, len(f.targets))
	for i, t := range f.targets {
		fields[i] = reflect.StructField{Name: t.Name, Type: t.typ}
	}
	return reflect.StructOf(fields)
}

// keyRoles sets the keys of the root and of what it owns.
func (c *Client) keyRoles(ctx context.Context, f *structFields) error {
	root, err := f.root()
	if err != nil {
		return err
	}
	kind, err := c.mappingOf(ctx, *root)
	if err != nil {
		return fmt.Errorf("query %q: %w", root.Name, err)
	}
	root.Key = ByNamespacedName
	for i := range f.targets {
		t := &f.targets[i]
		if t.role != ownedRole {
			continue
		}
		owned, err := c.mappingOf(ctx, *t)
		switch {
		case err != nil && !t.Optional:
			return fmt.Errorf("query %q: %w", t.Name, err)
		case err == nil && owned.GroupVersionKind.GroupKind() == kind.GroupVersionKind.GroupKind():
			return fmt.Errorf("field %s: what is owned is of the root's kind, %s: watch it with a Key, kates.ByOwner", t.Name, kind.GroupVersionKind.GroupKind())
		case err == nil && owned.Scope.Name() == meta.RESTScopeNameRoot && kind.Scope.Name() == meta.RESTScopeNameNamespace:
			return fmt.Errorf("field %s: %w: %s have no namespace, %s have one", t.Name, ErrOwnerScope, owned.Resource.GroupResource(), kind.Resource.GroupResource())
		}
		t.Key = keyOfController(kind)
	}
	return nil
}

func (c *Client) mappingOf(ctx context.Context, t target) (*meta.RESTMapping, error) {
	if t.kind.Empty() {
		return c.core.kinds.Kind(ctx, t.Kind)
	}
	return c.core.kinds.GVK(ctx, t.kind)
}

// keyOfController returns the key function of what a root of this kind controls: it gives the
// root's key.
func keyOfController(root *meta.RESTMapping) func(Object) []string {
	kind, namespaced := root.GroupVersionKind.GroupKind(), root.Scope.Name() == meta.RESTScopeNameNamespace
	return func(o Object) []string {
		owner := metav1.GetControllerOfNoCopy(o)
		if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind {
			return nil
		}
		if namespaced {
			return keyOf(join(o.GetNamespace(), owner.Name))
		}
		return keyOf(owner.Name)
	}
}

// controls reports whether an owner of that UID controls an object. Objects of a fake have no
// UID: then the name, which is the key, decides.
func controls(uid types.UID, o stream.Object) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	return owner != nil && owner.UID == uid
}
