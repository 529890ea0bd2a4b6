package kates

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/conditions"
	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/client/patch"
)

// ParseManifests reads the objects of a manifest: YAML documents, each of which may begin with
// "---" and end with "...", or JSON objects one after the other. No document is passed over.
// Kinds that client-go's scheme knows, or that of [InScheme], become their Go types
// (*corev1.Service …), all others *Unstructured. Documents that are empty or have only comments
// are skipped. Lists (kind List, ServiceList …) give their items, at any depth; what has a name is
// an object, whatever its kind is called. As in kubectl's client, unknown fields and repeated keys
// are no error.
//
// A document, or an item of a list, that cannot be read is an error, and the objects of the others
// are returned with it. [Strict] returns none then. The error joins those of all documents. Each
// names its document by the number, counting from 1, and never quotes its content.
func ParseManifests(text string, opts ...ManifestOption) ([]Object, error) {
	o := manifestOptions{scheme: clientscheme.Scheme}
	if err := o.apply(opts); err != nil {
		return nil, err
	}
	return o.parse(text, func(u *Unstructured) (Object, error) { return jsonform.Typed(o.scheme, u) })
}

// ParseManifestsToUnstructured is ParseManifests with every object an *Unstructured.
func ParseManifestsToUnstructured(text string, opts ...ManifestOption) ([]Object, error) {
	var o manifestOptions
	if err := o.apply(opts); err != nil {
		return nil, err
	}
	return o.parse(text, func(u *Unstructured) (Object, error) { return u, nil })
}

// ManifestOption says how manifests are read: [InScheme], [Strict].
type ManifestOption interface{ applyToManifests(*manifestOptions) }

type manifestOptions struct {
	scheme *runtime.Scheme
	strict bool
}

func (o *manifestOptions) apply(opts []ManifestOption) error {
	for _, opt := range opts {
		if opt == nil {
			return errors.New("parse manifests: an option is nil")
		}
		opt.applyToManifests(o)
	}
	return nil
}

// SchemeOption says which scheme maps Go types to kinds, see [InScheme].
type SchemeOption struct{ scheme *runtime.Scheme }

// InScheme has a function take the kinds and Go types of a scheme, in place of those of
// client-go's scheme: [ParseManifests], [NewObject], [NewObjectFromUnstructured],
// [NewUnstructuredFromObject], [NewDeltaFromObject], [StatusOf], [SetControllerReference] and the
// others of owner references. A client's scheme is [Client.Scheme]. Nil is client-go's.
func InScheme(scheme *runtime.Scheme) SchemeOption { return SchemeOption{scheme} }

func (s SchemeOption) applyToManifests(o *manifestOptions) { o.scheme = s.or() }

// or returns the scheme, or client-go's.
func (s SchemeOption) or() *runtime.Scheme { return cmp.Or(s.scheme, clientscheme.Scheme) }

// schemeOf returns the scheme that the last option says, or client-go's.
func schemeOf(in []SchemeOption) *runtime.Scheme {
	if len(in) == 0 {
		return clientscheme.Scheme
	}
	return in[len(in)-1].or()
}

// Strict has [ParseManifests] return no object if there is an error in any document.
func Strict() ManifestOption { return strict{} }

type strict struct{}

func (strict) applyToManifests(o *manifestOptions) { o.strict = true }

func (o manifestOptions) parse(text string, as func(*Unstructured) (Object, error)) ([]Object, error) {
	objects := []Object{}
	err := jsonform.EachObject(text, func(u *Unstructured) error {
		obj, err := as(u)
		if err == nil {
			objects = append(objects, obj)
		}
		return err
	})
	if err != nil && o.strict {
		return nil, err
	}
	return objects, err
}

// For Emissary's code: NewObject makes an empty object of a kind and apiVersion ("v1",
// "networking.k8s.io/v1"). New code makes a value of the Go type, or uses [NewUnstructured].
//
// The object has its Go type if client-go's scheme, or that of [InScheme], knows the kind, and is
// an *Unstructured otherwise. It is an error if either is missing or malformed, or if the kind is
// not that of an object (a list, an options type).
func NewObject(kind, version string, in ...SchemeOption) (Object, error) {
	if _, err := jsonform.ParseGVK(version, kind); err != nil {
		return nil, fmt.Errorf("new object: %w", err)
	}
	return NewObjectFromUnstructured(NewUnstructured(kind, version), in...)
}

// NewUnstructured makes an empty *Unstructured of a kind and apiVersion.
func NewUnstructured(kind, version string) *Unstructured {
	u := &Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	return u
}

// NewObjectFromUnstructured copies u into its Go type if client-go's scheme, or that of
// [InScheme], knows its kind, and into another *Unstructured otherwise. Fields that the Go type
// lacks are dropped. A field that does not fit its type is an error.
func NewObjectFromUnstructured(u *Unstructured, in ...SchemeOption) (Object, error) {
	copied, err := jsonform.ToUnstructured(nil, u)
	if err != nil {
		return nil, err
	}
	return jsonform.Typed(schemeOf(in), copied)
}

