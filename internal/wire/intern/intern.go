// Package intern makes what objects have in common one: strings (namespaces, labels, image and node names), and whole maps of
// labels or of resource quantities. What an object has in common with its version before is found there, the rest in a table.
//
// It is for objects that nobody writes to, since they share memory afterwards.
package intern

import (
	"hash/maphash"
	"maps"
	"reflect"
	"sync"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
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
	// longest is the length up to which a string may be worth looking up.
	longest = 256
)

// Object replaces what others have too in an object that nobody else has yet: strings that are fields of structs, elements of
// slices, or in maps of strings, and such maps as a whole, however deep. A name, a UID or a version is nobody else's, and stays. p
// points to an object of that type. With share, nobody writes to it any more; without, maps stay its own.
//
// before points to another object of the same type, which most likely has the same in most places: the version before. It is nil if
// there is none. What is equal there is taken from it, and only the rest is looked up: for half the time while that version is in the
// processor's caches. Where it is not, fetching it takes nearly as long as looking up. It is read only, and others may read it meanwhile.
func (t *Table) Object(p, before unsafe.Pointer, typ reflect.Type, share bool) {
	plan := planOf(typ)
	if plan.empty() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots == nil {
		t.slots, t.seed = make([]string, slots), maphash.MakeSeed()
		t.maps, t.lists = make([]map[string]string, mapSlots), make([]corev1.ResourceList, mapSlots)
	}
	if before == nil {
		before = plan.none
	}
	t.share = share
	t.walk(plan, p, before)
}

// walk does what a plan says to the value at p. The one at before is its counterpart.
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

// elements walks through slices, whose headers these are: a length counts elements.
func (t *Table) elements(b *branch, l, before []byte) {
	for i := range len(l) {
		at, was := uintptr(i)*b.size, b.to.none
		if i < len(before) {
			was = unsafe.Add(unsafe.Pointer(unsafe.SliceData(before)), at)
		}
		t.walk(b.to, unsafe.Add(unsafe.Pointer(unsafe.SliceData(l)), at), was)
	}
}

// texts shares a map of strings, and else what is in it.
func (t *Table) texts(m *map[string]string, before map[string]string) {
	switch {
	case len(*m) == 0:
		return
	case maps.Equal(*m, before):
		if t.share {
			*m = before
		} else {
			maps.Copy(*m, before) // which replaces keys, too
		}
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

// amounts shares a map as a whole. Where a quantity remembers its text is in a copy: what is in a map has no address.
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
