package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/partition"
	"github.com/kates-go/kates/internal/loops/keyed"
	objects "github.com/kates-go/kates/internal/object"
)

// PlanController is what package controller stands on, and is for that package alone: its result
// cannot be named elsewhere. It reads the struct type and the options of a controller, as far as
// that is possible without a request. A field of the special type is no query.
func PlanController(c *Client, name string, t, special reflect.Type, options []RunOption) (*keyed.Plan[Status], error) {
	if c == nil {
		return nil, errNoClient
	}
	// A change is due at once, unless the options say otherwise: while a key has a turn, changes
	// coalesce anyway.
	settings, err := newRunSettings(c, false, append([]RunOption{WithInterval(0), WithShutdownTimeout(keyed.ControllerTimeout)}, options...))
	if err != nil {
		return nil, err
	}
	p := &controlled{name: name, client: c.With(settings.watch...), typ: t, special: special, settings: settings}
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
	if err == nil {
		err = settings.divideRoots(c, slices.Concat(fields.targets, fields.later))
	}
	if err != nil {
		return nil, err
	}
	config := settings.config(p.client, name, settings.logOf(c, "controller", name))
	return &keyed.Plan[Status]{Config: config, Special: fields.place, Root: root.index, Open: p.open,
		LeaseStatus: func() Status { return settings.ownStatus(config.Report) }}, nil
}

// controlled is a controller's type and options.
type controlled struct {
	name     string
	client   *Client
	typ      reflect.Type
	special  reflect.Type
	settings *runSettings
}

// fields reads the struct type; blind, without asking the server.
func (p *controlled) fields(ctx context.Context, blind bool) (structFields, error) {
	return p.client.fieldsOf(ctx, structFields{roles: true, special: p.special, blind: blind}, p.typ, p.settings.queries)
}

func (p *controlled) open(ctx context.Context) (_ keyed.Roots[Status], err error) {
	release, err := take(p.settings.handles)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	c := p.client
	fields, err := p.fields(ctx, false)
	if err == nil {
		err = c.keyRoles(ctx, &fields)
	}
	if err == nil {
		err = p.divisible(ctx, fields)
	}
	if err != nil {
		return nil, err
	}
	compiled, err := c.compile(fields.targets)
	if err != nil {
		return nil, err
	}
	all, err := partition.Start(ctx, c.core.Streams, fields.shape(), compiled, partition.Options{
		Options: c.options(c.watch.get(), watched{fmt.Sprintf("controller %q", p.name), p.name}), Backoff: p.settings.policy.Backoff, Lasting: true,
		Sharing: p.settings.division.sharing(),
	})
	if err != nil {
		return nil, err
	}
	r := &roots{
		partitionWatch: partitionWatch{newPartitioned(c, p.typ, all, fields)}, typ: p.typ, targets: fields.targets, later: fields.later,
		of: structFields{roles: true, special: p.special}, release: release,
	}
	bind(p.settings.handles, r)
	return r, nil
}

// roots are partitions by roots.
type roots struct {
	partitionWatch
	typ     reflect.Type // of the controller's struct
	targets []target
	later   []target     // fields whose query may come at run time
	of      structFields // of the struct, with no targets
	release func()       // the handles
	// reselected: the root's query was replaced, so a root that left it may exist.
	reselected atomic.Bool
}

// Close ends the watch.
func (r *roots) Close() {
	r.release()
	r.partitionWatch.Close()
}

// Next implements [keyed.Source].
func (r *roots) Next(ctx context.Context) (*keyed.Root, error) {
	turn, err := r.all.Next(ctx)
	if err != nil {
		return nil, r.because(err)
	}
	into := reflect.New(r.typ).Elem()
	t := &rootTurn{keyTurn: r.turnOf(turn, into), targets: r.targets, into: into}
	root := &keyed.Root{RootTurn: t, Struct: into}
	shape := reflect.ValueOf(turn.Snapshot).Elem()
	for i, target := range r.targets {
		if target.role != rootRole {
			into.FieldByIndex(target.index).Set(shape.Field(i))
			continue
		}
		if all := shape.Field(i); all.Len() > 0 {
			root.Value = all.Index(0)
			root.Object = turn.First(target.Name) // what a plain struct was made of
			if o, is := root.Value.Interface().(Object); is {
				root.Object = o
			}
			root.UID = root.Object.GetUID()
		}
		for _, invalid := range turn.Invalid {
			if invalid.Query == target.Name {
				root.UID = invalid.Object.GetUID()
				root.Unread = fmt.Errorf("the root cannot be read: %w", invalid.Err)
			}
		}
	}
	for i, target := range r.later {
		into.FieldByIndex(target.index).Set(shape.Field(len(r.targets) + i))
	}
	if root.Object != nil {
		t.OwnedBy(root.Object.GetUID())
	}
	return root, nil
}

