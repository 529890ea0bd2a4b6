package compile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
)

// Role is the role of a field's objects for a controller. It is empty for watched objects.
type Role string

// The roles of fields.
const (
	Root  Role = "root"
	Owned Role = "owned"
)

// roleType returns the type of the field that objects are put into, for a field of type t whose
// tag says a role.
func (s *Struct) roleType(tag fieldTag, t reflect.Type, q Wanted) (reflect.Type, error) {
	switch {
	case !s.Mode.Roles:
		return nil, fmt.Errorf("the option %q is of package controller", tag.role)
	case q.Key != nil:
		return nil, fmt.Errorf("its query has a Key: the key of what is %q is the root's name", tag.role)
	case tag.role == Root && (tag.optional || q.Optional):
		return nil, errors.New("a root is not optional")
	case tag.role == Root && tag.later:
		return nil, errors.New("a root does not come later: there are no keys without it")
	case tag.role == Root && (t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct):
		return nil, fmt.Errorf("a root is a pointer to a struct (an API type or your own), or *kates.Unstructured, not %s", objects.TypeName(t))
	case tag.role == Owned && t.Kind() != reflect.Slice && t.Kind() != reflect.Map:
		return nil, fmt.Errorf("what is owned is a slice or a map, not %s", objects.TypeName(t))
	case tag.role == Root:
		return reflect.SliceOf(t), nil
	}
	return t, nil
}

// Root returns the root among the fields.
func (s *Struct) Root() (root *Wanted, err error) {
	for i, t := range s.Wanted {
		if t.Role != Root {
			continue
		}
		if root != nil {
			return nil, fmt.Errorf("field %s: there is another root, %s", t.Name, root.Name)
		}
		root = &s.Wanted[i]
	}
	if root == nil {
		return nil, errors.New("no field is the root: tag one `kates:\",root\"`")
	}
	return root, nil
}

// Shape is the struct type of a partition: it has a field for each query, and for each that may
// come.
func (s *Struct) Shape() reflect.Type {
	all := slices.Concat(s.Wanted, s.Later)
	fields := make([]reflect.StructField, len(all))
	for i, t := range all {
		fields[i] = reflect.StructField{Name: t.Name, Type: t.Type}
	}
	return reflect.StructOf(fields)
}

// KeyRoles sets the keys of the root and of what it owns.
func (c *Compiler) KeyRoles(ctx context.Context, s *Struct) error {
	root, err := s.Root()
	if err != nil {
		return err
	}
	kind, err := c.Mapping(ctx, root)
	if err != nil {
		return fmt.Errorf("query %q: %w", root.Name, err)
	}
	root.Key = ByNamespacedName()
	for i := range s.Wanted {
		t := &s.Wanted[i]
		if t.Role != Owned {
			continue
		}
		owned, err := c.Mapping(ctx, t)
		switch {
		case err != nil && !t.Optional:
			return fmt.Errorf("query %q: %w", t.Name, err)
		case err == nil && owned.GroupVersionKind.GroupKind() == kind.GroupVersionKind.GroupKind():
			return fmt.Errorf("field %s: what is owned is of the root's kind, %s: watch it with a Key, kates.ByOwner", t.Name, kind.GroupVersionKind.GroupKind())
		case err == nil && owned.Scope.Name() == meta.RESTScopeNameRoot && kind.Scope.Name() == meta.RESTScopeNameNamespace:
			return fmt.Errorf("field %s: %w: %s have no namespace, %s have one", t.Name, owners.ErrOwnerScope, owned.Resource.GroupResource(), kind.Resource.GroupResource())
		}
		t.Key, root.scope = keyOfController(kind), kind.Scope.Name()
	}
	if slices.ContainsFunc(s.Later, func(w Wanted) bool { return w.Role == Owned }) {
		root.scope = kind.Scope.Name()
	}
	return nil
}

// Controls reports whether an owner of that UID controls an object. Objects of a fake have no
// UID: then the name, which is the key, decides.
func Controls(uid types.UID, o objects.Object) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	return owner != nil && owner.UID == uid
}

// Division is how the replicas of a run divide its keys. The zero value divides by their names.
type Division struct {
	Field shardrange.Field
	Whole string // why the watches bring everything; empty: they do not
	// Of returns by what a query is divided, "" for one that stays whole. Place returns what of a
	// key is hashed; nil: the root's UID.
	Of    func(query.Query) shardrange.Field
	Place func(key string) string
}

// By is by what a user wants keys to be divided: by a field, by the key, or by what fits.
type By string

// The ways to divide keys. They are the values of kates.ShardBy.
const (
	ByNamespaces By = "namespace"
	ByUIDs       By = "uid"
	ByKeys       By = "key"
)

// The words of a status where watches are whole.
const (
	wholeByKey = "whole: keys are divided by their hashes, by which no server can select"
	wholeFake  = "whole: a fake is no server that could select"
)

// DivideKeys finds out how the replicas of a run divide its keys.
func (c *Compiler) DivideKeys(by By, queries []Wanted) (d Division, err error) {
	has := func(field shardrange.Field) bool {
		return slices.ContainsFunc(queries, func(w Wanted) bool { return w.Key != nil && w.Key.by == field })
	}
	switch {
	case by == "" && has(shardrange.Namespace):
		by = ByNamespaces
	case by == "" && has(shardrange.UID):
		by = ByUIDs
	case by == ByNamespaces && !has(shardrange.Namespace):
		return d, errors.New("sharding by namespace: no query has the Key kates.ByNamespace")
	case by == ByUIDs && !has(shardrange.UID):
		return d, errors.New("sharding by UID: no query has the Key kates.ByUID")
	}
	field := shardrange.Namespace
	switch {
	case c.Fake != nil:
		return Division{Whole: wholeFake}, nil
	case by == ByUIDs:
		field = shardrange.UID
	case by != ByNamespaces:
		return Division{Whole: wholeByKey}, nil
	}
	return Division{Field: field, Place: func(key string) string { return key }, Of: func(q query.Query) shardrange.Field {
		if q.KeyedBy == field {
			return field
		}
		return ""
	}}, nil
}

// DivideRoots finds out how the replicas of a controller divide its roots.
func (c *Compiler) DivideRoots(by By, s *Struct) Division {
	switch {
	case c.Fake != nil:
		return Division{Whole: wholeFake}
	case by == ByKeys:
		return Division{Whole: wholeByKey}
	}
	d := Division{Field: shardrange.UID}
	fields := map[Role]shardrange.Field{Root: shardrange.UID, Owned: shardrange.Controller}
	if by == ByNamespaces {
		d.Field, d.Place = shardrange.Namespace, namespaceOfKey
		fields = map[Role]shardrange.Field{Root: shardrange.Namespace, Owned: shardrange.Namespace}
	}
	roles := make(map[string]Role)
	for _, w := range slices.Concat(s.Wanted, s.Later) {
		roles[w.Name] = w.Role
	}
	d.Of = func(q query.Query) shardrange.Field { return fields[roles[q.Name]] }
	return d
}

// namespaceOfKey is the namespace in the key of a root that has one.
func namespaceOfKey(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}
