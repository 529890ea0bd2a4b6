package mutation

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/kates-go/kates/internal/engine/collect"
)

// container is a slice or a map that a field of a snapshot has, with a shallow copy.
type container struct {
	query       string
	value, copy reflect.Value

	// The lock of the detector guards the rest.
	unchanged string
	changed   bool // there is a finding
}

// fill looks at the containers that the same snapshots had before, or the same key, and notes
// those that are handed out now.
func (w *Watch) fill(d collect.Delivery, now string) {
	w.mu.Lock()
	former := w.shared[d.Key]
	delete(w.shared, d.Key)
	w.mu.Unlock()
	for _, c := range former {
		w.of.lookInto(c, now)
	}
	if d.Moment == collect.TurnEnds || d.Moment == collect.Answered {
		return
	}
	all := make([]*container, len(d.Filled))
	for i, f := range d.Filled {
		j := slices.IndexFunc(former, func(c *container) bool { return c.query == f.Query && sameContainer(c.value, f.Value) })
		if j >= 0 {
			all[i] = former[j]
		} else {
			all[i] = &container{query: f.Query, value: f.Value, copy: copyOf(f.Value), unchanged: now}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shared[d.Key] = all
}

// end looks at everything for the last time.
func (w *Watch) end(now string) {
	w.mu.Lock()
	var all []*container
	for _, of := range w.shared {
		all = append(all, of...)
	}
	w.mu.Unlock()
	for _, c := range all {
		w.of.lookInto(c, now)
	}
}

// sameContainer reports whether two values are the very same slice or map.
func sameContainer(a, b reflect.Value) bool {
	return a.Type() == b.Type() && a.UnsafePointer() == b.UnsafePointer() && a.Len() == b.Len()
}

// copyOf returns a shallow copy of a slice or a map.
func copyOf(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Slice {
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		return c
	}
	c := reflect.MakeMapWithSize(v.Type(), v.Len())
	for of := v.MapRange(); of.Next(); {
		c.SetMapIndex(of.Key(), of.Value())
	}
	return c
}

// lookInto compares a container with its copy.
func (d *Detector) lookInto(c *container, now string) {
	d.mu.Lock()
	known := c.changed
	d.mu.Unlock()
	if known {
		return
	}
	kind, what := "slice", changedElements
	if c.value.Kind() == reflect.Map {
		kind, what = "map", changedKeys
	}
	elements := what(c.copy, c.value)
	if len(elements) > 5 {
		elements = append(elements[:5], "…")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(elements) == 0 {
		c.unchanged = now
		return
	}
	c.changed = true
	d.found(finding{fmt.Sprintf("%s, that of query %q", kind, c.query), strings.Join(elements, ", "), when(now, c.unchanged), nil})
}

// changedElements returns which elements of a slice are others than before. The memory of both is
// compared: that is exact for pointers and maps. Other elements have changed if their JSON has.
func changedElements(before, now reflect.Value) (all []string) {
	size := int(now.Type().Elem().Size())
	was, is := memory(before, size), memory(now, size)
	if bytes.Equal(was, is) {
		return nil
	}
	for i := range now.Len() {
		if at := i * size; bytes.Equal(was[at:at+size], is[at:at+size]) {
			continue
		}
		if fields, other := otherThan(before.Index(i), now.Index(i)); other {
			all = append(all, element(i, fields))
		}
	}
	return all
}

// memory returns the memory of a slice, to which nobody may write. (Unsafe: the JSON of all
// elements would be the other way to compare structs.)
func memory(v reflect.Value, size int) []byte {
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*size)
}

// changedKeys returns the keys of a map whose elements are others than before.
func changedKeys(before, now reflect.Value) (all []string) {
	for of := before.MapRange(); of.Next(); {
		is, other := now.MapIndex(of.Key()), true
		fields := ""
		if is.IsValid() {
			fields, other = otherThan(of.Value(), is)
		}
		if other {
			all = append(all, element(of.Key(), fields))
		}
	}
	for of := now.MapRange(); of.Next(); {
		if !before.MapIndex(of.Key()).IsValid() {
			all = append(all, element(of.Key(), ""))
		}
	}
	slices.Sort(all)
	return all
}

// element describes an element that has changed. Without fields it is another one.
func element(key any, fields string) string {
	if fields == "" {
		return fmt.Sprintf("[%v]", key)
	}
	return fmt.Sprintf("[%v] (%s)", key, fields)
}

// otherThan reports whether an element is another one, and which of its own fields are others.
func otherThan(before, now reflect.Value) (fields string, other bool) {
	for before.Kind() == reflect.Interface && now.Kind() == reflect.Interface {
		before, now = before.Elem(), now.Elem()
	}
	if !before.IsValid() || !now.IsValid() || before.Type() != now.Type() {
		return "", before.IsValid() || now.IsValid()
	}
	switch before.Kind() {
	case reflect.Pointer, reflect.Map:
		return "", before.UnsafePointer() != now.UnsafePointer()
	case reflect.Slice:
		return "", before.UnsafePointer() != now.UnsafePointer() || before.Len() != now.Len()
	}
	was, err := encode(before.Interface())
	if err != nil {
		return "", false
	}
	fields = compare(was, now.Interface())
	return fields, fields != ""
}
