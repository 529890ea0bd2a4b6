package project

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// For returns what keeps the same fields of objects of a Go type, in any encoding. It is an error
// if the type has no field at a path: the error names the field, and one of a similar name.
func (k *Keep) For(t reflect.Type) (*Filter, error) {
	c := keeper{kind: bare(t)}
	root, err := c.node(k.root, t, nil)
	if err != nil {
		return nil, err
	}
	return &Filter{root: root}, nil
}

// Untyped returns what keeps the same fields of objects in JSON, whatever their type.
func (k *Keep) Untyped() *Filter { return &Filter{root: k.root} }

// keeper compiles what is kept of a Go type.
type keeper struct{ kind reflect.Type }

// node compiles what is kept of a value of a type.
func (c keeper) node(n *node, t reflect.Type, path Path) (*node, error) {
	if n.members == nil {
		return n, nil
	}
	for t = bare(t); (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && formOf(t) == list; {
		t = bare(t.Elem())
	}
	made := &node{members: map[string]*node{}, entries: t.Kind() == reflect.Map}
	switch {
	case speaks(t) && len(path) > 0:
		return nil, fmt.Errorf("%s of a %s has a form of its own: keep it as a whole", path, c.kind.Name())
	case t.Kind() == reflect.Map:
		return made, c.keys(made, n, t.Elem(), path)
	case t.Kind() == reflect.Struct:
		if err := c.fields(made, n, t, path); err != nil {
			return nil, err
		}
		made.numbers = map[int]*node{}
		setNumbers(made, t)
		return made, nil
	case t.Kind() == reflect.Interface: // who knows
		return n, nil
	}
	return nil, fmt.Errorf("%s of a %s is %s: it has no fields", path, c.kind.Name(), formOf(t))
}

func (c keeper) keys(made, n *node, elem reflect.Type, path Path) (err error) {
	for _, key := range slices.Sorted(maps.Keys(n.members)) {
		if made.members[key], err = c.node(n.members[key], elem, append(slices.Clip(path), key)); err != nil {
			return err
		}
	}
	return nil
}

func (c keeper) fields(made, n *node, t reflect.Type, path Path) (err error) {
	for _, name := range slices.Sorted(maps.Keys(n.members)) {
		at := append(slices.Clip(path), name)
		f, ok := find(t, name)
		if !ok || f.name != name {
			return c.unknown(at, t)
		}
		if made.members[name], err = c.node(n.members[name], f.typ, at); err != nil {
			return err
		}
	}
	return nil
}

func (c keeper) unknown(path Path, t reflect.Type) error {
	err := fmt.Errorf("a %s has no field %s", c.kind.Name(), path)
	if near := nearest(t, path[len(path)-1]); near != "" {
		like := append(slices.Clone(path[:len(path)-1]), near)
		err = fmt.Errorf("%w; there is %s", err, like)
	}
	return err
}

// setNumbers sets the numbers in protobuf of the members of a struct.
func setNumbers(made *node, t reflect.Type) {
	for _, f := range fieldsOf(t) {
		switch {
		case f.inline && f.number > 0: // a message of its own
			inner := &node{members: made.members, numbers: map[int]*node{}}
			if setNumbers(inner, bare(f.typ)); len(inner.numbers) > 0 {
				made.numbers[f.number] = inner
			}
		case f.inline:
			setNumbers(made, bare(f.typ))
		case f.number > 0 && made.members[f.name] != nil:
			made.numbers[f.number] = made.members[f.name]
		}
	}
}
