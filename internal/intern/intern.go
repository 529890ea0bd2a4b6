// Package intern makes what objects have in common one: strings (namespaces, labels, image and node names), and whole maps of
// labels or of resource quantities.
//
// It is for objects that nobody writes to, since they share memory afterwards.
package intern

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"reflect"
	"sync"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Table remembers strings in a fixed number of places, of which each has the last string that belongs there: what repeats
// soon is found, what does not is forgotten, and the table never grows. Its zero value is ready. It is safe for concurrent use.
type Table struct {
	mu    sync.Mutex
	seed  maphash.Seed
	slots []string
	maps  []map[string]string
	lists []corev1.ResourceList
	share bool // of the object at work
}

const (
	// slots is how many strings are remembered: 64 KiB of headers; and how many maps of each kind.
	slots, mapSlots = 4096, 1024
	// longest is the length up to which a string may be worth it.
	longest = 256
)

// Object replaces what others have too in an object that nobody else has yet: strings that are fields of structs, elements of
// slices, or in maps of strings, and such maps as a whole, however deep. A name, a UID or a version is nobody else's, and stays. p
// points to an object of that type. With share, nobody writes to it any more; without, maps stay its own.
func (t *Table) Object(p unsafe.Pointer, typ reflect.Type, share bool) {
	plan := planOf(typ)
	if plan == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots == nil {
		t.slots, t.seed = make([]string, slots), maphash.MakeSeed()
		t.maps, t.lists = make([]map[string]string, mapSlots), make([]corev1.ResourceList, mapSlots)
	}
	t.share = share
	plan.run(t, p)
}

// string returns the string that is remembered in place of an equal one.
func (t *Table) string(s string) string {
	if len(s) == 0 || len(s) > longest {
		return s
	}
	slot := &t.slots[maphash.String(t.seed, s)%slots]
	if *slot != s {
		*slot = s
	}
	return *slot
}

// step does its part of a plan to the value at p.
type step interface {
	run(t *Table, p unsafe.Pointer)
}

type (
	text    struct{}
	texts   struct{} // map[string]string
	amounts struct{} // ResourceList
	pointer struct{ to step }
	list    struct {
		size uintptr
		of   step
	}
	part struct {
		offset uintptr
		step   step
	}
	fields []part
	// later is the plan of a type that has itself in it.
	later struct{ typ reflect.Type }
)

func (text) run(t *Table, p unsafe.Pointer) { s := (*string)(p); *s = t.string(*s) }

func (texts) run(t *Table, p unsafe.Pointer) {
	m := (*map[string]string)(p)
	switch {
	case len(*m) == 0:
		return
	case !t.share:
		t.each(*m)
		return
	}
	var sum uint64 // in whatever order
	for k, v := range *m {
		sum += maphash.String(t.seed, k)*3 ^ maphash.String(t.seed, v)
	}
	slot := &t.maps[sum%mapSlots]
	if maps.Equal(*slot, *m) {
		*m = *slot
		return
	}
	t.each(*m)
	*slot = *m
}

func (t *Table) each(m map[string]string) {
	for k, v := range m {
		m[t.string(k)] = t.string(v) // an equal key is replaced
	}
}

func (amounts) run(t *Table, p unsafe.Pointer) {
	m := (*corev1.ResourceList)(p)
	if len(*m) == 0 || !t.share {
		return
	}
	var sum uint64
	for k, v := range *m {
		sum += maphash.String(t.seed, string(k)) * uint64(v.MilliValue()+1)
	}
	slot := &t.lists[sum%mapSlots]
	if maps.Equal(*slot, *m) {
		*m = *slot
		return
	}
	*slot = *m
}

func (s pointer) run(t *Table, p unsafe.Pointer) {
	if to := *(*unsafe.Pointer)(p); to != nil {
		s.to.run(t, to)
	}
}

func (s list) run(t *Table, p unsafe.Pointer) {
	l := *(*[]byte)(p) // the header: the length counts elements
	for i := range len(l) {
		s.of.run(t, unsafe.Add(unsafe.Pointer(unsafe.SliceData(l)), uintptr(i)*s.size))
	}
}

func (f fields) run(t *Table, p unsafe.Pointer) {
	for _, part := range f {
		part.step.run(t, unsafe.Add(p, part.offset))
	}
}

func (l later) run(t *Table, p unsafe.Pointer) {
	if plan := planOf(l.typ); plan != nil {
		plan.run(t, p)
	}
}

var plans sync.Map // reflect.Type to step

// planOf is the plan of a type, nil if it has nothing to replace.
func planOf(typ reflect.Type) step {
	if known, ok := plans.Load(typ); ok {
		plan, _ := known.(step)
		return plan
	}
	plan := compile(typ, map[reflect.Type]bool{})
	plans.Store(typ, plan)
	return plan
}

// own are the fields of metadata that no other object has.
var own = map[string]bool{"Name": true, "UID": true, "ResourceVersion": true, "ManagedFields": true}

// opaque is a type that decodes itself: what it makes may be shared with others.
var opaque = reflect.TypeFor[json.Unmarshaler]()

func compile(typ reflect.Type, within map[reflect.Type]bool) step {
	if typ.Implements(opaque) || reflect.PointerTo(typ).Implements(opaque) {
		return nil
	}
	switch typ.Kind() {
	case reflect.String:
		return text{}
	case reflect.Map:
		if typ == reflect.TypeFor[map[string]string]() {
			return texts{}
		}
		if typ == reflect.TypeFor[corev1.ResourceList]() {
			return amounts{}
		}
	case reflect.Pointer:
		if to := compile(typ.Elem(), within); to != nil {
			return pointer{to}
		}
	case reflect.Slice:
		if of := compile(typ.Elem(), within); of != nil {
			return list{typ.Elem().Size(), of}
		}
	case reflect.Struct:
		if within[typ] {
			return later{typ}
		}
		within[typ] = true
		defer delete(within, typ)
		var f fields
		for i := range typ.NumField() {
			sf := typ.Field(i)
			if !sf.IsExported() || typ == reflect.TypeFor[metav1.ObjectMeta]() && own[sf.Name] || sf.Type == reflect.TypeFor[metav1.TypeMeta]() {
				continue
			}
			if s := compile(sf.Type, within); s != nil {
				f = append(f, part{sf.Offset, s})
			}
		}
		if f != nil {
			return f
		}
	}
	return nil
}
