package stream

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/object"
)

// store is what the watch shows, with the own writes laid over it that the watch does not show
// yet. Its stream's lock guards it.
type store struct {
	objects   map[object.Key]object.Object
	namesakes *namesakes
	view      *coherence.View
}

func newStore(hold time.Duration, whole bool) store {
	return store{
		objects: make(map[object.Key]object.Object), namesakes: &namesakes{},
		view: coherence.NewView(coherence.Options{
			Same: object.SameUnversioned, Hold: hold, Whole: whole,
		}),
	}
}

// stored returns what the watch shows for key, nil if nothing.
func (s *store) stored(key object.Key) coherence.Object {
	if o, ok := s.objects[key]; ok {
		return o
	}
	return nil
}

// size is how many objects of the server the watch shows.
func (s *store) size() int { return len(s.objects) + s.namesakes.more }

// beside returns what the watch shows of a key with an object that it has brought.
func (s *store) beside(key object.Key, o object.Object) object.Object {
	return s.namesakes.add(key, s.objects[key], o)
}

// one returns what the watch shows of the object of a UID, or else of its key; nil if nothing.
func (s *store) one(key object.Key, uid types.UID) object.Object {
	if all := s.namesakes.of[key]; all != nil {
		return all[uid]
	}
	return s.objects[key]
}

// distinct calls yield with every object that the watch has shown, and a name that no other has.
func (s *store) distinct(yield func(object.Key, object.Object) bool) {
	for key, o := range s.objects {
		all := s.namesakes.of[key]
		if all == nil && !yield(distinct(key, o.GetUID()), o) {
			return
		}
		for uid, one := range all {
			if !yield(distinct(key, uid), one) {
				return
			}
		}
	}
}

// read returns the object of that key, own writes included; nil if there is none.
func (s *store) read(key object.Key) object.Object {
	o := s.view.Read(key, s.stored(key))
	if o == nil {
		return nil
	}
	return o.(object.Object)
}

// everything returns all objects, own writes included.
func (s *store) everything() []audience.Change {
	changes := make([]audience.Change, 0, len(s.objects))
	pending := s.view.Pending() > 0
	for key, o := range s.objects {
		if pending {
			o = s.read(key)
		}
		if o != nil {
			changes = append(changes, audience.Change{Key: key, Object: o})
		}
	}
	for key := range s.view.Keys {
		if _, stored := s.objects[key]; !stored {
			if o := s.read(key); o != nil {
				changes = append(changes, audience.Change{Key: key, Object: o})
			}
		}
	}
	return changes
}

// overlaid returns what is shown for each key that has an own write.
func (s *store) overlaid() map[object.Key]object.Object {
	shown := make(map[object.Key]object.Object)
	for key := range s.view.Keys {
		shown[key] = s.read(key)
	}
	return shown
}

// fold takes into the store what own writes have left of each object, and forgets the writes.
func (s *store) fold() {
	for key, o := range s.overlaid() {
		s.namesakes.drop(key, s.objects[key], nil) // a list is next, which brings them
		if o != nil {
			s.objects[key] = o
		} else {
			delete(s.objects, key)
		}
	}
	s.view.GiveUp()
}

// stale reports whether an event is old news: the position is past it, or the store holds a newer
// version of this very object.
func (s *store) stale(key object.Key, o object.Object) bool {
	rv := o.GetResourceVersion()
	if !coherence.Comparable(rv) {
		return false
	}
	if at := s.view.Position(); coherence.Comparable(at) && !coherence.Newer(rv, at) {
		return true
	}
	stored := s.one(key, o.GetUID())
	return stored != nil && stored.GetUID() == o.GetUID() && coherence.Newer(stored.GetResourceVersion(), rv)
}

// lastState reports whether a DELETED event has the stored version in place of the deletion's.
func (s *store) lastState(key object.Key, deleted object.Object) bool {
	stored := s.one(key, deleted.GetUID())
	return stored != nil && coherence.LastState(stored, deleted)
}

// echo returns the object to store for o, given what has been shown: where that is the same
// version, the very same object stays, and nothing has changed.
func (s *store) echo(shown, o object.Object) object.Object {
	if shown == nil || shown.GetUID() != o.GetUID() || shown.GetResourceVersion() != o.GetResourceVersion() {
		return o
	}
	if !coherence.Comparable(o.GetResourceVersion()) && !object.SameUnversioned(shown, o) {
		return o
	}
	return shown
}

// version returns the object of o's key that is held, nil if there is none, and whether it is
// of o's very version.
func (s *store) version(key object.Key, o object.Object) (held object.Object, same bool) {
	rv := o.GetResourceVersion()
	comparable := coherence.Comparable(rv)
	shown, stored := s.read(key), s.objects[key]
	for _, held := range []object.Object{shown, stored} {
		if comparable && held != nil && held.GetUID() == o.GetUID() && held.GetResourceVersion() == rv {
			return held, true
		}
	}
	if shown != nil {
		return shown, false
	}
	return stored, false
}

// shows reports whether what is shown for key is what w wrote.
func (s *store) shows(key object.Key, w *coherence.Write) bool {
	shown := s.read(key)
	switch {
	case w == nil:
		return false
	case w.Object == nil || shown == nil:
		return w.Object == nil && shown == nil
	case !coherence.Comparable(w.Version):
		return object.SameUnversioned(shown, w.Object)
	}
	return shown.GetUID() == w.UID && shown.GetResourceVersion() == w.Version
}

// drop forgets the own writes, and returns what was shown for them.
func (s *store) drop() (all []coherence.Ended) {
	for key := range s.view.Keys {
		if o := s.read(key); o != nil {
			all = append(all, coherence.Ended{Key: key, Object: o})
		}
	}
	s.view.GiveUp()
	return all
}

// list takes in that the objects are those of a list at a version. It returns the own writes that
// end with it.
func (s *store) list(rv string) []coherence.Ended {
	return s.view.List(rv, func(key object.Key) types.UID { return object.UIDOf(s.objects[key]) })
}

// contains reports whether every object of a goal is stored, no older, and every other stored
// object is newer than the goal.
func (s *store) contains(g goal) bool {
	found := 0
	for name, have := range s.distinct {
		switch want, ok := g.versions[name]; {
		case ok && !coherence.Newer(want, have.GetResourceVersion()):
			found++
		case ok, !coherence.Newer(have.GetResourceVersion(), g.rv):
			return false
		}
	}
	return found == len(g.versions)
}
