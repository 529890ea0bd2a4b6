package tables

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/words"
	"github.com/kates-go/kates/internal/object"
)

// keying says by which key a field holds its elements.
type keying int

const (
	inOrder          keying = iota // []T
	byNamespacedName               // map[types.NamespacedName]T
	byUID                          // map[types.UID]T
	byString                       // map[string]T
)

// decoding says how an object becomes an element.
type decoding int

const (
	asUnstructured decoding = iota // unstructured.Unstructured
	asContent                      // a type whose underlying type is map[string]any, or any
	asAPIType                      // a runtime.Object; field names are case-sensitive
	asJSON                         // other structs, and types with an UnmarshalJSON
)

// Form is the compiled shape of one field: how it holds objects, and how it converts them. It never
// changes.
type Form struct {
	typ             reflect.Type // the field's type: a slice or a map; for a lookup a slice
	elem            reflect.Type // the type of the field's elements: base, or a pointer to it
	base            reflect.Type // what an object becomes
	keying          keying
	decoding        decoding
	spansNamespaces bool
	query           string // its name
	// the slice type in which a table keeps elements: typ, if that is a slice
	slices reflect.Type
	lookup bool // the field is a Lookup over such a slice
	// the field is a list, or a pointer to one, with such a slice in its Items; nil: it is not
	list reflect.Type
	// a nil element where an element, as a word, may be its source object itself; otherwise nil
	none Object
}

var (
	namespacedNameType = reflect.TypeFor[types.NamespacedName]()
	uidType            = reflect.TypeFor[types.UID]()
	stringType         = reflect.TypeFor[string]()
	contentType        = reflect.TypeFor[map[string]any]()
	anyType            = reflect.TypeFor[any]()
	unstructuredType   = reflect.TypeFor[unstructured.Unstructured]()

	objectType      = reflect.TypeFor[metav1.Object]()
	listType        = reflect.TypeFor[metav1.ListInterface]()
	runtimeType     = reflect.TypeFor[runtime.Object]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

const items = "Items"

// ItemsOf returns the type of the Items of a list, or of a pointer to one; nil for all other
// types. A list is a struct with a slice of that name, such as a corev1.PodList.
func ItemsOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	if f, ok := t.FieldByName(items); ok && len(f.Index) == 1 && f.Type.Kind() == reflect.Slice {
		return f.Type
	}
	return nil
}

// FormOf compiles the type of a query's field. Where the query spans namespaces, the keys of a
// map[string]T are "namespace/name", otherwise "name". The error says which types can hold objects.
func FormOf(t reflect.Type, query string, spansNamespaces bool) (*Form, error) {
	f, err := formOf(t)
	if err != nil {
		return nil, fmt.Errorf("has %w", unfit(t, err))
	}
	f.query, f.spansNamespaces = query, spansNamespaces
	return f, nil
}

// CheckField returns an error if a field of a type cannot hold objects. It says which types can.
func CheckField(t reflect.Type) error {
	if _, err := FormOf(t, "", false); err != nil {
		return fmt.Errorf("it %w", err)
	}
	return nil
}

// formOf compiles a field's type. The error says why the type cannot hold objects.
func formOf(t reflect.Type) (*Form, error) {
	f := &Form{typ: t}
	if elem := LookupElement(t); elem != nil {
		f.typ, f.lookup = reflect.SliceOf(elem), true
		t = f.typ
	}
	if slice := ItemsOf(t); slice != nil {
		f.list, f.typ, t = t, slice, slice
	}
	switch t.Kind() {
	case reflect.Slice:
		f.keying = inOrder
	case reflect.Map:
		switch t.Key() {
		case namespacedNameType:
			f.keying = byNamespacedName
		case uidType:
			f.keying = byUID
		case stringType:
			f.keying = byString
		default:
			return nil, fmt.Errorf("its keys are %v", t.Key())
		}
	default:
		return nil, errors.New("a query fills a slice, a map, a list or a Lookup")
	}
	f.elem = t.Elem()
	f.slices = t
	if f.keying != inOrder {
		f.slices = reflect.SliceOf(f.elem)
	}
	f.base = f.elem
	if f.elem.Kind() == reflect.Pointer {
		f.base = f.elem.Elem()
	}
	var err error
	f.decoding, err = decodingOf(f.base)
	if words.OK && f.byPointer() {
		f.none, _ = reflect.Zero(f.elem).Interface().(Object)
	}
	return f, err
}

// Decodes reports whether an object may fail to become an element.
func (f *Form) Decodes() bool { return f.decoding == asAPIType || f.decoding == asJSON }

// decodingOf chooses how an object becomes a base. The error says why that is impossible.
func decodingOf(base reflect.Type) (decoding, error) {
	isMap := base.Kind() == reflect.Map
	switch {
	case base == anyType:
		return asContent, nil
	case !isMap && base.Kind() != reflect.Struct && reflect.PointerTo(base).Implements(unmarshalerType):
		return asJSON, nil
	}
	switch {
	case isMap && !base.ConvertibleTo(contentType):
		return 0, fmt.Errorf("%s is not a map[string]any", object.TypeName(base))
	case base.Kind() == reflect.Pointer:
		return 0, errors.New("a pointer to a pointer cannot hold an object")
	case base.Kind() == reflect.Interface:
		return 0, fmt.Errorf("%s is an interface, which does not say what an object becomes", object.TypeName(base))
	case LookupElement(base) != nil:
		return 0, errors.New("a Lookup is not an object")
	case !isMap && base.Kind() != reflect.Struct:
		return 0, fmt.Errorf("%s cannot hold an object", object.TypeName(base))
	}
	pointer := reflect.PointerTo(base)
	isAPIType := pointer.Implements(runtimeType)
	switch {
	case isAPIType && pointer.Implements(listType) && !pointer.Implements(objectType):
		return 0, fmt.Errorf("%v is a list, not an object", base)
	case base == unstructuredType:
		return asUnstructured, nil
	case pointer.Implements(unmarshalerType):
		return asJSON, nil
	case isMap:
		return asContent, nil
	case isAPIType:
		return asAPIType, nil
	default:
		return asJSON, nil
	}
}

// Set stores a table's value in the field. For a [Lookup] the recorder, if there is one, hears of
// each look-up in this field. Look-ups in other structs are not recorded. Without a table the field
// becomes nil, or a Lookup that finds nothing.
func (f *Form) Set(field reflect.Value, t *Table, r Recorder) {
	switch {
	case f.lookup && t == nil:
		field.Addr().Interface().(lookupField).showNone()
	case f.lookup:
		field.Addr().Interface().(lookupField).show(t, r)
	case t == nil:
		field.SetZero()
	case f.list == nil:
		field.Set(t.Value())
	case f.list.Kind() == reflect.Pointer:
		list := reflect.New(f.list.Elem())
		list.Elem().FieldByName(items).Set(t.Value())
		field.Set(list)
	default:
		field.SetZero()
		field.FieldByName(items).Set(t.Value())
	}
}

// byPointer reports whether the field holds pointers to its elements.
func (f *Form) byPointer() bool { return f.elem != f.base }
