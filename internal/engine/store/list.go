package store

import (
	"iter"

	"github.com/kates-go/kates/internal/object"
)

// List is the next content of a store in the making.
type List struct {
	Objects   map[object.Key]object.Object
	namesakes *namesakes
	// Compared has the items that differ from the held object of the same version, and how. An item
	// that was equal is not here: the list has the held object itself.
	Compared map[object.Key]Comparison
}

// NewList returns a list with these objects.
func NewList(objects map[object.Key]object.Object) List {
	return List{Objects: objects, namesakes: &namesakes{}, Compared: make(map[object.Key]Comparison)}
}

// Add takes in an object, in the place of one with its key.
func (l *List) Add(key object.Key, o object.Object) {
	l.Objects[key] = l.namesakes.add(key, l.Objects[key], o)
}

// Remove takes in the deletion of an object; nil stands for whatever has the key.
func (l *List) Remove(key object.Key, o object.Object) {
	delete(l.Compared, key)
	if left := l.namesakes.drop(key, l.Objects[key], o); left != nil {
		l.Objects[key] = left
	} else {
		delete(l.Objects, key)
	}
}

// Size is how many objects the list has.
func (l *List) Size() int { return len(l.Objects) + l.namesakes.more }

// Replace puts a list in the place of what the store has. It calls settle, which ends own writes,
// when the list is in place, and before items are compared with what was shown. newHistory: the
// versions of the list and of the store do not compare. The result is what was shown of each key
// before, for the keys of both and of own writes. It is read under the lock of the stream.
func (s *Store) Replace(l List, newHistory bool, settle func()) iter.Seq2[object.Key, object.Object] {
	old, overlaid := s.Objects, s.Overlaid()
	shown := func(key object.Key) object.Object {
		if o, ok := overlaid[key]; ok {
			return o
		}
		return old[key]
	}
	s.Objects, s.namesakes = l.Objects, l.namesakes
	settle()
	if !newHistory {
		for key, o := range l.Objects {
			l.Objects[key] = s.listed(shown(key), o, l.Compared[key])
		}
	}
	s.recount()
	return func(yield func(object.Key, object.Object) bool) {
		for key := range l.Objects {
			if !yield(key, shown(key)) {
				return
			}
		}
		for key := range old {
			if l.Objects[key] == nil && !yield(key, shown(key)) {
				return
			}
		}
		for key := range overlaid {
			if l.Objects[key] == nil && old[key] == nil && !yield(key, shown(key)) {
				return
			}
		}
	}
}
