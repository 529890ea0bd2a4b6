package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// Key gives the keys of an object.
type Key struct {
	Of func(objects.Object) []string
	Reads
	sure bool // it never panics
	// ofOwner is the key of the owner that a reference of an object names; nil: the reference does
	// not say it.
	ofOwner func(objects.Object, *metav1.OwnerReference) string
	// by is what the keys are, if replicas can share objects by that.
	by shardrange.Field
}

// KeyOf makes a Key of a function that takes a T: see kates.KeyOf.
func KeyOf[T any](f func(T) []string) *Key {
	as := newConverter[T]()
	k := &Key{Reads: as.reads(f == nil)}
	k.Of = func(o objects.Object) []string {
		value, err := as.of(o)
		if err != nil {
			panic(fmt.Errorf("key: %w", err)) // the object counts as invalid
		}
		return f(value)
	}
	return k
}

// Keys returns the keys of an object, in order, each once. It returns an error if the function
// panics.
func (k *Key) Keys(o objects.Object) (keys []string, err error) {
	switch {
	case k == nil:
		return []string{query.EveryPartition}, nil
	case k.err != nil:
		return nil, k.err
	}
	err = guard.Named(query.KeyPanicked, func() error {
		keys = slices.Clone(k.Of(o))
		return nil
	})
	if slices.Contains(keys, query.EveryPartition) {
		return []string{query.EveryPartition}, err
	}
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return key == "" })
	return keys, err
}

// keyBy makes a Key of a function of this library that never panics, and reads some fields beside
// what is always held.
func keyBy(of func(objects.Object) []string, reads ...project.Path) *Key {
	return &Key{Of: of, Reads: reading(reads...), sure: true}
}

// ByNamespace makes a Key of an object's namespace.
func ByNamespace() *Key {
	k := keyBy(func(o objects.Object) []string { return OneKey(o.GetNamespace()) })
	k.by = shardrange.Namespace
	return k
}

// ByName makes a Key of an object's name.
func ByName() *Key {
	k := keyBy(func(o objects.Object) []string { return OneKey(o.GetName()) })
	k.ofOwner = func(_ objects.Object, owner *metav1.OwnerReference) string { return owner.Name }
	return k
}

// ByUID makes a Key of an object's UID.
func ByUID() *Key {
	k := keyBy(func(o objects.Object) []string { return OneKey(string(o.GetUID())) })
	k.by = shardrange.UID
	k.ofOwner = func(_ objects.Object, owner *metav1.OwnerReference) string { return string(owner.UID) }
	return k
}

// ByNamespacedName makes the Key of a controller's root.
func ByNamespacedName() *Key {
	k := keyBy(func(o objects.Object) []string { return OneKey(objects.Path(o.GetNamespace(), o.GetName())) })
	k.ofOwner = func(o objects.Object, owner *metav1.OwnerReference) string {
		return objects.Path(o.GetNamespace(), owner.Name)
	}
	return k
}

// ByOwner gives the key of an object's controller, as a Key of the controller gives it. A nil one is
// [ByNamespacedName].
func ByOwner(kind string, owners *Key) *Key {
	if owners == nil {
		owners = ByNamespacedName()
	}
	if owners.ofOwner == nil {
		return MisusedKey("key by owner: a reference to an owner does not have the owner's Key: use ByNamespacedName, ByName or ByUID")
	}
	wanted := schema.ParseGroupKind(kind)
	return keyBy(func(o objects.Object) []string {
		owner := metav1.GetControllerOfNoCopy(o)
		if owner == nil || !isKind(wanted, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()) {
			return nil
		}
		return OneKey(owners.ofOwner(o, owner))
	}, ownersPath)
}

// MisusedKey makes a Key that is an error of each query that has it.
func MisusedKey(why string) *Key { return &Key{Reads: Reads{err: errors.New(why)}} }

// ByRemoteOwner gives the key of an owner in another cluster.
func ByRemoteOwner(kind string) *Key {
	wanted := schema.ParseGroupKind(kind)
	return keyBy(func(o objects.Object) []string {
		owner, key, ok := applied.RemoteOwner(o)
		if !ok || !isKind(wanted, owner) {
			return nil
		}
		return OneKey(key)
	}, labelsPath, annotationsPath)
}

// isKind reports whether a kind is the wanted one, of which the kind and the group may be empty.
func isKind(wanted, kind schema.GroupKind) bool {
	return (wanted.Kind == "" || strings.EqualFold(kind.Kind, wanted.Kind)) &&
		(wanted.Group == "" || strings.EqualFold(kind.Group, wanted.Group))
}

// keyOfController returns the key function of what a root of this kind controls: it gives the
// root's key.
func keyOfController(root *meta.RESTMapping) *Key {
	kind, namespaced := root.GroupVersionKind.GroupKind(), root.Scope.Name() == meta.RESTScopeNameNamespace
	return keyBy(func(o objects.Object) []string {
		owner := metav1.GetControllerOfNoCopy(o)
		if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind {
			return nil
		}
		if namespaced {
			return OneKey(objects.Path(o.GetNamespace(), owner.Name))
		}
		return OneKey(owner.Name)
	}, ownersPath)
}

// ByLabel gives the value of a label.
func ByLabel(name string) *Key {
	return keyBy(func(o objects.Object) []string { return OneKey(o.GetLabels()[name]) }, labelsPath)
}

// ByAnnotation gives the value of an annotation.
func ByAnnotation(name string) *Key {
	return keyBy(func(o objects.Object) []string { return OneKey(o.GetAnnotations()[name]) }, annotationsPath)
}

// byField has the Keys of paths: equal ones are one function, so that they share streams.
var byField sync.Map

// ByField gives the values of a field.
func ByField(path string) *Key {
	if one, ok := byField.Load(path); ok {
		return one.(*Key)
	}
	names := jsonform.SplitPath(path)
	if names == nil {
		return &Key{Reads: Reads{err: fmt.Errorf("key by field %q: not a path", path)}}
	}
	k := keyBy(func(o objects.Object) []string {
		keys, err := jsonform.FieldValues(o, names)
		if err != nil {
			panic(fmt.Errorf("key by field %q: %w", path, err))
		}
		return keys
	}, names)
	k.sure = false
	one, _ := byField.LoadOrStore(path, k)
	return one.(*Key)
}

// OneKey returns one key, or none if it is empty.
func OneKey(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}
