//go:build !kates_safe

package intern

import (
	"encoding/json"
	"reflect"
	"sync"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan lists where the values of a type have parts that can be shared, as offsets; nested structs
// are included. Pointers and slices lead to plans of their own. A recursive type leads back to its
// own plan.
type plan struct {
	texts    []uintptr // strings
	maps     []uintptr // map[string]string
	amounts  []uintptr // ResourceList
	pointers []branch
	slices   []branch
	// none is a zero value of the type, the counterpart if there is no other. It is never written.
	none   unsafe.Pointer
	making bool // the plan is unfinished: nobody knows yet whether it is empty
}

// branch is the offset of a pointer or slice, and the plan and size of its target or elements.
type branch struct {
	at   uintptr
	to   *plan
	size uintptr
}

// empty reports whether the type has nothing to share.
func (p *plan) empty() bool {
	return !p.making && p.texts == nil && p.maps == nil && p.amounts == nil && p.pointers == nil && p.slices == nil
}

var plans sync.Map // reflect.Type to *plan

// planOf returns the plan of a type.
func planOf(typ reflect.Type) *plan {
	if known, ok := plans.Load(typ); ok {
		return known.(*plan)
	}
	known, _ := plans.LoadOrStore(typ, planner{}.plan(typ))
	return known.(*plan)
}

// planner has the plans, finished or not, that the plan of one type needs.
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

// add adds to a plan the parts of a value of a type, which is at an offset.
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
			unique := typ == reflect.TypeFor[metav1.ObjectMeta]() && own[f.Name]
			if f.IsExported() && f.Type != reflect.TypeFor[metav1.TypeMeta]() && !unique {
				all.add(p, f.Type, at+f.Offset)
			}
		}
	}
}

// branch adds a branch to values of a type, unless they have nothing to share.
func (all planner) branch(to []branch, typ reflect.Type, at uintptr) []branch {
	p := all.plan(typ)
	if p.empty() {
		return to
	}
	return append(to, branch{at, p, typ.Size()})
}

// own lists the fields of metadata that are unique to an object.
var own = map[string]bool{"Name": true, "UID": true, "ResourceVersion": true, "ManagedFields": true}

// opaque is a type that decodes itself. Its values may already share memory with others.
var opaque = reflect.TypeFor[json.Unmarshaler]()
