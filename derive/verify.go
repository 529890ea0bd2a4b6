package derive

import (
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"

	"k8s.io/utils/dump"

	"github.com/kates-go/kates/internal/base/guard"
)

// Verify runs each function of the graph twice, those of keys, groups, labels and selectors too.
// It compares the results with each other and with what the graph has. The error names each node
// and key at which they differ, and what differs. Nil says that the graph is what an evaluation
// from scratch gives. The error says one of three things:
//
//   - two runs give different results: the function depends on chance, a clock, or the order of a
//     map;
//   - nothing that was looked up has changed, and a run gives another result: the function reads
//     something that is not in the graph;
//   - the value was changed after it was returned.
//
// The last one needs a graph that is [Verified]. The error quotes values. Verify is called between
// two Updates, by the same goroutine.
func (g *Graph[S]) Verify() error {
	if err := g.c.enter("Verify during an Update"); err != nil {
		return err
	}
	defer g.c.updating.Store(false)
	if g.c.unsound {
		return fmt.Errorf("derive: graph %q: Verify before an Update that succeeds", g.c.name)
	}
	return g.c.verify()
}

// maxFindings bounds what an error lists.
const maxFindings = 20

func (c *core) verify() error {
	var all []error
	for _, n := range c.nodes {
		k, ok := n.(checked)
		if !ok {
			continue
		}
		for row := range k.checks() {
			if f := k.check(row); f != nil {
				if all = append(all, errors.New(f.text(true))); len(all) == maxFindings {
					return fmt.Errorf("derive: graph %q: %w, and maybe more", c.name, errors.Join(all...))
				}
			}
		}
	}
	if all == nil {
		return nil
	}
	return fmt.Errorf("derive: graph %q: %w", c.name, errors.Join(all...))
}

// audit checks n rows, from where the last audit has stopped.
func (c *core) audit(n int) {
	rows := 0
	for _, x := range c.nodes {
		if k, ok := x.(checked); ok {
			rows += k.checks()
		}
	}
	for range min(n, rows) {
		if c.audited >= rows {
			c.audited = 0
		}
		row := c.audited
		c.audited++
		for _, x := range c.nodes {
			k, ok := x.(checked)
			if !ok {
				continue
			}
			if row < k.checks() {
				c.found(k.check(row))
				break
			}
			row -= k.checks()
		}
	}
}

// found keeps a finding of an audit.
func (c *core) found(f *finding) {
	if f == nil {
		return
	}
	c.impures++
	if len(c.impure) == maxFindings {
		c.impure = c.impure[1:]
	}
	c.impure = append(c.impure, f.text(false))
}

// printing tells whether values get a fingerprint when they are returned.
func (c *core) printing() bool { return c.verified || c.audits > 0 }

// finding is what is wrong with an entry.
type finding struct {
	node, key string
	changed   bool // after it was returned
	random    bool // two runs differ; else a run differs from what is kept
	a, b      outcome
}

// outcome is what a run gave.
type outcome struct {
	val any
	err error
}

func (f *finding) text(values bool) string {
	name := f.node
	if f.key != "" {
		name += " " + f.key
	}
	at := ""
	if path := difference(reflect.ValueOf(f.a.val), reflect.ValueOf(f.b.val), "", 0); path != "" && f.a.err == nil && f.b.err == nil {
		at = " at " + path
	}
	a, b := "another result", ""
	if values {
		a, b = f.a.text(), f.b.text()
	}
	switch {
	case f.changed:
		return name + ": the value was changed after it was returned: no value is written to"
	case f.random && values:
		return fmt.Sprintf("%s: two runs differ%s: %s and %s", name, at, a, b)
	case f.random:
		return fmt.Sprintf("%s: two runs differ%s", name, at)
	case values:
		return fmt.Sprintf("%s: kept %s, a run gives %s: they differ%s, and nothing that it looked up has changed", name, a, b, at)
	}
	return fmt.Sprintf("%s: a run gives %s than the one that is kept%s, and nothing that it looked up has changed", name, a, at)
}

func (o outcome) text() string {
	text := ""
	switch {
	case o.err != nil && errors.Is(o.err, Skip):
		return "no entry"
	case o.err != nil:
		text = fmt.Sprintf("the error %q", o.err)
	default:
		text = fmt.Sprintf("%+v", o.val)
	}
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return text
}

