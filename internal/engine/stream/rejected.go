package stream

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// identity says which object and version something is.
type identity struct{ apiVersion, kind, namespace, name, uid, version string }

func identityOf(o Object, r Resource) identity {
	gvk := o.GetObjectKind().GroupVersionKind()
	if _, short := object.Bare(o).(*metav1.PartialObjectMetadata); short {
		gvk = r.Kind
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return identity{apiVersion, kind, o.GetNamespace(), o.GetName(), string(o.GetUID()), o.GetResourceVersion()}
}

// Undecoded is what a source delivers in place of an object of a resource that does not decode:
// its identity and version, and why. It is left out of snapshots until its next version, and
// counts as an object for everything else. metadata is nil if it does not decode either.
func Undecoded(r Resource, key Key, uid types.UID, version string, metadata *metav1.PartialObjectMetadata, err error) Object {
	apiVersion, kind := r.Kind.ToAPIVersionAndKind()
	o := reject(identity{apiVersion, kind, key.Namespace, key.Name, string(uid), version}, err)
	o.metadata = metadata
	return o
}

// Fault says why an object is left out: it did not decode, or could not be prepared. It is nil for
// all others.
func Fault(o Object) error {
	if r, ok := object.Bare(o).(*rejected); ok {
		return r.err
	}
	return nil
}

// FaultMetadata is the metadata of an object that is left out, nil if it is not known.
func FaultMetadata(o Object) Object {
	if r, ok := object.Bare(o).(*rejected); ok && r.metadata != nil {
		return r.metadata
	}
	return nil
}

// rejected stands in the store for an object that could not be decoded or prepared. It has the
// object's identity, and nothing else.
type rejected struct {
	metav1.PartialObjectMetadata
	metadata *metav1.PartialObjectMetadata // all of it, if it is known
	err      error
	text     string // of err
}

func reject(id identity, err error) *rejected {
	r := &rejected{err: err, text: err.Error()}
	r.APIVersion, r.Kind = id.apiVersion, id.kind
	r.Namespace, r.Name, r.ResourceVersion = id.namespace, id.name, id.version
	r.UID = types.UID(id.uid)
	return r
}

// sameContent compares objects where versions cannot: they may have no UID.
func sameContent(a, b coherence.Object) bool {
	ra, ok1 := a.(*rejected)
	rb, ok2 := b.(*rejected)
	if ok1 || ok2 {
		return ok1 && ok2 && ra.text == rb.text && ra.Name == rb.Name && ra.Namespace == rb.Namespace
	}
	if isProjected(a) || isProjected(b) {
		return object.SameContent(a.(Object), b.(Object))
	}
	ua, ok1 := a.(*unstructured.Unstructured)
	ub, ok2 := b.(*unstructured.Unstructured)
	if ok1 && ok2 {
		return equality.Semantic.DeepEqual(ua.Object, ub.Object)
	}
	return equality.Semantic.DeepEqual(a, b)
}
