package kates

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/engine/query"
)

// EveryPartition is the result of a [Query.Key] for an object that belongs to every partition,
// like the objects of a query without a Key. It differs from any key that an object could give. A
// change of such an object is a change of each partition. It takes time for every partition, and
// memory until the partition has had its turn. Use a [Lookup] for what changes often and matters
// to few.
const EveryPartition = query.EveryPartition

// A Key gives the keys of the partitions that an object belongs to: see [Query]. [KeyOf] makes one
// of a function. The zero value is none. Values compare: one value is one function.
type Key struct{ f *compile.Key }

// Keys returns the keys of an object of any Go type as a watch takes them: in order, each once,
// and no empty one. The zero Key gives [EveryPartition]. An error says that the Key was made of
// nothing, or that the function panicked. A watch refuses the former, and leaves the object out as
// [Invalid] for the latter.
func (k Key) Keys(o Object) ([]string, error) { return k.f.Keys(o) }

// IsZero reports whether it is none.
func (k Key) IsZero() bool { return k.f == nil }

// KeyOf returns a [Query.Key] of a function that takes a T: see [Query] for what T may be.
//
//	kates.Query{Name: "Pods", Key: kates.KeyOf(func(p *corev1.Pod) []string {
//	    return []string{p.Spec.NodeName}
//	})}
//
// An object of another Go type is converted, once per version. One that does not decode as a T is
// left out as [Invalid]. If T is an API type and the field is of another kind, Watch returns an
// error. The function must not write to its argument.
func KeyOf[T any](f func(T) []string) Key { return Key{compile.KeyOf(f)} }

var (
	// ByNamespace is a [Query.Key]: the object's namespace. Objects of kinds without a namespace
	// belong to no partition.
	ByNamespace = Key{compile.ByNamespace()}
	// ByName is a [Query.Key]: the object's name, whatever its namespace. A [Namespace] object has
	// the same key as the objects in it have by [ByNamespace].
	ByName = Key{compile.ByName()}
	// ByNamespacedName is a [Query.Key]: "namespace/name", or the name of an object of a kind
	// without a namespace. The objects that it controls have the same key by [ByOwner].
	ByNamespacedName = Key{compile.ByNamespacedName()}
	// ByUID is a [Query.Key]: the object's UID. The objects that it controls have the same key by
	// [ByOwner].
	ByUID = Key{compile.ByUID()}
)

// ByOwner returns a [Query.Key]: the key that the object's controller has, which is the owner whose
// reference says so. The first argument is the kind of the controller: Kind or Kind.group
// (Deployment, Deployment.apps), in any letter case, or empty for any kind. Objects without such a
// controller belong to no partition.
//
// The second argument is the Key of the controllers, if it is another one than [ByNamespacedName]:
// [ByName], which is right for controllers without a namespace, or [ByUID]. Any other Key is an
// error of Watch, because a reference does not have what it asks for. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
func ByOwner(kind string, of ...Key) Key {
	if len(of) > 1 {
		return Key{compile.MisusedKey("key by owner: an owner has one Key")}
	}
	var owners *compile.Key
	for _, k := range of {
		owners = k.f
	}
	return Key{compile.ByOwner(kind, owners)}
}

// ByRemoteOwner is [ByOwner] for owners that live in another cluster ([OwnedSet].Remote): the key
// is "namespace/name" of the owner, or its name if it has no namespace.
func ByRemoteOwner(kind string) Key { return Key{compile.ByRemoteOwner(kind)} }

// ByLabel returns a [Query.Key]: the value of a label. Objects without it, or with an empty
// value, belong to no partition.
func ByLabel(name string) Key { return Key{compile.ByLabel(name)} }

// ByAnnotation returns a [Query.Key]: the value of an annotation. Objects without it, or with an
// empty value, belong to no partition.
func ByAnnotation(name string) Key { return Key{compile.ByAnnotation(name)} }

// ByField returns a [Query.Key]: the value of a field. The path is that of the object's JSON. A
// backslash makes a dot part of a name:
//
//	kates.ByField("spec.nodeName")
//	kates.ByField("spec.parentRefs.name") // one key for each element of a list
//
// Numbers and booleans are keys as JSON writes them. A value that is missing, null, empty, or a map
// gives no key. A typed object is converted to an untyped one, once per version: a function of your
// own is faster. An empty path, or one with an empty name in it, is an error of Watch. So is a path
// outside of the metadata where only that is watched.
func ByField(path string) Key { return Key{compile.ByField(path)} }

