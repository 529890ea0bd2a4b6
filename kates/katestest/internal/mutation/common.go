package mutation

import "reflect"

// common returns the first finding of an object that shares memory with another one, and has the
// same fields written to. Objects of one kind share parts that are equal: a write to one of them
// is seen in all. Called with the detector's lock held.
func (d *Detector) common(f finding) *finding {
	var parts places
	for i := range d.findings {
		g := &d.findings[i]
		if g.value == nil || g.what == f.what || g.fields != f.fields {
			continue
		}
		if parts == nil {
			parts = placesOf(f.value)
		}
		for at := range placesOf(g.value) {
			if parts[at] {
				return g
			}
		}
	}
	return nil
}

// places are the addresses of the maps, the lists and the targets of pointers in a value: pointers,
// which keep the memory from being used for anything else.
type places map[any]bool

func placesOf(value any) places {
	p := make(places)
	p.add(reflect.ValueOf(value))
	return p
}

// add adds the places in a value. Each is looked into once: somebody may have made a circle.
func (p places) add(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		p.add(v.Elem())
	case reflect.Pointer:
		if p.first(v, 1) {
			p.add(v.Elem())
		}
	case reflect.Map:
		if p.first(v, v.Len()) {
			for of := v.MapRange(); of.Next(); {
				p.add(of.Value())
			}
		}
	case reflect.Slice:
		if p.first(v, v.Len()) {
			for i := range v.Len() {
				p.add(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				p.add(v.Field(i))
			}
		}
	}
}

// first adds the place that a value leads to, and reports whether it is new.
func (p places) first(v reflect.Value, elements int) bool {
	if v.IsNil() || elements == 0 || p[v.UnsafePointer()] {
		return false
	}
	p[v.UnsafePointer()] = true
	return true
}
