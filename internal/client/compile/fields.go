package compile

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

// Struct is what the struct type of a snapshot says.
type Struct struct {
	Wanted  []Wanted
	Later   []Wanted // fields whose query comes at run time
	Reports []Report // fields that are no queries
	Mode    Mode
	hidden  []string // fields that look like queries, and are not exported
}

// Mode is how a struct type is read.
type Mode struct {
	Unreported bool // nothing fills the Reports: they are an error
	Roles      bool // fields may have a role of a controller
	Blind      bool // the server is not asked which kinds names mean
}

// Report is a field that is no query: the changes, the invalid objects, or what a controller adds.
type Report struct {
	Type reflect.Type
	What string // in errors: "for deltas"
	// Index is that of the struct's field, nil if it has none.
	Index []int
}

// Fields reads the fields of a struct type into s, and refines them by the queries.
func (c *Compiler) Fields(ctx context.Context, s Struct, t reflect.Type, queries []Wanted) (Struct, error) {
	if t.Kind() != reflect.Struct {
		return s, fmt.Errorf("a snapshot is a struct, not %s", t.Kind())
	}
	s.Reports = slices.Clone(s.Reports)
	refine := make(map[string]Wanted)
	for i, q := range queries {
		if q.Name == "" {
			return s, nameless(i, q)
		}
		if _, there := refine[q.Name]; there {
			return s, twice(q)
		}
		refine[q.Name] = q
	}
	if err := c.addFields(ctx, &s, t, nil, refine); err != nil {
		return s, err
	}
	for name := range refine {
		return s, noField(name, t)
	}
	switch {
	case len(s.Wanted) == 0 && s.Later != nil:
		return s, fmt.Errorf("no field says what to watch at first: %s comes later", s.Later[0].Name)
	case len(s.Wanted) == 0 && s.hidden != nil:
		return s, fmt.Errorf("no field says what to watch: not exported are %s", strings.Join(s.hidden, ", "))
	case len(s.Wanted) == 0:
		return s, errors.New("no field says what to watch")
	}
	if s.hidden != nil {
		if _, logged := loggedTypes.LoadOrStore(t, true); !logged {
			c.Log.Info("fields are not filled, because they are not exported", "type", objects.TypeName(t), "fields", s.hidden)
		}
	}
	return s, nil
}

// loggedTypes are the struct types whose hidden fields were logged: once in a program.
var loggedTypes sync.Map

func (c *Compiler) addFields(ctx context.Context, s *Struct, t reflect.Type, path []int, refine map[string]Wanted) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(slices.Clone(path), i)
		_, tagged := sf.Tag.Lookup("kates")
		other, err := s.noQuery(sf, index)
		switch {
		case err != nil:
			return err
		case other:
			continue
		case sf.Anonymous && sf.Type.Kind() == reflect.Struct && !tagged && tables.LookupElement(sf.Type) == nil:
			if err := c.addFields(ctx, s, sf.Type, index, refine); err != nil {
				return err
			}
			continue
		case !sf.IsExported():
			if err := c.hide(s, sf, tagged); err != nil {
				return err
			}
			continue
		}
		q, named := refine[sf.Name]
		if named && isLater(sf) {
			return fmt.Errorf("field %s: its tag says that its query comes later: give that to Add, while the watch runs", sf.Name)
		}
		delete(refine, sf.Name)
		w, err := c.OfField(ctx, s, sf, q, named)
		if err != nil {
			return fmt.Errorf("field %s: %w", sf.Name, err)
		}
		if slices.ContainsFunc(slices.Concat(s.Wanted, s.Later), func(w Wanted) bool { return w.Name == sf.Name }) {
			return fmt.Errorf("field %s: there is another one of that name in an embedded struct", sf.Name)
		}
		w.Index = index
		if isLater(sf) {
			s.Later = append(s.Later, w)
		} else {
			s.Wanted = append(s.Wanted, w)
		}
	}
	return nil
}

// isLater reports whether a field's tag says that its query comes at run time.
func isLater(sf reflect.StructField) bool {
	tag, err := parseTag(sf.Tag.Get("kates"))
	return err == nil && tag.later
}

