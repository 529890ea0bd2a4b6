package applied

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/object"
)

// Wanted is one of the objects of a set.
type Wanted struct {
	Given    Object
	Resource object.Resource
	Key      object.Key
	Owners   []metav1.OwnerReference
	Sum      string                     // the annotation's value: a digest of everything applied
	Object   *unstructured.Unstructured // the object that is applied; nil until Make
	Plain    []string                   // the keys of data that a Secret has from stringData
}

// Stored is the key of the object.
func (w *Wanted) Stored() Key { return Key{w.Resource.Storage, w.Key} }

// Says reports whether an object carries the annotation for exactly what is wanted.
func (s *Set) Says(w *Wanted, now Object) bool {
	return now.GetDeletionTimestamp() == nil && now.GetAnnotations()[s.Annotation] == w.Sum
}

// Refer sets the owners that the object gets.
func (s *Set) Refer(w *Wanted) error {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Key.Namespace, Name: w.Key.Name, OwnerReferences: w.Given.GetOwnerReferences(),
	}}
	var err error
	switch {
	case s.Remote:
	case s.Plain:
		err = owners.Add(s.Owner, o)
	default:
		err = owners.SetController(s.Owner, o)
	}
	w.Owners = o.OwnerReferences
	return err
}

// Summarize sets the digest of an object. If the given object has fields that are not sent, the
// digest is that of the object as it is made; otherwise making it can wait.
func (s *Set) Summarize(w *Wanted) (err error) {
	if _, applied := w.Given.GetAnnotations()[s.Annotation]; applied || serverWritten(w.Given) {
		return s.Make(w)
	}
	w.Sum, err = s.sum(w, w.Given) // the value has the owner's UID; what a Remote set adds follows from that
	return err
}

// serverWritten reports whether an object has fields that only the server writes, as one that was
// read from it.
func serverWritten(o Object) bool {
	return o.GetUID() != "" || o.GetResourceVersion() != "" || o.GetGeneration() != 0 ||
		o.GetCreationTimestamp() != (metav1.Time{}) || o.GetDeletionTimestamp() != nil ||
		len(o.GetManagedFields()) > 0 || o.GetSelfLink() != ""
}

// sum is the digest of what is applied.
func (s *Set) sum(w *Wanted, content any) (string, error) {
	return Digest(w.Resource.Kind, w.Key, s.Label, s.Value, w.Owners, content)
}

// Make makes the object that is applied, once. Fields that only the server writes are left out.
func (s *Set) Make(w *Wanted) error {
	if w.Object != nil {
		return nil
	}
	u, err := jsonform.ToUnstructured(s.Scheme, w.Given)
	if err != nil {
		return err
	}
	u.Object, w.Plain = patch.WithoutStringData(w.Resource.Kind, u.Object)
	u.SetGroupVersionKind(w.Resource.Kind)
	u.SetNamespace(w.Key.Namespace)
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		delete(metadata, "uid")
		for _, field := range patch.ServerFields {
			delete(metadata, field)
		}
	}
	// A Go type writes an empty status; that of a built-in kind has a subresource of its own.
	if saysNothing(u.Object["status"]) || s.BuiltIn(w.Resource.Kind) {
		delete(u.Object, "status")
	}
	if notes := u.GetAnnotations(); notes[s.Annotation] != "" { // of an earlier apply
		delete(notes, s.Annotation)
		u.SetAnnotations(notes)
	}
	u.SetLabels(with(u.GetLabels(), s.Label, s.Value))
	if s.Remote {
		u.SetLabels(with(u.GetLabels(), OwnerLabel, string(s.Owner.GetUID())))
		u.SetAnnotations(with(u.GetAnnotations(), OwnerAnnotation, OwnerText(s.Owner)))
	}
	u.SetOwnerReferences(w.Owners)
	if w.Sum == "" {
		if w.Sum, err = s.sum(w, u.Object); err != nil {
			return err
		}
	}
	if s.Annotate {
		u.SetAnnotations(with(u.GetAnnotations(), s.Annotation, w.Sum))
	}
	w.Object = u
	return nil
}

// with returns a copy of a map with one more entry.
func with(base map[string]string, key, value string) map[string]string {
	out := make(map[string]string, len(base)+1)
	maps.Copy(out, base)
	out[key] = value
	return out
}

// saysNothing reports whether a value consists of empty objects.
func saysNothing(value any) bool {
	fields, ok := value.(map[string]any)
	for _, part := range fields {
		ok = ok && saysNothing(part)
	}
	return ok || value == nil
}
