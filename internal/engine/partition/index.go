package partition

import (
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// index has all objects of a query by name, in place of one table. It belongs to the reader's
// turn; others read it with the lock of the indexes held.
type index struct {
	objects map[object.Key]*placed
	shared  *tables.Table // of objects that belong to all partitions
	common  bool          // an object of the query belongs to all partitions, or did once
	invalid int
	spans   bool // the keys of a map have the namespace
}

func newIndex() *index { return &index{objects: make(map[object.Key]*placed)} }

// shows reports whether turns show an object.
func (ix *index) shows(o object.Object) bool {
	p := ix.objects[object.KeyOf(o)]
	return p != nil && p.row.Value == tables.Value(o)
}

// apply applies moves to the index. Called with the lock of the indexes held.
func (ix *index) apply(moves []moved) {
	var shared tables.Changes
	for _, s := range moves {
		if s.old != nil && s.old.row.Err != nil {
			ix.invalid--
		}
		if s.now != nil && s.now.row.Err != nil {
			ix.invalid++
		}
		switch {
		case s.now.shared():
			shared.Put(s.key, s.now.row)
			ix.common = true
		case s.old.shared():
			shared.Delete(s.key)
		}
		if s.now == nil {
			delete(ix.objects, s.key)
		} else {
			ix.objects[s.key] = s.now
		}
	}
	ix.shared.Apply(shared.All)
}