// Ref says that objects of one query name objects of another. See [RefsOf].
type Ref struct{ ref compile.Ref }

// RefsOf returns an element of [Query.Refs]: the objects that the objects of another query name.
// The other query is that of the field named query. T is the type that the function takes:
// see [Query] for what T may be. An API type of another kind than that field's is an error of
// Watch.
//
//	kates.Query{Name: "Secrets", Refs: []kates.Ref{
//	    kates.RefsOf("Ingresses", func(in *networkingv1.Ingress) (names []types.NamespacedName) {
//	        for _, tls := range in.Spec.TLS {
//	            names = append(names, types.NamespacedName{Name: tls.SecretName})
//	        }
//	        return names
//	    }),
//	}}
//
// A name without a namespace is in the namespace of the object that names it, unless the named
// kind has none. A reference without a name is ignored. A name that no object can have is absent:
// the named kind has namespaces, but neither the reference nor the object has one.
//
// The function is called once per version of an object, never twice at a time, without locks. It
// must not write to the object, and its result must depend only on the object. If it panics, or
// the object does not decode as a T, the object's former names stay, and the failure is logged.
func RefsOf[T any](queryName string, names func(T) []types.NamespacedName) Ref {
	return Ref{compile.RefsOf(queryName, names)}
}

// A Projection says which fields of its objects a query holds. The zero value holds all. See
// [Keep].
type Projection struct{ paths []string } // nil: all

// Keep returns a [Query.Projection] that holds only the fields at the paths:
//
//	kates.Query{Name: "Pods", Projection: kates.Keep("spec.nodeName", "status.podIP")}
//
// All other fields of the objects are as if they were not there: zero in a Go type, and missing in
// an untyped object. The client does not decode them, and they take no memory but the size of the
// Go type itself. Of many small objects in a large Go type that is most of it: a struct of your
// own is smaller.
//
// A path is that of the object's JSON, with dots. It leads through a list into each of its
// elements (spec.containers.image; the list keeps its length), and through a map by a key, which
// is in quotes and brackets where it has dots:
//
//	kates.Keep("spec.containers.image", `metadata.annotations["example.com/team"]`)
//
// A path to an object, a list or a map holds it as a whole, whatever other paths say. If the
// field's Go type has no field at a path, Watch returns an error that names one of a similar
// name. For an untyped field nobody knows.
//
// These fields are always held: apiVersion, kind, and of the metadata name, namespace, uid,
// resourceVersion, deletionTimestamp and generation. And a query holds what its selectors, its
// Key, its Signal and its Transform say that they read: the labels for a label selector, a
// [Lookup], a [Lister], [LabelsChanged] and [ByLabel], ownerReferences for [ByOwner] and for what
// a controller owns, the field of [ByField], and so on. A function of your own that takes a
// pointer to a struct of your own says by its fields what it reads. One that takes a metav1.Object
// reads the labels, annotations, ownerReferences and finalizers. A Where says what it reads. Any
// other function of yours, and those of Refs and predicates, get the objects as they are held:
// name the fields that they read. Finalizers that nobody reads are not held; [UnderFinalizer] and
// the like do not need them.
//
// Such an object is no whole one. [Modify], [ModifyStatus], [Client.SetConditions],
// [Client.AddFinalizer], [Client.ApplyOwned] and the like never take it for one: they start from
// a whole object, and ask the server for it if no watch has it. Nor does [GetCached]. But an
// [Client.Update] of a copy of it would remove whatever is not held. Update, UpdateStatus,
// Apply and Upsert refuse it with [ErrPartial]. They recognize it by its UID, and by
// the creationTimestamp that each object has and this one lacks. So they do not if the projection
// holds that, or all of the metadata: then it is up to you. Write with Modify or a patch.
//
// Queries share a watch if they hold the same fields, however these are written. A query with a
// projection is not served from the watch of another one ([Tuning].ShareWider). A change of fields
// that are not held is a new version of the object, and a signal: see [Query.Signal].
//
// It goes with neither MetadataOnly nor a field of a struct type of your own, which says itself
// what is held. List ignores it.
func Keep(paths ...string) Projection { return Projection{append([]string{}, paths...)} }

// ErrPartial is returned by methods that would replace a whole object by one of which a watch
// holds only some fields ([Query.Projection]): what is not held would be lost.
var ErrPartial = core.ErrPartial
