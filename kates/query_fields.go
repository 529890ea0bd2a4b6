package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
)

// structFields is what the struct type of a snapshot says.
type structFields struct {
	targets         []target
	later           []target // of a controller: fields whose query may come at run time
	deltas, invalid []int
	unreported      bool     // nothing fills deltas and invalid: they are an error
	unfilled        []string // fields that look like queries, and are not exported

	// What the type of a controller may have besides.
	roles   bool         // fields with a role
	special reflect.Type // one field of this type, which is no query
	place   []int        // of that
	blind   bool         // the server is not asked which kinds names mean
}

// fieldsOf reads the fields of a struct type into f, and refines them by the queries.
func (c *Client) fieldsOf(ctx context.Context, f structFields, t reflect.Type, queries []Query) (structFields, error) {
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
	switch {
	case len(f.targets) == 0 && f.unfilled != nil:
		return f, fmt.Errorf("no field says what to watch: not exported are %s", strings.Join(f.unfilled, ", "))
	case len(f.targets) == 0:
		return f, errors.New("no field says what to watch")
	}
	if f.unfilled != nil {
		if _, logged := loggedTypes.LoadOrStore(t, true); !logged {
			c.core.Log.Info("fields are not filled, because they are not exported", "type", objects.TypeName(t), "fields", f.unfilled)
		}
	}
	return f, nil
}

func (c *Client) addFields(ctx context.Context, f *structFields, t reflect.Type, path []int, refine map[string]Query) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(append([]int(nil), path...), i)
		tag, tagged := sf.Tag.Lookup("kates")
		at, what := f.report(sf)
		switch {
		case tag == "-":
			if f.roles && sf.IsExported() && tables.CheckField(sf.Type) == nil {
				f.later = append(f.later, target{Query: Query{Name: sf.Name}, index: index, typ: sf.Type})
			}
			continue
		case at != nil && tagged:
			return fmt.Errorf("field %s has a kates tag, but a field %s is no query", sf.Name, what)
		case at != nil && f.unreported:
			return fmt.Errorf("field %s %s is not filled here: UpdateWithDeltas and JudgedUpdate return that", sf.Name, what)
		case at != nil && *at != nil:
			return fmt.Errorf("field %s: there is another one %s", sf.Name, what)
		case at != nil:
			*at = index
			continue
		case sf.IsExported() && f.meant(sf.Type) != nil:
			return fmt.Errorf("field %s has type %s: want %s; or, if it is no such field, the tag `kates:\"-\"`", sf.Name, sf.Type, f.meant(sf.Type))
		case sf.Anonymous && sf.Type.Kind() == reflect.Struct && !tagged && tables.LookupElement(sf.Type) == nil:
			if err := c.addFields(ctx, f, sf.Type, index, refine); err != nil {
				return err
			}
			continue
		case !sf.IsExported():
			if err := c.unexported(f, sf, tagged); err != nil {
				return err
			}
			continue
		}
		q, named := refine[sf.Name]
		delete(refine, sf.Name)
		watched, err := c.fieldTarget(ctx, f, sf, q, named)
		if err != nil {
			return fmt.Errorf("field %s: %w", sf.Name, err)
		}
		if slices.ContainsFunc(f.targets, func(t target) bool { return t.Name == sf.Name }) {
			return fmt.Errorf("field %s: there is another one of that name in an embedded struct", sf.Name)
		}
		watched.index = index
		f.targets = append(f.targets, watched)
	}
	return nil
}

// unexported passes over a field that is not exported. It is an error if the field is meant to be
// filled for certain.
func (c *Client) unexported(f *structFields, sf reflect.StructField, tagged bool) error {
	switch gvk, err := c.registered(sf.Type); {
	case tagged:
		return fmt.Errorf("field %s has a kates tag but is not exported", sf.Name)
	case sf.Anonymous && sf.Type.Kind() == reflect.Pointer: // its promoted fields would be left out
		return fmt.Errorf("field %s is an embedded pointer: embed the struct itself, or tag it `kates:\"-\"`", sf.Name)
	case f.meant(sf.Type) != nil, err == nil && !gvk.Empty() && tables.CheckField(sf.Type) == nil:
		f.unfilled = append(f.unfilled, sf.Name)
	}
	return nil
}

