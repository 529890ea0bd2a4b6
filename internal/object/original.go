package object

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/internal/base/guard"
)

// Original is an object as the server has it, in wire form. An object that is left out keeps its
// original, so that a program can report what is wrong with it. The zero Original is none.
type Original struct {
	form   string // of the bytes: equal objects have equal bytes
	raw    []byte
	decode func(raw []byte) (*unstructured.Unstructured, error)
}

// OriginalIn is an original in the bytes of a form, as a server has sent them. Nobody writes to the
// bytes, decode neither. decode may run the generated code of a type in a scheme.
func OriginalIn(form string, raw []byte, decode func(raw []byte) (*unstructured.Unstructured, error)) Original {
	return Original{form, raw, decode}
}

// OriginalOf is the original of an object: the one with which it was [Received], or else the object
// itself. There is none for an object that does not decode, or that is held in part.
func OriginalOf(o Object) Original {
	if r, ok := o.(*Received); ok {
		return r.Original
	}
	switch of := Bare(o).(type) {
	case *rejected:
		return of.original
	case *Projected:
		return Original{}
	}
	content, err := contentOf(Bare(o))
	if err != nil {
		return Original{}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return Original{}
	}
	return Original{"made here", raw, originalInJSON}
}

// contentOf returns an object's content, which the object may share.
func contentOf(o Object) (content map[string]any, err error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	err = guard.Call(func() (err error) {
		content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		return err
	})
	return content, err
}

func originalInJSON(raw []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	return u, utiljson.Unmarshal(raw, &u.Object)
}

// Bytes is how many bytes the original takes, 0 for none.
func (o Original) Bytes() int64 { return int64(len(o.raw)) }

// Object returns the original in memory of its own, nil if there is none or if it does not decode.
func (o Original) Object() *unstructured.Unstructured {
	if o.decode == nil {
		return nil
	}
	u, err := o.decode(o.raw)
	if err != nil || u.Object == nil {
		return nil
	}
	return u
}

// sameOriginal reports whether two originals of one version have the same content. They are not
// decoded for that: where their forms differ, as the answer to an own write differs from a list, the
// version decides.
func sameOriginal(a, b Original) bool {
	if a.decode == nil || b.decode == nil {
		return a.decode == nil && b.decode == nil
	}
	return a.form != b.form || bytes.Equal(a.raw, b.raw)
}

// Received is an object on its way from a source to streams, with its original. A stream holds
// [Bare] objects: the original goes where the stream has judged the object.
type Received struct {
	Object
	Original Original
}

// DeepCopyObject copies the object. The original is shared: nobody writes to it.
func (r *Received) DeepCopyObject() runtime.Object {
	return &Received{r.Object.DeepCopyObject().(Object), r.Original}
}

// Metadata returns the metadata of an original of a kind, nil if there is none.
func (o Original) Metadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	u := o.Object()
	if u == nil {
		return nil
	}
	metadata, err := Shorten(u, kind)
	if err != nil {
		return nil
	}
	return metadata
}
