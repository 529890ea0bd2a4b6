package snapshot

import (
	"errors"
	"fmt"
	"reflect"

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
	forms   []*form
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
	f, err := formOf(sf.Type)
	if err != nil {
		return fmt.Errorf("field %s of %s has %w", q.Name, object.TypeName(b.typ), unfit(sf.Type, err))
	}
	f.query, f.spansNamespaces = q.Name, q.SpansNamespaces
	b.indexes = append(b.indexes, sf.Index)
	b.forms = append(b.forms, f)
	return nil
}

// CheckField returns an error if a field of a type cannot hold objects. It says which types can.
func CheckField(t reflect.Type) error {
	if _, err := formOf(t); err != nil {
		return fmt.Errorf("it has %w", unfit(t, err))
	}
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

// SlicesOf returns the queries whose fields are slices that p, by its type, may point into.
func (b *Binding) SlicesOf(p any) (queries []int) {
	t := reflect.TypeOf(p)
	if t == nil || t.Kind() != reflect.Pointer {
		return nil
	}
	for i, f := range b.forms {
		if f.keying == inOrder && f.elem == t.Elem() {
			queries = append(queries, i)
		}
	}
	return queries
}

// NewTable returns an empty table for the query.
func (b *Binding) NewTable(query int) *Table { return newTable(b.forms[query]) }

// Set stores the table's value in the query's field. The target is an addressable struct of
// [Binding.Type]; the table belongs to the query.
func (b *Binding) Set(target reflect.Value, query int, t *Table) {
	if b.forms[query].lookup {
		b.SetRecorded(target, query, t, nil)
		return
	}
	b.forms[query].put(target.FieldByIndex(b.indexes[query]), t.Value())
}

// IsLookup reports whether the query's field is a [Lookup].
func (b *Binding) IsLookup(query int) bool { return b.forms[query].lookup }

// SetRecorded is Set for a [Lookup]. The recorder hears of each look-up in this field. Look-ups
// in other structs are not recorded.
func (b *Binding) SetRecorded(target reflect.Value, query int, t *Table, r Recorder) {
	target.FieldByIndex(b.indexes[query]).Addr().Interface().(lookupField).show(t, r)
}

// SetAbsent makes the query's field nil, or a [Lookup] that finds nothing. It says that the
// query's optional kind does not exist, which differs from a kind without objects.
func (b *Binding) SetAbsent(target reflect.Value, query int) {
	field := target.FieldByIndex(b.indexes[query])
	if b.forms[query].lookup {
		field.Addr().Interface().(lookupField).showNone()
		return
	}
	field.SetZero()
}
