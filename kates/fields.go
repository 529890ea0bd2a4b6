package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/snapshot"
)

// structFields is what the struct type of a snapshot says.
type structFields struct {
	targets         []target
	deltas, invalid []int
}

// fieldsOf reads the fields of a snapshot type and refines them by the queries.
func (c *Client) fieldsOf(ctx context.Context, t reflect.Type, queries []Query) (structFields, error) {
	var f structFields
	if t.Kind() != reflect.Struct {
		return f, fmt.Errorf("a snapshot is a struct, not %s", t.Kind())
	}
	refine := make(map[string]Query)
	for i, q := range queries {
		if q.Name == "" {
			return f, fmt.Errorf("query %d (kind %q) has no name", i, q.Kind)
		}
		if _, twice := refine[q.Name]; twice {
			return f, fmt.Errorf("query %q: there are two of that name", q.Name)
		}
		refine[q.Name] = q
	}
	if err := c.addFields(ctx, &f, t, nil, refine); err != nil {
		return f, err
	}
	for name := range refine {
		return f, fmt.Errorf("query %q: %s has no exported field of that name that could be a query", name, t)
	}
	if len(f.targets) == 0 {
		return f, errors.New("no field says what to watch")
	}
	return f, nil
}

func (c *Client) addFields(ctx context.Context, f *structFields, t reflect.Type, path []int, refine map[string]Query) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(append([]int(nil), path...), i)
		tag, tagged := sf.Tag.Lookup("kates")
		switch {
		case tag == "-":
			continue
		case sf.Anonymous && sf.Type.Kind() == reflect.Struct && !tagged && snapshot.LookupElement(sf.Type) == nil:
			if err := c.addFields(ctx, f, sf.Type, index, refine); err != nil {
				return err
			}
			continue
		case !sf.IsExported():
			if tagged {
				return fmt.Errorf("field %s has a kates tag but is not exported", sf.Name)
			}
			continue
		case sf.Type == reflect.TypeFor[[]*Delta]():
			if f.deltas != nil {
				return fmt.Errorf("field %s: there is another one for deltas", sf.Name)
			}
			f.deltas = index
			continue
		case sf.Type == reflect.TypeFor[[]Invalid]():
			if f.invalid != nil {
				return fmt.Errorf("field %s: there is another one for invalid objects", sf.Name)
			}
			f.invalid = index
			continue
		}
		q, named := refine[sf.Name]
		delete(refine, sf.Name)
		target, err := c.fieldTarget(ctx, sf, tag, tagged, q, named)
		if err != nil {
			return fmt.Errorf("field %s: %w", sf.Name, err)
		}
		f.targets = append(f.targets, target)
	}
	return nil
}

// fieldTarget is what one field watches.
func (c *Client) fieldTarget(ctx context.Context, sf reflect.StructField, tag string, tagged bool, q Query, named bool) (target, error) {
	kind, optional, err := parseTag(tag)
	if err != nil {
		return target{}, err
	}
	gvk, err := c.registered(sf.Type)
	if err != nil {
		return target{}, err
	}
	if q.MetadataOnly && !gvk.Empty() {
		return target{}, fmt.Errorf("its query wants metadata only, its type %s is whole objects: use []*kates.PartialObjectMetadata", sf.Type)
	}
	if !tagged && !named && gvk.Empty() {
		return target{}, fmt.Errorf("its type %s says no kind: give it a tag `kates:\"KIND\"`, a Query of its name, or `kates:\"-\"`", sf.Type)
	}
	if q.Key != nil && snapshot.LookupElement(sf.Type) != nil {
		return target{}, errors.New("its query has a Key, but what is looked up belongs to no partition")
	}
	t := target{Query: q, kind: gvk, form: c.core.formOf(sf.Type, gvk)}
	t.Name = sf.Name
	t.Optional = q.Optional || optional
	for _, said := range []string{kind, q.Kind} {
		if said == "" {
			continue
		}
		if err := c.agrees(ctx, said, gvk, sf.Type); err != nil {
			return target{}, err
		}
		t.Kind = said
	}
	if kind != "" && q.Kind != "" && gvk.Empty() {
		if err := c.same(ctx, kind, q.Kind); err != nil {
			return target{}, err
		}
	}
	if t.Kind == "" && gvk.Empty() {
		return target{}, errors.New("neither its type nor its tag nor its query says a kind")
	}
	return t, nil
}

// parseTag reads `kates:"[KIND][,optional]"`.
func parseTag(tag string) (kind string, optional bool, err error) {
	parts := strings.Split(tag, ",")
	for _, option := range parts[1:] {
		if option != "optional" {
			return "", false, fmt.Errorf("unknown option %q in the tag `kates:%q`, there is only \"optional\"", option, tag)
		}
		optional = true
	}
	return strings.TrimSpace(parts[0]), optional, nil
}

// registered returns the kind of the objects in a field, where their Go type fixes it.
func (c *Client) registered(t reflect.Type) (schema.GroupVersionKind, error) {
	elem := elementOf(t)
	if elem == nil {
		return schema.GroupVersionKind{}, nil // the binding says what is wrong with it
	}
	if elem == reflect.TypeFor[unstructured.Unstructured]() || elem == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return schema.GroupVersionKind{}, nil
	}
	obj, ok := reflect.New(elem).Interface().(runtime.Object)
	if !ok {
		return schema.GroupVersionKind{}, nil
	}
	kinds, _, err := c.core.scheme.ObjectKinds(obj)
	if runtime.IsNotRegisteredError(err) || len(kinds) == 0 {
		return schema.GroupVersionKind{}, nil
	}
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	if len(kinds) > 1 {
		return schema.GroupVersionKind{}, fmt.Errorf("its type %s is registered for several kinds %v", elem, kinds)
	}
	return kinds[0], nil
}

// agrees reports an error if a kind that was said is not the one that the Go type fixes.
func (c *Client) agrees(ctx context.Context, said string, gvk schema.GroupVersionKind, t reflect.Type) error {
	if gvk.Empty() {
		return nil
	}
	mapping, err := c.core.resolver.kindContext(ctx, said)
	if err != nil {
		return err
	}
	if mapping.GroupVersionKind.GroupKind() != gvk.GroupKind() ||
		(mapping.GroupVersionKind.Version != gvk.Version && saysVersion(said)) {
		return fmt.Errorf("its type %s is %s, but %q is %s", t, gvk, said, mapping.GroupVersionKind)
	}
	return nil
}

// same reports an error if two names are not of one kind.
func (c *Client) same(ctx context.Context, a, b string) error {
	ma, err := c.core.resolver.kindContext(ctx, a)
	if err != nil {
		return err
	}
	mb, err := c.core.resolver.kindContext(ctx, b)
	if err != nil {
		return err
	}
	if ma.GroupVersionKind.GroupKind() != mb.GroupVersionKind.GroupKind() {
		return fmt.Errorf("its tag says %q, its query %q", a, b)
	}
	return nil
}

// saysVersion reports whether a kind was written with its version: deployments.v1.apps.
func saysVersion(kind string) bool {
	gvr, _ := schema.ParseResourceArg(kind)
	return gvr != nil && looksLikeVersion(gvr.Version)
}

func looksLikeVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9'
}
