//go:build !kates_safe

package intern

import (
	"hash/maphash"
	"maps"
	"reflect"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Table remembers strings in a fixed number of slots. Each slot has the last string that hashed to
// it: a string that soon repeats is found, another one is forgotten, and the table never grows.
// The zero value is ready for use. A Table is safe for concurrent use.
type Table struct {
	mu    lockorder.Mutex[lockorder.Strings]
	seed  maphash.Seed
	slots []string
	maps  []map[string]string
	lists []corev1.ResourceList
	share bool // maps of the current object are shared
}

const (
	// slots is the number of strings (64 KiB of headers), mapSlots that of maps of each kind.
	slots, mapSlots = 4096, 1024
	// longest is the length of the longest string that is looked up.
	longest = 256
)

// Object replaces the parts of an object by equal ones of other objects, at any depth: strings in
// struct fields, slices and maps of strings, and such maps as a whole. Names, UIDs and versions
// are unique and stay. p points to an object that is not published yet. share says that nobody
// writes to it any more; without share, its maps stay its own.
//
// before points to the previous version of the object, of the same type, or is nil. An equal part
// is taken from it, and only the other parts are looked up. This takes half the time if that
// version is in the processor's caches, and nearly as long as looking up if not. before is only
// read, and others may read it meanwhile.
func (t *Table) Object(p, before any, share bool) {
	to := reflect.ValueOf(p)
	plan, was := planOf(to.Type().Elem()), unsafe.Pointer(nil)
	if before != nil {
		was = reflect.ValueOf(before).UnsafePointer()
	}
	if plan.empty() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots == nil {
		t.slots, t.seed = make([]string, slots), maphash.MakeSeed()
		t.maps, t.lists = make([]map[string]string, mapSlots), make([]corev1.ResourceList, mapSlots)
	}
	if was == nil {
		was = plan.none
	}
	t.share = share
	t.walk(plan, to.UnsafePointer(), was)
}

// walk applies a plan to the value at p. The value at before is its counterpart.
func (t *Table) walk(plan *plan, p, before unsafe.Pointer) {
	for _, at := range plan.texts {
		s, was := (*string)(unsafe.Add(p, at)), (*string)(unsafe.Add(before, at))
		switch {
		case len(*s) == 0:
		case *s == *was:
			*s = *was
		default:
			*s = t.string(*s)
		}
	}
	for _, at := range plan.maps {
		t.texts((*map[string]string)(unsafe.Add(p, at)), *(*map[string]string)(unsafe.Add(before, at)))
	}
	for _, at := range plan.amounts {
		t.amounts((*corev1.ResourceList)(unsafe.Add(p, at)), *(*corev1.ResourceList)(unsafe.Add(before, at)))
	}
	for i := range plan.pointers {
		b := &plan.pointers[i]
		to := *(*unsafe.Pointer)(unsafe.Add(p, b.at))
		if to == nil {
			continue
		}
		was := *(*unsafe.Pointer)(unsafe.Add(before, b.at))
		if was == nil {
			was = b.to.none
		}
		t.walk(b.to, to, was)
	}
	for i := range plan.slices {
		b := &plan.slices[i]
		if l := (*[]byte)(unsafe.Add(p, b.at)); len(*l) != 0 {
			t.elements(b, *l, *(*[]byte)(unsafe.Add(before, b.at)))
		}
	}
}

// elements walks through two slices. These are their headers, so a length counts elements.
func (t *Table) elements(b *branch, l, before []byte) {
	for i := range len(l) {
		at, was := uintptr(i)*b.size, b.to.none
		if i < len(before) {
			was = unsafe.Add(unsafe.Pointer(unsafe.SliceData(before)), at)
		}
		t.walk(b.to, unsafe.Add(unsafe.Pointer(unsafe.SliceData(l)), at), was)
	}
}

// texts shares a map of strings, or else the strings in it.
func (t *Table) texts(m *map[string]string, before map[string]string) {
	switch {
	case len(*m) == 0:
		return
	case maps.Equal(*m, before):
		if t.share {
			*m = before
		} else {
			maps.Copy(*m, before) // it replaces keys, too
		}
		return
	case !t.share:
		t.each(*m)
		return
	}
	var sum uint64 // the order of the keys does not matter
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

// each shares the strings in a map.
func (t *Table) each(m map[string]string) {
	for k, v := range m {
		m[t.string(k)] = t.string(v) // this replaces the key, too
	}
}

// amounts shares a map as a whole. The text that a quantity caches cannot be shared by itself,
// because a value in a map has no address.
func (t *Table) amounts(m *corev1.ResourceList, before corev1.ResourceList) {
	if len(*m) == 0 || !t.share {
		return
	}
	if maps.Equal(*m, before) {
		*m = before
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

// string returns the remembered string that equals s, or remembers s.
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
