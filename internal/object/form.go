package object

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/object/project"
)

// Form is how a stream asks for, decodes and holds its objects. One query in two forms is two
// streams.
type Form string

const (
	// Whole objects, untyped: *unstructured.Unstructured.
	Whole Form = ""
	// Metadata alone: *metav1.PartialObjectMetadata, of the object's own kind. The server sends
	// nothing else. See
	// https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
	Metadata Form = "metadata"
	// Typed objects: pointers to the Go type of the kind, decoded by the source. One that does
	// not decode is what [Undecoded] makes of it.
	Typed Form = "typed"
)

// Shorten returns the metadata of an object in memory of its own, under the object's kind. A
// server sends it under the kind PartialObjectMetadata, and items of a list under no kind.
func Shorten(o Object, kind schema.GroupVersionKind) (*metav1.PartialObjectMetadata, error) {
	short := &metav1.PartialObjectMetadata{}
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		*short = *o // a copy: a pointer into the list would keep the whole page
	case *unstructured.Unstructured:
		content := map[string]any{"metadata": o.Object["metadata"]}
		if err := asjson.Decode(content, short); err != nil {
			return nil, fmt.Errorf("read the metadata: %w", err)
		}
	case *Projected:
		h := o.Head()
		short.ObjectMeta = metav1.ObjectMeta{
			Name: h.Name, Namespace: h.Namespace, UID: h.UID, ResourceVersion: h.Version, Labels: h.Labels, Generation: h.More.Generation,
			CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: h.Deleted,
			Annotations: h.More.Annotations, OwnerReferences: h.More.Owners, Finalizers: h.More.Finalizers,
		}
	default:
		m, ok := sharedMetadata(o)
		if !ok {
			return nil, fmt.Errorf("cannot read the metadata of a %T", o)
		}
		short.ObjectMeta = *m
	}
	short.SetGroupVersionKind(kind)
	return short, nil
}

// sharedMetadata returns the metadata of a typed object; it shares memory with the object.
func sharedMetadata(o Object) (*metav1.ObjectMeta, bool) {
	a, ok := o.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil, false
	}
	m, ok := a.GetObjectMeta().(*metav1.ObjectMeta)
	return m, ok
}

// keeping is between a form and the paths of the fields that are held.
const keeping = ", only "

// Keeping returns a form of objects of which only some fields are held: the other ones are as if
// the object did not have them. Identity has to be among them, see [Identity].
func (f Form) Keeping(k *project.Keep) Form { return f + keeping + Form(k.String()) }

// Parts returns a form without what [Form.Keeping] has added, and that; "" if all fields are held.
func (f Form) Parts() (base Form, paths string) {
	whole, paths, _ := strings.Cut(string(f), keeping)
	return Form(whole), paths
}

// Identity are the paths of fields that a stream needs of each object: which object and version it
// is, and whether it is being deleted. The generation costs nothing, and statements about an
// object name it.
var Identity = []project.Path{
	{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"},
	{"metadata", "resourceVersion"}, {"metadata", "deletionTimestamp"}, {"metadata", "generation"},
}

// Kept are the fields that the form keeps, nil for all fields.
func (f Form) Kept() *project.Keep {
	_, paths := f.Parts()
	if paths == "" {
		return nil
	}
	k, err := project.ParseKeep(paths)
	if err != nil {
		panic(err) // Keeping has written it
	}
	return k
}

// OnlyPaths says of a form in words which fields are held, if not all are.
func OnlyPaths(form, paths string) string {
	if paths == "" {
		return form
	}
	return strings.TrimPrefix(form+keeping+paths, ", ")
}