// compared checks an entry: run runs its function, kept is what the graph has, and equal compares
// two values.
func compared(node, key string, run func() outcome, kept outcome, equal func(a, b any) bool) *finding {
	same := func(a, b outcome) (same bool) {
		switch {
		case errors.Is(a.err, Skip) || errors.Is(b.err, Skip):
			return errors.Is(a.err, Skip) && errors.Is(b.err, Skip)
		case a.err != nil || b.err != nil:
			return a.err != nil && b.err != nil && a.err.Error() == b.err.Error()
		}
		return guard.Call(func() error { same = equal(a.val, b.val); return nil }) == nil && same
	}
	one, two := run(), run()
	if !same(one, two) {
		return &finding{node: node, key: key, random: true, a: one, b: two}
	}
	if !same(kept, one) {
		return &finding{node: node, key: key, a: kept, b: one}
	}
	return nil
}

func identical(a, b any) bool { return a == b }

// keptOf returns what an entry has.
func keptOf(x cell) outcome {
	switch {
	case x == nil:
		return outcome{err: Skip}
	case faultOf(x) != nil:
		return outcome{err: faultOf(x).err}
	}
	return outcome{val: x.anyValue()}
}

var seed = maphash.MakeSeed()

// fingerprint is a hash of all that a value holds and points to.
func fingerprint(v any) uint64 { return maphash.String(seed, dump.ForHash(v)) }

// printed has a hash of each value when a function returned it.
type printed struct {
	on     bool             // functions make the values
	prints map[int32]uint64 // by row, in a graph that is verified or audited
}

// print keeps a hash of a value that a function has returned.
func (c *collection) print(row int32, x cell) {
	switch {
	case !c.printed.on || !c.c.printing():
	case x == nil || faultOf(x) != nil:
		delete(c.printed.prints, row)
	default:
		if c.printed.prints == nil {
			c.printed.prints = make(map[int32]uint64)
		}
		c.printed.prints[row] = fingerprint(x.anyValue())
	}
}

// changedAfter tells that the value of an entry was changed after a function had returned it.
func (c *collection) changedAfter(e *entry) *finding {
	if print, has := c.printed.prints[e.row]; has && fingerprint(e.cell.anyValue()) != print {
		return &finding{node: c.name, key: keyText(e.cell.anyKey()), changed: true}
	}
	return nil
}

// checkEntry checks an entry that a function makes. run runs the function.
func (c *collection) checkEntry(e *entry, key any, run func(r *Reader) (cell, error)) *finding {
	if f := c.changedAfter(e); f != nil {
		return f
	}
	return compared(c.name, keyText(key), func() (o outcome) {
		var x cell
		o.err = c.rerun(func(r *Reader) (err error) {
			x, err = run(r)
			return err
		})
		if o.err == nil {
			o.val = x.anyValue()
		}
		return o
	}, keptOf(e.cell), c.equal)
}

// difference returns the path at which two values differ first.
func difference(a, b reflect.Value, path string, depth int) string {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() || depth > 20 {
		return path
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !a.IsNil() && !b.IsNil() && !(a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer()) {
			return difference(a.Elem(), b.Elem(), path, depth+1)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if x, y := a.Field(i), b.Field(i); !alike(x, y) {
				return difference(x, y, path+"."+a.Type().Field(i).Name, depth+1)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range min(a.Len(), b.Len()) {
			if x, y := a.Index(i), b.Index(i); !alike(x, y) {
				return difference(x, y, fmt.Sprintf("%s[%d]", path, i), depth+1)
			}
		}
	case reflect.Map:
		for _, k := range a.MapKeys() {
			if x, y := a.MapIndex(k), b.MapIndex(k); !y.IsValid() || !alike(x, y) {
				return difference(x, y, fmt.Sprintf("%s[%v]", path, k), depth+1)
			}
		}
	}
	return path
}

// alike compares two values, those of unexported fields too.
func alike(a, b reflect.Value) bool {
	return a.Type() == b.Type() && dump.ForHash(readable(a)) == dump.ForHash(readable(b))
}

func readable(v reflect.Value) any {
	if v.CanInterface() {
		return v.Interface()
	}
	return fmt.Sprintf("%+v", v)
}
