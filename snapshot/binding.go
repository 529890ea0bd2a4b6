package snapshot

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// Query names one field of the struct.
type Query struct {
	// Name is the Go name of the struct field. Promoted fields of embedded structs are named like
	// the struct's own.
	Name string
	// SpansNamespaces says that the query may hold objects of several namespaces. The keys of a
	// map[string]T are then "namespace/name", otherwise "name".
	SpansNamespaces bool
}

// Binding ties queries to the fields of one struct type. It is compiled once and never changes,
// so all its methods may be called concurrently. A query is given by its index in the slice that
// Compile received; an index out of range panics.
type Binding struct {
	typ     reflect.Type
	indexes [][]int // the field of each query, for reflect.Value.FieldByIndex
	forms   []*tables.Form
}

// Compile checks the queries against the struct type t (not a pointer to it) and prepares the
// conversion of their objects. The error names the query and the field. It is an error if a query
// has no name, or the name of another query, or if a field is missing, not exported, inside an
// embedded pointer, or of a type that cannot hold objects.
func Compile(t reflect.Type, queries []Query) (*Binding, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a snapshot is a struct, not %v", t)
	}
	b := &Binding{typ: t}
	seen := make(map[string]bool, len(queries))
	for i, q := range queries {
		if q.Name == "" {
			return nil, fmt.Errorf("query %d has no name", i)
		}
		if seen[q.Name] {
			return nil, fmt.Errorf("query %q: there are two of that name", q.Name)
		}
		seen[q.Name] = true
		if err := b.bind(q); err != nil {
			return nil, fmt.Errorf("query %q: %w", q.Name, err)
		}
	}
	return b, nil
}

func (b *Binding) bind(q Query) error {
	sf, ok := b.typ.FieldByName(q.Name)
	switch {
	case !ok:
		return fmt.Errorf("%s has no field %s", object.TypeName(b.typ), q.Name)
	case !sf.IsExported():
		return fmt.Errorf("field %s of %s is not exported", q.Name, object.TypeName(b.typ))
	}
	if err := checkPath(b.typ, sf.Index); err != nil {
		return fmt.Errorf("field %s of %s %w", q.Name, object.TypeName(b.typ), err)
	}
	f, err := tables.FormOf(sf.Type, q.Name, q.SpansNamespaces)
	if err != nil {
		return fmt.Errorf("field %s of %s %w", q.Name, object.TypeName(b.typ), err)
	}
	b.indexes = append(b.indexes, sf.Index)
	b.forms = append(b.forms, f)
	return nil
}

// checkPath refuses fields behind an embedded pointer. Copies of the caller's struct share such a
// field, so setting it would write to memory that another goroutine may be reading.
func checkPath(t reflect.Type, index []int) error {
	for _, i := range index[:len(index)-1] {
		t = t.Field(i).Type
		if t.Kind() == reflect.Pointer {
			return errors.New("is promoted through an embedded pointer; embed the struct itself")
		}
	}
	return nil
}

// Type returns the struct type.
func (b *Binding) Type() reflect.Type { return b.typ }

// Convert turns an object into an element of the query's field.
//
// An object that already has the element's type is not copied: []*T shares the pointer, []T gets
// a shallow copy, and map[string]any is the content of the *unstructured.Unstructured itself.
// Everything else is decoded into fresh memory. In all cases source and value are read-only. The
// error names kind, namespace and name, and never quotes the content of a Secret. Convert may run
// the user's UnmarshalJSON, so the caller holds no lock; a panic in it is returned as an error.
func (b *Binding) Convert(query int, src object.Object) (any, error) {
	return b.forms[query].Convert(src)
}

// NewTable returns an empty table for the query.
func (b *Binding) NewTable(query int) *tables.Table { return b.forms[query].NewTable() }

// Set stores the value of the query's table in the query's field. The target is an addressable
// struct of [Binding.Type]. A recorder, if there is one, hears of each look-up in a Lookup of this
// target. Without a table the field becomes nil, or a Lookup that finds nothing: the query's
// optional kind does not exist, which differs from a kind without objects.
func (b *Binding) Set(target reflect.Value, query int, t *tables.Table, r tables.Recorder) {
	b.forms[query].Set(target.FieldByIndex(b.indexes[query]), t, r)
}
