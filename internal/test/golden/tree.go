package golden

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// hidden is the tree of a Secret whose content does not say that it is one.
type hidden struct{ object map[string]any }

// walker makes trees of values. A tree is what encoding/json decodes to: maps, lists, texts,
// numbers, booleans, nil.
type walker struct {
	bare bool // what a server or a decoder fills in is left out
}

// tree returns the tree of a value. An object is its JSON. A struct that is not made for JSON is a
// map of its exported fields, without those with the tag `kates:"-"`.
func (w walker) tree(v reflect.Value) (any, error) {
	if !v.IsValid() {
		return nil, nil
	}
	if v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, nil
		}
		if err, is := v.Interface().(error); is {
			return err.Error(), nil
		}
		if object, is := v.Interface().(runtime.Object); is {
			return w.object(object)
		}
		if encodes(v.Type()) {
			return viaJSON(v.Interface())
		}
		return w.tree(v.Elem())
	}
	if v.CanAddr() || v.Kind() == reflect.Struct {
		if object, is := pointerTo(v).Interface().(runtime.Object); is {
			return w.object(object)
		}
	}
	if encodes(v.Type()) {
		return viaJSON(v.Interface())
	}
	switch v.Kind() {
	case reflect.Struct:
		return w.fields(v)
	case reflect.Slice, reflect.Array:
		return w.list(v)
	case reflect.Map:
		return w.entries(v)
	}
	return viaJSON(v.Interface())
}

func (w walker) fields(v reflect.Value) (any, error) {
	t := v.Type()
	if slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("json") != "" }) {
		return viaJSON(v.Interface())
	}
	all := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("kates")
		if !f.IsExported() || tag == "-" {
			continue
		}
		tree, err := w.tree(v.Field(i))
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		if strings.HasPrefix(strings.ToLower(tag), "secret") {
			tree = hideAll(tree, v.Field(i).Kind())
		}
		all[f.Name] = tree
	}
	return all, nil
}

// hideAll hides the elements of a field for Secrets, or the one that it has.
func hideAll(field any, kind reflect.Kind) any {
	switch t := field.(type) {
	case []any:
		all := make([]any, len(t))
		for i, e := range t {
			all[i] = hideAll(e, reflect.Invalid)
		}
		return all
	case map[string]any:
		if kind != reflect.Map {
			return hidden{t}
		}
		all := make(map[string]any, len(t))
		for name, e := range t {
			all[name] = hideAll(e, reflect.Invalid)
		}
		return all
	}
	return field
}

func (w walker) list(v reflect.Value) (any, error) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return viaJSON(v.Interface()) // bytes
	}
	if v.Kind() == reflect.Slice && v.IsNil() && !w.bare {
		return nil, nil
	}
	all := make([]any, v.Len())
	for i := range all {
		var err error
		if all[i], err = w.tree(v.Index(i)); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return all, nil
}

func (w walker) entries(v reflect.Value) (any, error) {
	if v.IsNil() && !w.bare {
		return nil, nil
	}
	all := make(map[string]any, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		key := fmt.Sprint(entries.Key().Interface())
		tree, err := w.tree(entries.Value())
		if err != nil {
			return nil, fmt.Errorf("[%s]: %w", key, err)
		}
		all[key] = tree
	}
	return all, nil
}

// object returns the tree of an API object, with its kind if client-go's scheme knows it.
func (w walker) object(o runtime.Object) (any, error) {
	tree, err := viaJSON(o)
	content, is := tree.(map[string]any)
	if _, untyped := o.(runtime.Unstructured); untyped || !is || err != nil {
		return tree, err
	}
	gvk := o.GetObjectKind().GroupVersionKind()
	if gvks, _, err := clientgoscheme.Scheme.ObjectKinds(o); err == nil && gvk.Empty() {
		gvk = gvks[0]
		content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	}
	if w.bare {
		delete(content, "apiVersion")
		delete(content, "kind")
	}
	switch o.(type) {
	case *corev1.Secret:
		return hidden{content}, nil
	case *corev1.SecretList:
		content["items"] = hideAll(content["items"], reflect.Invalid)
	}
	return content, nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// encodes reports whether values of the type say themselves how they look in JSON.
func encodes(t reflect.Type) bool { return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) }

func pointerTo(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v.Addr()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p
}

func viaJSON(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	err = utiljson.Unmarshal(text, &tree)
	return tree, err
}

// Text returns values as YAML, masked. Several are documents of one text, and have the masks in
// common. A text stays as it is.
func Text(values ...any) (string, error) { return text(walker{}, &Masks{}, values) }

// Bare is Text without anything that a server or a decoder fills in: versions, UIDs, generations,
// times, managed fields, and the kinds of Go types. A nil list is an empty one. So objects that a
// test has written down can be compared with those of a server.
func Bare(values ...any) (string, error) {
	return text(walker{bare: true}, &Masks{bare: true}, values)
}

func text(w walker, masks *Masks, values []any) (string, error) {
	trees := make([]any, len(values))
	for i, v := range values {
		var err error
		if trees[i], err = w.tree(reflect.ValueOf(v)); err != nil {
			return "", fmt.Errorf("%T as YAML: %w", v, err)
		}
	}
	masks.learn(trees)
	var all strings.Builder
	for i, tree := range trees {
		if i > 0 {
			all.WriteString("---\n")
		}
		if s, is := values[i].(string); is {
			all.WriteString(strings.TrimSuffix(s, "\n") + "\n")
			continue
		}
		document, err := yaml.Marshal(masks.mask(tree))
		if err != nil {
			return "", fmt.Errorf("%T as YAML: %w", values[i], err)
		}
		all.Write(document)
	}
	return all.String(), nil
}