// CheckNoneLater returns an error if a field of a struct type says that its query comes at run
// time. It is for watches to which nothing can be added.
func CheckNoneLater(t reflect.Type) error {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		sf := t.Field(i)
		if isLater(sf) {
			return fmt.Errorf("field %s: its tag says that its query comes later, and nothing is added to a watch of many clusters", sf.Name)
		}
		if _, tagged := sf.Tag.Lookup("kates"); sf.Anonymous && !tagged {
			if err := CheckNoneLater(sf.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// noQuery reports whether a field is certainly no query, and keeps what it is for.
func (s *Struct) noQuery(sf reflect.StructField, index []int) (bool, error) {
	tag, tagged := sf.Tag.Lookup("kates")
	r := s.report(sf)
	switch {
	case tag == "-":
		return true, nil
	case r != nil && tagged:
		return false, fmt.Errorf("field %s has a kates tag, but a field %s is no query", sf.Name, r.What)
	case r != nil && s.Mode.Unreported:
		return false, fmt.Errorf("field %s %s is not filled here: UpdateWithDeltas and JudgedUpdate return that", sf.Name, r.What)
	case r != nil && r.Index != nil:
		return false, fmt.Errorf("field %s: there is another one %s", sf.Name, r.What)
	case r != nil:
		r.Index = index
		return true, nil
	case sf.IsExported() && s.meant(sf.Type) != nil:
		return false, fmt.Errorf("field %s has type %s: want %s; or, if it is no such field, the tag `kates:\"-\"`", sf.Name, sf.Type, s.meant(sf.Type))
	}
	return false, nil
}

// hide passes over a field that is not exported. It is an error if the field is meant to be filled
// for certain.
func (c *Compiler) hide(s *Struct, sf reflect.StructField, tagged bool) error {
	switch gvk, err := c.registered(sf.Type); {
	case tagged:
		return fmt.Errorf("field %s has a kates tag but is not exported", sf.Name)
	case sf.Anonymous && sf.Type.Kind() == reflect.Pointer: // its promoted fields would be left out
		return fmt.Errorf("field %s is an embedded pointer: embed the struct itself, or tag it `kates:\"-\"`", sf.Name)
	case s.meant(sf.Type) != nil, err == nil && !gvk.Empty() && tables.CheckField(sf.Type) == nil:
		s.hidden = append(s.hidden, sf.Name)
	}
	return nil
}

// report returns the report that a field is for, nil for other fields.
func (s *Struct) report(sf reflect.StructField) *Report {
	for i := range s.Reports {
		if r := &s.Reports[i]; sf.IsExported() && sf.Type == r.Type {
			return r
		}
	}
	return nil
}

// meant returns the type that a field should have if its own is made of what the type of a report
// is made of: *[]Delta; nil for other fields.
func (s *Struct) meant(t reflect.Type) reflect.Type {
	for _, r := range s.Reports {
		if objects.Innermost(t) == objects.Innermost(r.Type) {
			return r.Type
		}
	}
	return nil
}

// OfField returns what one field of a struct watches, by its type, its tag, and the query of its
// name. That query is empty unless the field is named. If a field is not named whose query comes
// at run time, the result says no kind.
func (c *Compiler) OfField(ctx context.Context, s *Struct, sf reflect.StructField, q Wanted, named bool) (Wanted, error) {
	text, tagged := sf.Tag.Lookup("kates")
	tag, err := parseTag(text)
	if err == nil && tag.role != "" {
		sf.Type, err = s.roleType(tag, sf.Type, q)
	}
	var gvk schema.GroupVersionKind
	if err == nil {
		gvk, err = c.registered(sf.Type)
	}
	if err != nil {
		return Wanted{}, err
	}
	if err := tables.CheckField(sf.Type); err != nil {
		return Wanted{}, fmt.Errorf("%w%s", err, s.otherwise(sf, tagged || named))
	}
	if tag.later && !named {
		return Wanted{Name: sf.Name, Field: Field{Type: sf.Type, Role: tag.role}}, nil
	}
	if q.MetadataOnly && !gvk.Empty() {
		return Wanted{}, fmt.Errorf("its query wants metadata only, its type %s is whole objects: use []*kates.PartialObjectMetadata", objects.TypeName(sf.Type))
	}
	if !tagged && !named && gvk.Empty() {
		return Wanted{}, fmt.Errorf("its type %s says no kind: give it a tag `kates:\"KIND\"`, a Query of its name, or `kates:\"-\"`%s", objects.TypeName(sf.Type), unregistered(sf.Type))
	}
	if q.Key != nil && tables.LookupElement(sf.Type) != nil {
		return Wanted{}, errors.New("its query has a Key, but what is looked up belongs to no partition")
	}
	w := q
	w.Name, w.Optional = sf.Name, q.Optional || tag.optional
	w.Field = Field{GVK: gvk, Form: c.formOfField(sf.Type, gvk), Type: sf.Type, Role: tag.role}
	if q.Kind == "" {
		w.Kind = tag.kind
	}
	if w.Kind == "" && gvk.Empty() {
		return Wanted{}, fmt.Errorf("neither its type nor its tag nor its query says a kind: give it a tag `kates:\"KIND\"`, or its query a Kind%s", unregistered(sf.Type))
	}
	if s.Mode.Blind {
		return w, nil
	}
	return w, c.agree(ctx, gvk, sf.Type, tag.kind, q.Kind)
}

// otherwise says what else helps if a field's type is that of no query.
func (s *Struct) otherwise(sf reflect.StructField, query bool) (text string) {
	if s.Mode.Roles && sf.Type.Kind() == reflect.Pointer && sf.Type.Elem().Kind() == reflect.Struct {
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
	if elem == nil || elem.Kind() != reflect.Struct || !reflect.PointerTo(elem).Implements(reflect.TypeFor[objects.Object]()) {
		return ""
	}
	return fmt.Sprintf(", or register *%s in the client's scheme (kates.WithScheme)", elem)
}

// fieldTag is a tag `kates:"[KIND][,optional][,later]"`, or, in a controller's type,
// `kates:"[KIND][,root|,owned][,optional][,later]"`.
type fieldTag struct {
	kind     string
	optional bool
	later    bool // the query comes at run time
	role     Role
}

func parseTag(tag string) (t fieldTag, err error) {
	parts := strings.Split(tag, ",")
	for _, option := range parts[1:] {
		switch role := Role(option); {
		case option == "optional":
			t.optional = true
		case option == "later":
			t.later = true
		case role != Root && role != Owned:
			return t, fmt.Errorf("unknown option %q in the tag `kates:%q`, there are \"optional\" and \"later\", and in a controller's type \"root\" and \"owned\"", option, tag)
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
func (c *Compiler) registered(t reflect.Type) (schema.GroupVersionKind, error) {
	elem := elementOf(t)
	if elem == nil {
		return schema.GroupVersionKind{}, nil // the binding says what is wrong with it
	}
	switch kinds := c.KindsOf(elem); len(kinds) {
	case 0:
		return schema.GroupVersionKind{}, nil
	case 1:
		return kinds[0], nil
	default:
		return schema.GroupVersionKind{}, fmt.Errorf("its type %s is registered for several kinds %v", elem, kinds)
	}
}

// agree reports an error if the kinds that a field's tag and its query say are not the one that
// the Go type fixes, or, without such a type, not one kind.
func (c *Compiler) agree(ctx context.Context, gvk schema.GroupVersionKind, t reflect.Type, tag, query string) error {
	var first schema.GroupVersionKind
	for _, said := range []string{tag, query} {
		if said == "" || gvk.Empty() && (tag == "" || query == "") {
			continue
		}
		mapping, err := c.Kinds.Kind(ctx, said)
		if err != nil {
			return err
		}
		is := mapping.GroupVersionKind
		switch {
		case !gvk.Empty() && (is.GroupKind() != gvk.GroupKind() || is.Version != gvk.Version && saysVersion(said)):
			return fmt.Errorf("its type %s is %s, but %q is %s", t, gvk, said, is)
		case gvk.Empty() && !first.Empty() && is.GroupKind() != first.GroupKind():
			return fmt.Errorf("its tag says %q, its query %q", tag, query)
		}
		first = is
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

// formOfField returns the form in which a field's objects are watched. The form depends on the
// type of the elements; kind is the kind that this type fixes, if it does.
func (c *Compiler) formOfField(field reflect.Type, kind schema.GroupVersionKind) objects.Form {
	if elementOf(field) == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return objects.Metadata
	}
	if !c.Untyped && !kind.Empty() {
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
	return bareType(elem)
}