// Selective implements [keyed.Roots].
func (r *roots) Selective() bool {
	for _, t := range r.targets {
		if t.role == rootRole {
			return r.reselected.Load() || t.selection().selects() || t.AnyOf != nil || t.NamespaceSelector != "" || t.Refs != nil
		}
	}
	return false
}

// rootTurn is the turn of a root's key.
type rootTurn struct {
	*keyTurn
	targets []target
	into    reflect.Value // the controller's struct
}

// OwnedBy implements [keyed.RootTurn]. The fields have what names the root as its controller: what
// remains has its UID, too.
func (t *rootTurn) OwnedBy(uid types.UID) {
	for _, target := range t.targets {
		if target.role != ownedRole {
			continue
		}
		if all := t.turn.Only(target.Name, func(o Object) bool { return controls(uid, o) }); all != nil {
			t.into.FieldByIndex(target.index).Set(reflect.ValueOf(all))
		}
	}
}

// Yield implements [keyed.Turn].
func (t *rootTurn) Yield() { t.Again(0) }

// role is the role of a field's objects for a controller. It is empty for watched objects.
type role string

const (
	rootRole  role = "root"
	ownedRole role = "owned"
)

// roleType returns the type of the field that objects are put into, for a field of type t whose
// tag says a role.
func (f *structFields) roleType(tag fieldTag, t reflect.Type, q Query) (reflect.Type, error) {
	switch {
	case !f.roles:
		return nil, fmt.Errorf("the option %q is of package controller", tag.role)
	case q.Key != nil:
		return nil, fmt.Errorf("its query has a Key: the key of what is %q is the root's name", tag.role)
	case tag.role == rootRole && (tag.optional || q.Optional):
		return nil, errors.New("a root is not optional")
	case tag.role == rootRole && (t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct):
		return nil, fmt.Errorf("a root is a pointer to a struct (an API type or your own), or *kates.Unstructured, not %s", objects.TypeName(t))
	case tag.role == ownedRole && t.Kind() != reflect.Slice && t.Kind() != reflect.Map:
		return nil, fmt.Errorf("what is owned is a slice or a map, not %s", objects.TypeName(t))
	case tag.role == rootRole:
		return reflect.SliceOf(t), nil
	}
	return t, nil
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

// shape is the struct type of a partition: it has a field for each target, and for each that may
// come.
func (f *structFields) shape() reflect.Type {
	all := slices.Concat(f.targets, f.later)
	fields := make([]reflect.StructField, len(all))
	for i, t := range all {
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
		t.Key, root.scope = keyOfController(kind), kind.Scope.Name()
	}
	return nil
}

// keyOfController returns the key function of what a root of this kind controls: it gives the
// root's key.
//
//go:noinline
func keyOfController(root *meta.RESTMapping) func(Object) []string {
	kind, namespaced := root.GroupVersionKind.GroupKind(), root.Scope.Name() == meta.RESTScopeNameNamespace
	return func(o Object) []string {
		if needs(o, ownersPath) {
			return nil
		}
		owner := metav1.GetControllerOfNoCopy(o)
		if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind {
			return nil
		}
		if namespaced {
			return keyOf(objects.Path(o.GetNamespace(), owner.Name))
		}
		return keyOf(owner.Name)
	}
}

// controls reports whether an owner of that UID controls an object. Objects of a fake have no
// UID: then the name, which is the key, decides.
func controls(uid types.UID, o objects.Object) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	return owner != nil && owner.UID == uid
}
