package fake

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/object"
)

// Fields reads every field of an object, since no fake declares which fields select: by known,
// which may be nil, and else by its path in the object. A missing field is empty.
func Fields(known object.FieldReader) object.FieldReader {
	return func(o object.Object, field string) (string, bool) {
		if known != nil {
			if v, ok := known(o, field); ok {
				return v, true
			}
		}
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return "", false
		}
		switch v, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(field, ".")...); v := v.(type) {
		case string:
			return v, true
		case bool:
			return strconv.FormatBool(v), true
		}
		return "", true
	}
}

// Selects judges an object by selectors, which a fake does not. Nil selectors select everything.
func Selects(r object.Resource, s object.Selection, o object.Object) bool {
	r.Field = Fields(r.Field)
	return object.Selects(r, object.Spec{Selection: s}, o)
}

// selectionOf reads the selectors of a request.
func selectionOf(o metav1.ListOptions) (s object.Selection, err error) {
	if o.LabelSelector != "" {
		if s.Labels, err = labels.Parse(o.LabelSelector); err != nil {
			return s, err
		}
	}
	if o.FieldSelector != "" {
		s.Fields, err = fields.ParseSelector(o.FieldSelector)
	}
	return s, err
}