// report returns the place for the index of a field that is no query, and what it is for; nil for
// other fields.
func (f *structFields) report(sf reflect.StructField) (at *[]int, what string) {
	switch {
	case !sf.IsExported():
	case sf.Type == f.special:
		return &f.place, "of type " + sf.Type.String()
	case sf.Type == reflect.TypeFor[[]*Delta]():
		return &f.deltas, "for deltas"
	case sf.Type == reflect.TypeFor[[]Invalid]():
		return &f.invalid, "for invalid objects"
	}
	return nil, ""
}

// meant returns the type that a field should have if its own is made of what a field is made of
// that is no query: *[]Delta; nil for other fields.
func (f *structFields) meant(t reflect.Type) reflect.Type {
	switch objects.Innermost(t) {
	case f.special:
		return f.special
	case reflect.TypeFor[Delta]():
		return reflect.TypeFor[[]*Delta]()
	case reflect.TypeFor[Invalid]():
		return reflect.TypeFor[[]Invalid]()
	}
	return nil
}

// loggedTypes are the struct types whose fields that are not filled were logged: once in a program.
var loggedTypes sync.Map

// fieldTarget returns what one field of f watches, by its type, its tag, and the query of its
// name. That query is empty unless the field is named.
func (c *Client) fieldTarget(ctx context.Context, f *structFields, sf reflect.StructField, q Query, named bool) (target, error) {
	text, tagged := sf.Tag.Lookup("kates")
	if text == "-" { // the query comes at run time
		text = ""
	}
	tag, err := parseTag(text)
	if err == nil && tag.role != "" {
		sf.Type, err = f.roleType(tag, sf.Type, q)
	}
	var gvk schema.GroupVersionKind
	if err == nil {
		gvk, err = c.registered(sf.Type)
	}
	if err != nil {
		return target{}, err
	}
	if err := tables.CheckField(sf.Type); err != nil {
		return target{}, fmt.Errorf("%w%s", err, f.otherwise(sf, tagged || named))
	}
	if q.MetadataOnly && !gvk.Empty() {
		return target{}, fmt.Errorf("its query wants metadata only, its type %s is whole objects: use []*kates.PartialObjectMetadata", objects.TypeName(sf.Type))
	}
	if !tagged && !named && gvk.Empty() {
		return target{}, fmt.Errorf("its type %s says no kind: give it a tag `kates:\"KIND\"`, a Query of its name, or `kates:\"-\"`%s", objects.TypeName(sf.Type), unregistered(sf.Type))
	}
	if q.Key != nil && tables.LookupElement(sf.Type) != nil {
		return target{}, errors.New("its query has a Key, but what is looked up belongs to no partition")
	}
	t := target{Query: q, kind: gvk, form: c.core.formOf(sf.Type, gvk), typ: sf.Type, role: tag.role}
	t.Name = sf.Name
	t.Optional = q.Optional || tag.optional
	for _, said := range []string{tag.kind, q.Kind} {
		if said == "" {
			continue
		}
		t.Kind = said
		if f.blind {
			continue
		}
		if err := c.agrees(ctx, said, gvk, sf.Type); err != nil {
			return target{}, err
		}
	}
	if tag.kind != "" && q.Kind != "" && gvk.Empty() && !f.blind {
		if err := c.same(ctx, tag.kind, q.Kind); err != nil {
			return target{}, err
		}
	}
	if t.Kind == "" && gvk.Empty() {
		return target{}, fmt.Errorf("neither its type nor its tag nor its query says a kind: give it a tag `kates:\"KIND\"`, or its query a Kind%s", unregistered(sf.Type))
	}
	return t, nil
}

// otherwise says what else helps if a field's type is that of no query.
func (f *structFields) otherwise(sf reflect.StructField, query bool) (text string) {
	if f.roles && sf.Type.Kind() == reflect.Pointer && sf.Type.Elem().Kind() == reflect.Struct {
		text = "; or, if it is the root, the tag `kates:\",root\"`"
	}
	if !query {
		text += "; or, if it is no query, the tag `kates:\"-\"`"
	}
	return text
}