// NewUnstructuredFromObject copies obj into an *Unstructured. A Go type of client-go's scheme, or
// of that of [InScheme], whose kind is empty gets apiVersion and kind from there.
func NewUnstructuredFromObject(obj Object, in ...SchemeOption) (*Unstructured, error) {
	return jsonform.ToUnstructured(schemeOf(in), obj)
}

// For Emissary's code: ConvertObject copies src into dst, which may be of another Go type for the
// same kind, or of another version of it. New code reads an object in the Go type and the version
// that it wants ([Client.Get], [Watch]), or uses [NewObjectFromUnstructured].
//
// dst gets the apiVersion and kind that scheme (client-go's if nil) knows for its type. It shares
// no memory with src, and is untouched on an error.
//
// Between versions it uses, in this order:
//
//   - The conversion function that is registered in scheme.
//   - The methods ConvertTo and ConvertFrom, if the types have them as controller-runtime's
//     conversion webhooks want them. If neither type is the hub, scheme must know it.
//     See https://book.kubebuilder.io/multiversion-tutorial/conversion-concepts
//   - The names of the fields. If dst has no field for a value, that is an error.
//
// Within one version, or for a type that scheme does not know, dst may have fewer fields. Others
// are dropped then.
func ConvertObject(scheme *runtime.Scheme, src, dst runtime.Object) error {
	return jsonform.Convert(scheme, src, dst)
}

// For Emissary's code: MergeUpdate updates target with what source asks for, as an Upsert does.
// New code uses [Client.Upsert] or [Modify].
//
// Target can be sent as an update of the object that it was read from. It gets copies: it never
// shares memory with source. MergeUpdate panics if source holds something that does not encode as
// JSON, such as a channel.
func MergeUpdate(target, source *Unstructured) { patch.MergeUpdate(target, source) }

// IndexByName indexes objs by name into target. Objs is a slice of objects, or of structs whose
// pointers are objects. Target is a map[string]X, where X is the slice's element type or a
// pointer to it. Of several objects with one name the last is kept. Nil elements are skipped. The
// map's values are the slice's objects, not copies.
//
// It panics if objs or target are of other types, or target is nil.
func IndexByName(objs any, target any) {
	source, index := reflect.ValueOf(objs), reflect.ValueOf(target)
	if source.Kind() != reflect.Slice {
		panic(fmt.Sprintf("kates.IndexByName: %T is not a slice of objects", objs))
	}
	if index.Kind() != reflect.Map || index.Type().Key().Kind() != reflect.String || index.IsNil() {
		panic(fmt.Sprintf("kates.IndexByName: %T is not a (non-nil) map from names to objects", target))
	}
	for i := range source.Len() {
		elem := source.Index(i)
		if (elem.Kind() == reflect.Pointer || elem.Kind() == reflect.Interface) && elem.IsNil() {
			continue
		}
		named, ok := elem.Interface().(metav1.Object)
		if !ok {
			named, ok = elem.Addr().Interface().(metav1.Object)
		}
		if !ok {
			panic(fmt.Sprintf("kates.IndexByName: a %s is not an object", elem.Type()))
		}
		value, ok := indexable(elem, index.Type().Elem())
		if !ok {
			panic(fmt.Sprintf("kates.IndexByName: a %T cannot hold a %s", target, elem.Type()))
		}
		index.SetMapIndex(reflect.ValueOf(named.GetName()).Convert(index.Type().Key()), value)
	}
}

// indexable returns elem, what it holds or points to, or its address: the one that a map of want
// can hold.
func indexable(elem reflect.Value, want reflect.Type) (reflect.Value, bool) {
	candidates := []reflect.Value{elem, elem.Addr()}
	if elem.Kind() == reflect.Interface {
		elem = elem.Elem()
		candidates = append(candidates, elem)
	}
	if elem.Kind() == reflect.Pointer {
		candidates = append(candidates, elem.Elem())
	}
	for _, candidate := range candidates {
		if candidate.Type().AssignableTo(want) {
			return candidate, true
		}
	}
	return reflect.Value{}, false
}

// Errors of owner references, for errors.Is.
var (
	// ErrControlled: the object has another controller, and an object has at most one.
	ErrControlled = owners.ErrControlled
	// ErrOwnerScope: a namespaced owner owns objects of its own namespace only. The garbage
	// collector would take others for orphans.
	ErrOwnerScope = owners.ErrOwnerScope
)

// SetControllerReference makes owner the controller of an object, which it modifies. The object
// gets a reference to owner that blocks the owner's foreground deletion. It replaces any other
// reference to the same owner; references to other owners stay. An object that another owner
// controls is [ErrControlled]. One that is not in the namespace of its owner is [ErrOwnerScope],
// and so is a cluster-scoped object of a namespaced owner. On an error the object is not
// modified.
//
// The owner's kind is taken from the owner, or from client-go's scheme, or that of [InScheme]. A
// real server needs its
// UID. Where the server enforces it, blocking needs the right to update the owner's finalizers.
// See https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/ and
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/
func SetControllerReference(owner, object Object, in ...SchemeOption) error {
	return owners.SetController(owners.In(schemeOf(in), owner), object)
}

