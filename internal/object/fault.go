package object

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// ID says which object and version something is.
type ID struct{ APIVersion, Kind, Namespace, Name, UID, Version string }

// IDOf is the identity of an object of a resource.
func IDOf(o Object, r Resource) ID {
	if _, short := Bare(o).(*metav1.PartialObjectMetadata); short {
		return IDAs(o, r.Kind)
	}
	return IDAs(o, o.GetObjectKind().GroupVersionKind())
}

// IDAs is the identity of an object under a kind.
func IDAs(o Object, kind schema.GroupVersionKind) ID {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return ID{apiVersion, name, o.GetNamespace(), o.GetName(), string(o.GetUID()), o.GetResourceVersion()}
}

// Undecoded is what a source delivers in place of an object of a resource that does not decode:
// its identity and version, and why. It is left out of snapshots until its next version, and
// counts as an object for everything else. metadata is nil if it does not decode either.
func Undecoded(
	r Resource, key Key, uid types.UID, version string, metadata *metav1.PartialObjectMetadata, original Original, err error,
) Object {
	apiVersion, kind := r.Kind.ToAPIVersionAndKind()
	return Reject(ID{apiVersion, kind, key.Namespace, key.Name, string(uid), version}, metadata, original, err)
}

// Fault says why an object is left out: it did not decode, or could not be prepared. It is nil for
// all others.
func Fault(o Object) error {
	if r, ok := Bare(o).(*rejected); ok {
		return r.err
	}
	return nil
}

// FaultMetadata is the metadata of an object that is left out, nil if it is not known.
func FaultMetadata(o Object) Object {
	if r, ok := Bare(o).(*rejected); ok && r.metadata != nil {
		return r.metadata
	}
	return nil
}

// FaultOriginal is the original of an object that is left out, if it is known.
func FaultOriginal(o Object) Original {
	if r, ok := Bare(o).(*rejected); ok {
		return r.original
	}
	return Original{}
}

// LeftOut returns an object that is left out as far as it is known: whole, or its metadata, or its
// identity. The result is in memory of its own.
func LeftOut(o Object) *unstructured.Unstructured {
	if u := FaultOriginal(o).Object(); u != nil {
		return u
	}
	known := Bare(o)
	if r, ok := known.(*rejected); ok {
		known = &r.PartialObjectMetadata
		if r.metadata != nil {
			known = r.metadata
		}
	}
	if content, err := contentOf(known); err == nil {
		return (&unstructured.Unstructured{Object: content}).DeepCopy()
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(known.GetObjectKind().GroupVersionKind())
	u.SetNamespace(known.GetNamespace())
	u.SetName(known.GetName())
	u.SetUID(known.GetUID())
	u.SetResourceVersion(known.GetResourceVersion())
	return u
}

// rejected stands in the store for an object that could not be decoded or prepared. It has the
// object's identity, and what a program reports it by.
type rejected struct {
	metav1.PartialObjectMetadata
	metadata *metav1.PartialObjectMetadata // all of it, if it is known
	original Original
	err      error
	text     string // of err
}

// WithoutOriginal returns an object that is left out without its original.
func WithoutOriginal(o Object) Object {
	r, ok := Bare(o).(*rejected)
	if !ok || r.original.decode == nil {
		return o
	}
	short := *r
	short.original = Original{}
	return Like(&short, o)
}

// Reject returns what stands for an object that is left out. metadata is nil if it is not known.
func Reject(id ID, metadata *metav1.PartialObjectMetadata, original Original, err error) Object {
	if metadata != nil && len(metadata.ManagedFields) > 0 {
		short := *metadata
		short.ManagedFields, metadata = nil, &short
	}
	r := &rejected{metadata: metadata, original: original, err: err, text: err.Error()}
	r.APIVersion, r.Kind = id.APIVersion, id.Kind
	r.Namespace, r.Name, r.ResourceVersion = id.Namespace, id.Name, id.Version
	r.UID = types.UID(id.UID)
	if metadata != nil {
		r.Labels = metadata.Labels // whoever looks it up by its labels hears of it
	}
	return r
}

// sameContent compares objects where versions cannot: they may have no UID.
func SameUnversioned(a, b coherence.Object) bool {
	ra, ok1 := a.(*rejected)
	rb, ok2 := b.(*rejected)
	if ok1 || ok2 {
		return ok1 && ok2 && ra.text == rb.text && ra.Name == rb.Name && ra.Namespace == rb.Namespace &&
			sameOriginal(ra.original, rb.original)
	}
	if isProjected(a) || isProjected(b) {
		return SameContent(a.(Object), b.(Object))
	}
	ua, ok1 := a.(*unstructured.Unstructured)
	ub, ok2 := b.(*unstructured.Unstructured)
	if ok1 && ok2 {
		return equality.Semantic.DeepEqual(ua.Object, ub.Object)
	}
	return equality.Semantic.DeepEqual(a, b)
}
