package stream

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// listing is the next store in the making.
type listing struct {
	stream *Stream
	// asked is what was known when the list was asked for. If the server is in doubt, the list's
	// versions may not compare with those of what the stream holds.
	asked reflector.Asked
	store.List
	// others hold other shares of the same objects.
	others []*Stream
	// from is the file that the list comes from; nil: it comes from the server.
	from *warm.Base
}

// NewList starts a listing. The one before is dropped.
func (s *Stream) NewList(asked reflector.Asked) reflector.List { return s.newListing(asked) }

func (s *Stream) newListing(asked reflector.Asked) *listing {
	s.listing(0)
	s.ListBegins()
	return &listing{
		stream: s, asked: asked, List: store.NewList(make(map[object.Key]object.Object)), others: s.shared.OtherShares(s),
	}
}

// Put takes in an item of a list in pages, which comes once.
func (l *listing) Put(item runtime.Object) error { return l.put(item, true) }

// Commit puts the list in the place of the stream's store.
func (l *listing) Commit(rv string) error {
	l.stream.Reach(AtListed, object.Key{})
	l.stream.Step.Begin()
	defer l.stream.Step.End()
	return l.stream.commit(l, rv)
}

// Drop gives back the room that the list has taken.
func (l *listing) Drop() {
	l.stream.listing(0)
	l.stream.recount()
}

// recount notes which originals the stream holds.
func (s *Stream) recount() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Recount(s.store.Read)
}

// put takes in an item of the list. once: no other item has its key. Else the item takes the place
// of the one before.
func (l *listing) put(item runtime.Object, once bool) error {
	l.stream.Step.Begin()
	defer l.stream.Step.End()
	o, err := l.stream.Checked(item)
	if err != nil {
		return err
	}
	key := object.KeyOf(o)
	again := l.Objects[key] != nil
	// a streamed list brings the version with which it leaves the query
	leaves := func() error {
		if again && !once {
			l.remove(key, o)
		}
		return nil
	}
	if !l.stream.Matches(o) {
		return leaves()
	}
	if again && once && !object.Ambiguous(key) {
		return fmt.Errorf("the server sends %q twice in one list", key)
	}
	held, same := l.stream.has(o)
	switch {
	case !same || l.asked.Doubted:
		made := l.objectFor(o, held)
		if made == nil {
			return leaves()
		}
		l.stream.tally.taken(made)
		l.Add(key, made)
	default:
		now := l.stream.ReuseIfEqual(o, held)
		if now == nil {
			return leaves()
		}
		l.Add(key, now) // what is held already is not held twice
		if now != held {
			l.Compared[key] = store.Comparison{With: held}
		}
	}
	l.stream.tally.listed.Store(int64(l.Size()))
	return l.stream.admit(l.Size())
}

// Keep takes in an object of a file, in the place of one with its key.
func (l *listing) Keep(o object.Object) error { return l.put(o, false) }

// Remove takes out whatever has a key.
func (l *listing) Remove(key object.Key) { l.remove(key, nil) }

// Get returns what has a key, nil for nothing.
func (l *listing) Get(key object.Key) object.Object { return l.Objects[key] }

// Count returns how many keys and objects the list has.
func (l *listing) Count() (keys, objects int) { return len(l.Objects), l.Size() }

// ComesFrom says which file the list is, but for what has changed since.
func (l *listing) ComesFrom(b *warm.Base) { l.from = b }

// remove takes in the deletion of an object; nil stands for whatever has the key.
func (l *listing) remove(key object.Key, o object.Object) {
	l.List.Remove(key, o)
	l.stream.listing(l.Size())
}

// Apply takes in an event of a streamed list. It returns the version of the bookmark that ends the
// list.
func (l *listing) Apply(e source.Event) (rv string, err error) {
	switch e.Type {
	case watch.Bookmark:
		m, err := meta.Accessor(e.Object)
		if err != nil || m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
			return "", nil
		}
		if e.RV == "" || e.RV == "0" {
			return "", source.Garbled{Cause: fmt.Errorf("the list ends with a bookmark at version %q, which is no version", e.RV)}
		}
		return e.RV, nil
	case watch.Deleted:
		o, err := l.stream.Checked(e.Object)
		if err == nil {
			l.remove(object.KeyOf(o), o)
		}
		return "", err
	}
	return "", l.put(e.Object, false)
}

// listing takes in how many objects the list under way has, 0 if there is none.
func (s *Stream) listing(objects int) {
	s.tally.listed.Store(int64(objects))
	if !s.shared.Room.Shared() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.SetListSize(objects)
}

// admit takes the places for the list under way, which has so many objects.
func (s *Stream) admit(objects int) error {
	switch room := s.shared.Room; {
	case !room.Shared() && room.Exceeds(objects):
		return room.Full()
	case !room.Shared():
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Admit(objects)
}

// compare compares the items of a list that may be of a new history with what the stream holds of
// the same versions: the history may turn out to be the same. Called without locks.
func (l *listing) compare() {
	if !l.asked.Doubted {
		return // put has done it
	}
	for key, o := range l.Objects {
		if held, same := l.stream.has(o); same {
			l.Compared[key] = store.Comparison{With: held, Same: object.Alike(o, held)}
		}
	}
}

// A replica that takes more or less of a resource's objects than before has another stream for
// that, beside the one before. The objects of both are the same pointers: so a change of the share
// takes no memory for what stays, and nobody who has an object gets another one in its place.

// objectFor returns what the stream is to hold of an item, nil if it is left out: the object that
// the stream of another share holds, where that has the version and the content, and else a new
// one. held is what this stream has of another version.
func (l *listing) objectFor(o, held object.Object) object.Object {
	if !l.asked.Doubted {
		for _, st := range l.others {
			if theirs, same := st.has(o); same {
				if shared := l.stream.ReuseIfEqual(o, theirs); shared != nil {
					return l.stream.Bounded(shared)
				}
				return nil
			}
		}
	}
	return l.stream.TransformNew(o, held)
}
