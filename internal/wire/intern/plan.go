package intern

import (
	"encoding/json"
	"reflect"
	"sync"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan says where the values of a type have what can be shared, as offsets, those in structs within included. What is behind
// pointers and in slices has plans of its own; a type that has itself in it comes back to the same one.
type plan struct {
	texts    []uintptr // strings
	maps     []uintptr // map[string]string
	amounts  []uintptr // ResourceList
	pointers []branch
	slices   []branch
	// none is a zero value of the type, never written to: the counterpart of what has none.
	none   unsafe.Pointer
	making bool // not known to be empty yet
}

// branch is a pointer or a slice: where it is, and the plan of what it points to, or of its elements, which have a size.
type branch struct {
	at   uintptr
	to   *plan
	size uintptr
}

// empty reports whether there is nothing to share.
func (p *plan) empty() bool {
	return !p.making && p.texts == nil && p.maps == nil && p.amounts == nil && p.pointers == nil && p.slices == nil
}

var plans sync.Map // reflect.Type to *plan

// planOf is the plan of a type.
func planOf(typ reflect.Type) *plan {
	if known, ok := plans.Load(typ); ok {
		return known.(*plan)
	}
	known, _ := plans.LoadOrStore(typ, planner{}.plan(typ))
	return known.(*plan)
}

// planner has the plans that are made, or in the making, for one type.
type planner map[reflect.Type]*plan

// plan makes the plan of a type.
func (all planner) plan(typ reflect.Type) *plan {
	if made, ok := all[typ]; ok {
		return made
	}
	p := &plan{none: reflect.New(typ).UnsafePointer(), making: true}
	all[typ] = p
	all.add(p, typ, 0)
	p.making = false
	return p
}

// add adds to a plan what a value of a type has that is at an offset.
func (all planner) add(p *plan, typ reflect.Type, at uintptr) {
	if typ.Implements(opaque) || reflect.PointerTo(typ).Implements(opaque) {
		return
	}
	switch typ.Kind() {
	case reflect.String:
		p.texts = append(p.texts, at)
	case reflect.Map:
		switch typ {
		case reflect.TypeFor[map[string]string]():
			p.maps = append(p.maps, at)
		case reflect.TypeFor[corev1.ResourceList]():
			p.amounts = append(p.amounts, at)
		}
	case reflect.Pointer:
		p.pointers = all.branch(p.pointers, typ.Elem(), at)
	case reflect.Slice:
		p.slices = all.branch(p.slices, typ.Elem(), at)
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.IsExported() && f.Type != reflect.TypeFor[metav1.TypeMeta]() && !(typ == reflect.TypeFor[metav1.ObjectMeta]() && own[f.Name]) {
				all.add(p, f.Type, at+f.Offset)
			}
		}
	}
}

// branch adds one that leads to values of a type, unless they have nothing to share.
func (all planner) branch(to []branch, typ reflect.Type, at uintptr) []branch {
	p := all.plan(typ)
	if p.empty() {
		return to
	}
	return append(to, branch{at, p, typ.Size()})
}

// own are the fields of metadata that no other object has.
var own = map[string]bool{"Name": true, "UID": true, "ResourceVersion": true, "ManagedFields": true}

// opaque is a type that decodes itself: what it makes may be shared with others.
var opaque = reflect.TypeFor[json.Unmarshaler]()