// unregistered says what else helps if a field's elements are of an API type without a kind.
func unregistered(t reflect.Type) string {
	elem := elementOf(t)
	if elem == nil || elem.Kind() != reflect.Struct || !reflect.PointerTo(elem).Implements(reflect.TypeFor[Object]()) {
		return ""
	}
	return fmt.Sprintf(", or register *%s in the client's scheme (kates.WithScheme)", elem)
}

// fieldTag is a tag `kates:"[KIND][,optional]"`, or, in a controller's type,
// `kates:"[KIND][,root|,owned][,optional]"`.
type fieldTag struct {
	kind     string
	optional bool
	role     role
}

func parseTag(tag string) (t fieldTag, err error) {
	parts := strings.Split(tag, ",")
	for _, option := range parts[1:] {
		switch role := role(option); {
		case option == "optional":
			t.optional = true
		case role != rootRole && role != ownedRole:
			return t, fmt.Errorf("unknown option %q in the tag `kates:%q`, there is \"optional\", and in a controller's type \"root\" and \"owned\"", option, tag)
		case t.role != "":
			return t, fmt.Errorf("two roles in the tag `kates:%q`", tag)
		default:
			t.role = role
		}
	}
	t.kind = strings.TrimSpace(parts[0])
	return t, nil
}

// registered returns the kind of the objects in a field, where their Go type fixes it.
func (c *Client) registered(t reflect.Type) (schema.GroupVersionKind, error) {
	elem := elementOf(t)
	if elem == nil {
		return schema.GroupVersionKind{}, nil // the binding says what is wrong with it
	}
	switch kinds := c.core.KindsOf(elem); len(kinds) {
	case 0:
		return schema.GroupVersionKind{}, nil
	case 1:
		return kinds[0], nil
	default:
		return schema.GroupVersionKind{}, fmt.Errorf("its type %s is registered for several kinds %v", elem, kinds)
	}
}

// agrees reports an error if a kind that was said is not the one that the Go type fixes.
func (c *Client) agrees(ctx context.Context, said string, gvk schema.GroupVersionKind, t reflect.Type) error {
	if gvk.Empty() {
		return nil
	}
	mapping, err := c.core.Kinds.Kind(ctx, said)
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
	ma, err := c.core.Kinds.Kind(ctx, a)
	if err != nil {
		return err
	}
	mb, err := c.core.Kinds.Kind(ctx, b)
	if err != nil {
		return err
	}
	if ma.GroupVersionKind.GroupKind() != mb.GroupVersionKind.GroupKind() {
		return fmt.Errorf("its tag says %q, its query %q", a, b)
	}
	return nil
}

// versionName is how the names of versions begin.
var versionName = regexp.MustCompile(`^v[0-9]`)

// saysVersion reports whether a kind is written with its version: deployments.v1.apps.
func saysVersion(kind string) bool {
	gvr, _ := schema.ParseResourceArg(kind)
	return gvr != nil && versionName.MatchString(gvr.Version)
}

// formOf returns the form in which a field's objects are watched. It depends on the type of the
// elements; kind is the kind that this type fixes, if it does.
func (c *shared) formOf(field reflect.Type, kind schema.GroupVersionKind) objects.Form {
	if elementOf(field) == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return objects.Metadata
	}
	if !c.untyped && !kind.Empty() {
		if _, ok := wire.TypeOf(c.Scheme, kind); ok {
			return objects.Typed
		}
	}
	return objects.Whole
}

// elementOf is the type of a field's elements, nil if it is neither a slice, nor a map, nor a
// list, nor a Lookup.
func elementOf(field reflect.Type) reflect.Type {
	elem := tables.LookupElement(field)
	if elem == nil {
		if items := tables.ItemsOf(field); items != nil {
			field = items
		}
		if field.Kind() != reflect.Slice && field.Kind() != reflect.Map {
			return nil
		}
		elem = field.Elem()
	}
	if elem.Kind() == reflect.Pointer {
		return elem.Elem()
	}
	return elem
}