// AddOwnerReference makes owner one of the owners of an object, which it modifies. The object is
// garbage when all of its owners are gone. The reference does not make owner a controller and
// blocks nothing; if owner is the controller already, it stays so. Errors are those of
// [SetControllerReference] except [ErrControlled]: it does not matter who controls the object.
func AddOwnerReference(owner, object Object, in ...SchemeOption) error {
	return owners.Add(owners.In(schemeOf(in), owner), object)
}

// RemoveOwnerReference takes owner from the owners of an object, which it modifies, and reports
// whether it was one.
func RemoveOwnerReference(owner, object Object, in ...SchemeOption) bool {
	return owners.Remove(owners.In(schemeOf(in), owner), object)
}

// HasOwnerReference reports whether other names owner among its owners. Owners are compared by
// UID, or by group, kind and name if neither has one (objects that no server has seen).
func HasOwnerReference(owner, other Object, in ...SchemeOption) bool {
	return owners.Has(owners.In(schemeOf(in), owner), other)
}

// For Emissary's code: SetOwnerReferences makes owner the controller of objects, which it
// modifies. New code uses [SetControllerReference], which returns an error where the reference is
// wrong.
//
// Each object gets a controller reference that blocks the owner's foreground deletion, in place of
// any that it has to another controller. References to other owners stay. The empty kind of a
// typed owner is taken from client-go's scheme. An owner of any other Go type must carry its
// apiVersion and kind, or the server rejects the reference.
//
// Owner and object must be in the same namespace, or the owner cluster-scoped:
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
func SetOwnerReferences(owner Object, objects ...Object) {
	for _, object := range objects {
		owners.Replace(owner, object)
	}
}

// ObjectPhase says how far an object is from what its spec wants, see [StatusOf]. The words are
// those of [kstatus].
//
// [kstatus]: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
type ObjectPhase string

// The phases of objects. Failed may still heal: a controller says that it makes no progress.
// Unknown is an object that does not tell, or that has a field of a wrong type.
const (
	PhaseCurrent     = ObjectPhase(conditions.Current)
	PhaseInProgress  = ObjectPhase(conditions.InProgress)
	PhaseFailed      = ObjectPhase(conditions.Failed)
	PhaseTerminating = ObjectPhase(conditions.Terminating)
	PhaseUnknown     = ObjectPhase(conditions.Unknown)
)

// ObjectStatus is what an object says of itself, see [StatusOf].
type ObjectStatus struct {
	Phase   ObjectPhase
	Message string // why, in words for people: it may change
	// Generation is the object's, and ObservedGeneration the one that its status is about. Each is
	// 0 if the object does not say.
	Generation, ObservedGeneration int64
}

// Ready reports whether the object is as its spec wants it.
func (s ObjectStatus) Ready() bool { return s.Phase == PhaseCurrent }

// StatusOf says how far an object of any kind is, from the object alone: typed or untyped, and
// shared or not. It sends no request, modifies nothing, and never panics. What cannot be read is
// [PhaseUnknown], and the message says why; so is a nil object, and [PartialObjectMetadata].
//
// An object with a deletionTimestamp is Terminating. If its status is about another generation, it
// is InProgress. After that, these kinds have rules of their own:
//
//   - Deployment, StatefulSet, DaemonSet: the rules of kubectl rollout status, with the partition
//     of a StatefulSet. With OnDelete, pods need not be updated. Pods that are too many are waited
//     for. A Deployment that exceeds its progress deadline has Failed, and one with another
//     condition Progressing or Available that is False is InProgress.
//   - ReplicaSet, ReplicationController: as many pods as wanted, all available.
//   - Pod: ready, or succeeded. Failed pods, and those with containers in CrashLoopBackOff, have
//     Failed.
//   - Job: complete. Until then it is InProgress, also while it is suspended.
//   - PersistentVolumeClaim: bound. Service: a load balancer has an address.
//   - PodDisruptionBudget: as many pods are healthy as it wants.
//   - CustomResourceDefinition: established, and its names are accepted. APIService: available.
//
// For all other kinds the conditions count. Stalled or Failed that is True is Failed. Reconciling
// that is True is InProgress. Ready and Available have to be True, where they are there. A
// condition about an older generation is InProgress, unless it says that Stalled, Failed or
// Reconciling is not True. An object whose status has nothing of this is Current, as for kstatus:
// that may be because no controller has seen it yet.
//
// A Go type's kind comes from the object, or from client-go's scheme, or that of [InScheme].
func StatusOf(obj Object, in ...SchemeOption) ObjectStatus {
	s := conditions.StatusOf(schemeOf(in), obj)
	return ObjectStatus{
		Phase: ObjectPhase(s.Phase), Message: s.Message,
		Generation: s.Generation, ObservedGeneration: s.ObservedGeneration,
	}
}
