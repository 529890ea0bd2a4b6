package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/snapshot"
)

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
