package kates

import (
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/query"
)

// EveryPartition is the result of a [Query.Key] for an object that belongs to every partition,
// like the objects of a query without a Key. It differs from any key that an object could give. A
// change of such an object is a change of each partition. It takes time for every partition, and
// memory until the partition has had its turn. Use a [Lookup] for what changes often and matters
// to few.
const EveryPartition = query.EveryPartition

// ByNamespace is a [Query.Key]: the object's namespace. Objects of kinds without a namespace
// belong to no partition.
func ByNamespace(o Object) []string { return compile.OneKey(o.GetNamespace()) }

// ByName is a [Query.Key]: the object's name, whatever its namespace. A [Namespace] object
// has the same key as the objects in it have by [ByNamespace].
func ByName(o Object) []string { return compile.OneKey(o.GetName()) }

// ByNamespacedName is a [Query.Key]: "namespace/name", or the name of an object of a kind without
// a namespace. The objects that it controls have the same key by [ByOwner].
func ByNamespacedName(o Object) []string { return compile.ByNamespacedName(o) }

// ByUID is a [Query.Key]: the object's UID. The objects that it controls have the same key by
// [ByOwnerUID].
func ByUID(o Object) []string { return compile.OneKey(string(o.GetUID())) }

// ByOwner returns a [Query.Key]: "namespace/name" of the object's controller, which is the owner
// whose reference says so. For an object of a kind without a namespace it is the controller's
// name. The argument is the kind of the controller: Kind or Kind.group (Deployment,
// Deployment.apps), in any letter case, or empty for any kind. Objects without such a controller
// belong to no partition.
//
// The reference does not say whether the owner has a namespace. For owners without one see
// [ByOwnerName]. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
func ByOwner(kind string) func(Object) []string { return compile.ByOwner(kind) }

// ByOwnerName is [ByOwner] with the controller's name alone: the key that a controller without a
// namespace has by [ByName].
func ByOwnerName(kind string) func(Object) []string { return compile.ByOwnerName(kind) }

// ByOwnerUID is [ByOwner] with the controller's UID: the key that the controller has by [ByUID].
func ByOwnerUID(kind string) func(Object) []string { return compile.ByOwnerUID(kind) }

// ByRemoteOwner is [ByOwner] for owners that live in another cluster ([OwnedSet].Remote): the key
// is "namespace/name" of the owner, or its name if it has no namespace.
func ByRemoteOwner(kind string) func(Object) []string { return compile.ByRemoteOwner(kind) }

// ByLabel returns a [Query.Key]: the value of a label. Objects without it, or with an empty
// value, belong to no partition.
func ByLabel(name string) func(Object) []string { return compile.ByLabel(name) }

// ByAnnotation returns a [Query.Key]: the value of an annotation. Objects without it, or with an
// empty value, belong to no partition.
func ByAnnotation(name string) func(Object) []string { return compile.ByAnnotation(name) }

// ByField returns a [Query.Key]: the value of a field. The path is that of the object's JSON. A
// backslash makes a dot part of a name:
//
//	kates.ByField("spec.nodeName")
//	kates.ByField("spec.parentRefs.name") // one key for each element of a list
//
// Numbers and booleans are keys as JSON writes them. A value that is missing, null, empty, or a
// map gives no key. An object that is watched as metadata alone has only its metadata fields. A
// typed object is converted to an untyped one, once per version: a function of your own is
// faster. A path that is empty, or has an empty name in it, makes every object of the query
// [Invalid].
func ByField(path string) func(Object) []string { return compile.ByField(path) }
