package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/object"
)

// Store is what the watch shows, with the own writes laid over it that the watch does not show yet.
// The lock of its stream guards it.
type Store struct {
	Objects   map[object.Key]object.Object
	View      *coherence.View
	namesakes *namesakes
	room      *Room
	places    places
}

// New returns an empty store. hold bounds how long a write that versions cannot confirm is shown.
// whole: the store has all objects of its resource.
func New(room *Room, hold time.Duration, whole bool) Store {
	return Store{
		Objects: make(map[object.Key]object.Object), namesakes: &namesakes{}, room: room,
		View: coherence.NewView(coherence.Options{
			Same: object.SameUnversioned, Hold: hold, Whole: whole,
		}),
	}
}

// Stored returns what the watch shows for key, nil if nothing.
func (s *Store) Stored(key object.Key) coherence.Object {
	if o, ok := s.Objects[key]; ok {
		return o
	}
	return nil
}

// Size is how many objects of the server the watch shows.
func (s *Store) Size() int { return len(s.Objects) + s.namesakes.more }

// one returns what the watch shows of the object of a UID, or else of its key; nil if nothing.
func (s *Store) one(key object.Key, uid types.UID) object.Object {
	if all := s.namesakes.of[key]; all != nil {
		return all[uid]
	}
	return s.Objects[key]
}

// distinct calls yield with every object that the watch has shown, and a name that no other has.
func (s *Store) distinct(yield func(object.Key, object.Object) bool) {
	for key, o := range s.Objects {
		all := s.namesakes.of[key]
		if all == nil && !yield(Name(key, o.GetUID()), o) {
			return
		}
		for uid, one := range all {
			if !yield(Name(key, uid), one) {
				return
			}
		}
	}
}

// Read returns the object of that key, own writes included; nil if there is none.
func (s *Store) Read(key object.Key) object.Object {
	o := s.View.Read(key, s.Stored(key))
	if o == nil {
		return nil
	}
	return o.(object.Object)
}

// Everything returns all objects, own writes included.
func (s *Store) Everything() []audience.Change {
	changes := make([]audience.Change, 0, len(s.Objects))
	pending := s.View.Pending() > 0
	for key, o := range s.Objects {
		if pending {
			o = s.Read(key)
		}
		if o != nil {
			changes = append(changes, audience.Change{Key: key, Object: o})
		}
	}
	for key := range s.View.Keys {
		if _, stored := s.Objects[key]; !stored {
			if o := s.Read(key); o != nil {
				changes = append(changes, audience.Change{Key: key, Object: o})
			}
		}
	}
	return changes
}

// Overlaid returns what is shown for each key that has an own write.
func (s *Store) Overlaid() map[object.Key]object.Object {
	shown := make(map[object.Key]object.Object)
	for key := range s.View.Keys {
		shown[key] = s.Read(key)
	}
	return shown
}

// ApplyOverlay takes into the store what own writes have left of each object, and forgets the
// writes. Such objects take places in any case: they are shown.
func (s *Store) ApplyOverlay() {
	for key, o := range s.Overlaid() {
		s.namesakes.drop(key, s.Objects[key], nil) // a list is next, which brings them
		if o != nil {
			s.Objects[key] = o
		} else {
			delete(s.Objects, key)
		}
	}
	s.View.GiveUp()
	s.recount()
}

// Stale reports whether an event is old news: the position is past it, or the store holds a newer
// Version of this very object.
func (s *Store) Stale(key object.Key, o object.Object) bool {
	rv := o.GetResourceVersion()
	if !coherence.Comparable(rv) {
		return false
	}
	if at := s.View.Position(); coherence.Comparable(at) && !coherence.Newer(rv, at) {
		return true
	}
	stored := s.one(key, o.GetUID())
	return stored != nil && stored.GetUID() == o.GetUID() && coherence.Newer(stored.GetResourceVersion(), rv)
}

// LastState reports whether a DELETED event has the stored version in place of the deletion's.
func (s *Store) LastState(key object.Key, deleted object.Object) bool {
	stored := s.one(key, deleted.GetUID())
	return stored != nil && coherence.LastState(stored, deleted)
}

// KeepIfSameVersion returns the object to store for o, given what has been shown: where that is the
// same version, the very same object stays, and nothing has changed.
func (s *Store) KeepIfSameVersion(shown, o object.Object) object.Object {
	if shown == nil || shown.GetUID() != o.GetUID() || shown.GetResourceVersion() != o.GetResourceVersion() {
		return o
	}
	if !coherence.Comparable(o.GetResourceVersion()) && !object.SameUnversioned(shown, o) {
		return o
	}
	return shown
}

// Version returns the object of o's key that is held, nil if there is none, and whether it is
// of o's very version.
func (s *Store) Version(key object.Key, o object.Object) (held object.Object, same bool) {
	rv := o.GetResourceVersion()
	comparable := coherence.Comparable(rv)
	shown, stored := s.Read(key), s.Objects[key]
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

// Shows reports whether what is shown for key is what w wrote.
func (s *Store) Shows(key object.Key, w *coherence.Write) bool {
	shown := s.Read(key)
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

// DropWrites forgets the own writes, and returns what was shown for them.
func (s *Store) DropWrites() (all []coherence.Ended) {
	for key := range s.View.Keys {
		if o := s.Read(key); o != nil {
			all = append(all, coherence.Ended{Key: key, Object: o})
		}
	}
	s.View.GiveUp()
	return all
}

// List takes in that the objects are those of a list at a version. It returns the own writes that
// end with it.
func (s *Store) List(rv string) []coherence.Ended {
	return s.View.List(rv, func(key object.Key) types.UID { return object.UIDOf(s.Objects[key]) })
}

// HasVersions reports whether the store is what a server had at a version: every object of the
// server is stored, no older, and every other stored object is newer. versions has the version of
// each object of the server, by its [Name].
func (s *Store) HasVersions(atRV string, versions map[object.Key]string) bool {
	found := 0
	for name, have := range s.distinct {
		switch want, ok := versions[name]; {
		case ok && !coherence.Newer(want, have.GetResourceVersion()):
			found++
		case ok, !coherence.Newer(have.GetResourceVersion(), atRV):
			return false
		}
	}
	return found == len(versions)
}

// Comparison is how an item of a list compares with an object of the same version.
type Comparison struct {
	With object.Object
	Same bool
}

// listed returns the object to store for an item of a list, given what has been shown: the very
// same object where that has the version and the content. Most items have been compared before,
// without a lock. An item is compared here if an own write was answered after that.
func (s *Store) listed(shown, o object.Object, c Comparison) object.Object {
	echo := s.KeepIfSameVersion(shown, o)
	if echo == o || !coherence.Comparable(o.GetResourceVersion()) {
		return echo
	}
	if c.With != shown {
		c.Same = object.Alike(o, shown)
	}
	if c.Same {
		return shown
	}
	return o
}
