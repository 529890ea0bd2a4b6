package applied

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// Key names a stored object, whatever version serves it.
type Key struct {
	Storage string
	object.Key
}

// Holder knows which objects the watches show.
type Holder interface {
	Holds(object.Resource, object.Key, types.UID) bool
}

// Marks remembers for which objects it is known what was applied to them, and at which version.
//
// A mark takes some hundred bytes. There is one for each object that the client's streams show;
// marks of other objects are dropped from time to time. The zero value is empty.
type Marks struct {
	mu    lockorder.Mutex[lockorder.Marks]
	marks map[Key]mark
	sweep int // the number of marks at which the next sweep is due
}

// mark is one apply that has succeeded.
type mark struct {
	resource  object.Resource
	manager   string
	sum       string
	uid       types.UID
	appliedRV string
}

// At reports whether the object is at the version at which the manager applied w, so that nothing
// has changed since.
func (m *Marks) At(w *Wanted, manager string, now metav1.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, ok := m.marks[w.Stored()]
	return ok && was.sum == w.Sum && was.manager == manager &&
		was.uid == now.GetUID() && was.appliedRV == now.GetResourceVersion()
}

// Put remembers that w is applied at a version.
func (m *Marks) Put(shown Holder, w *Wanted, manager string, uid types.UID, rv string) {
	if !coherence.Comparable(rv) || uid == "" {
		return
	}
	done := mark{resource: w.Resource, manager: manager, sum: w.Sum, uid: uid, appliedRV: rv}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil {
		m.marks = make(map[Key]mark)
	}
	m.marks[w.Stored()] = done
	if len(m.marks) < max(m.sweep, 1024) {
		return
	}
	maps.DeleteFunc(m.marks, func(key Key, m mark) bool { return !shown.Holds(m.resource, key.Key, m.uid) })
	m.sweep = 2 * len(m.marks)
}

// Count returns the number of marks of one stored resource.
func (m *Marks) Count(storage string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.marks {
		if key.Storage == storage {
			n++
		}
	}
	return n
}

// Forget drops the mark of an object.
func (m *Marks) Forget(key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.marks, key)
}
