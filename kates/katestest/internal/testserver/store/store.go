// Package store keeps objects with their versions, as etcd does for an API server: each write
// makes one version, of all resources together, and the versions since the last compaction can be
// listed and watched. Begin at [Store].
//
// The objects are content that nobody changes after it was stored: a write stores another map.
package store

import (
	"cmp"
	"errors"
	"slices"
	"sync"
)

// Key is the place of an object.
type Key struct{ Resource, Namespace, Name string }

// Path is the place within the resource.
func (k Key) Path() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Object is the content of a stored object, and the version at which it was stored.
type Object struct {
	Content map[string]any
	RV      int64
}

// Change is one write of one object.
type Change struct {
	RV  int64
	Key Key
	// Old and New are the object before and after, without content if there was or is none.
	Old, New Object
}

// ErrCompacted is a version that is no longer known.
var ErrCompacted = errors.New("the version is too old: it has been compacted")

// ErrFuture is a version that is not there yet.
var ErrFuture = errors.New("the version is larger than the newest one")

// Store holds the objects of all resources. It is safe for concurrent use.
type Store struct {
	mu        sync.Mutex
	rev       int64
	compacted int64 // versions before this one are forgotten
	now       map[string]map[Key]Object
	log       []Change // after compacted, by version
	more      chan struct{}
}

// New returns an empty store. Like etcd's, its first version is 1.
func New() *Store {
	return &Store{rev: 1, now: map[string]map[Key]Object{}, more: make(chan struct{})}
}

// RV is the newest version.
func (s *Store) RV() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rev
}

// Newest returns the newest version, and a channel that is closed when there is another one.
func (s *Store) Newest() (rv int64, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rev, s.more
}

// Get returns an object.
func (s *Store) Get(key Key) (Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.now[key.Resource][key]
	return o, ok
}

// Write changes one object. The function gets the object (without content if there is none) and
// the version that the write will have. It returns the content to store, nil to delete the object,
// and whether to write at all. It runs under the store's lock: it may read the store only through
// what it is given.
func (s *Store) Write(key Key, change func(old Object, rv int64) (content map[string]any, write bool, err error)) (Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.now[key.Resource][key]
	content, write, err := change(old, s.rev+1)
	if err != nil || !write {
		return Change{RV: s.rev, Key: key, Old: old, New: old}, err
	}
	s.rev++
	c := Change{RV: s.rev, Key: key, Old: old, New: Object{Content: content, RV: s.rev}}
	if content == nil {
		delete(s.now[key.Resource], key)
	} else {
		if s.now[key.Resource] == nil {
			s.now[key.Resource] = map[Key]Object{}
		}
		s.now[key.Resource][key] = c.New
	}
	s.log = append(s.log, c)
	s.trim()
	close(s.more)
	s.more = make(chan struct{})
	return c, nil
}

// mostKept is how many versions the store knows at least, beside the newest one. A program that
// runs for long is not to fill the memory with what nobody asks for: etcd is compacted, too.
const mostKept = 10_000

// trim forgets old versions, now and then.
func (s *Store) trim() {
	if len(s.log) < 2*mostKept {
		return
	}
	s.compacted = s.log[len(s.log)-mostKept-1].RV
	s.log = slices.Clone(s.log[len(s.log)-mostKept:])
}

// List returns the objects of a resource in a namespace ("" for all), as they were at a version (0
// for the newest one), in the order of namespace and name. The second result is that version.
func (s *Store) List(resource, namespace string, atRV int64) ([]Change, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case atRV == 0:
		atRV = s.rev
	case atRV > s.rev:
		return nil, s.rev, ErrFuture
	case atRV < s.compacted:
		return nil, s.rev, ErrCompacted
	}
	objects := make(map[Key]Object, len(s.now[resource]))
	for key, o := range s.now[resource] {
		objects[key] = o
	}
	for _, c := range slices.Backward(s.log) {
		switch {
		case c.RV <= atRV:
			return inOrder(objects, namespace), atRV, nil
		case c.Key.Resource != resource:
		case c.Old.Content == nil:
			delete(objects, c.Key)
		default:
			objects[c.Key] = c.Old
		}
	}
	return inOrder(objects, namespace), atRV, nil
}

func inOrder(objects map[Key]Object, namespace string) []Change {
	all := make([]Change, 0, len(objects))
	for key, o := range objects {
		if namespace == "" || key.Namespace == namespace {
			all = append(all, Change{RV: o.RV, Key: key, New: o})
		}
	}
	slices.SortFunc(all, func(a, b Change) int {
		return cmp.Compare(a.Key.Path(), b.Key.Path()) // as etcd orders its keys
	})
	return all
}

// Since returns the changes of a resource ("" for all) in a namespace ("" for all) after a
// version, the newest version that this covers, and a channel that is closed when there are more.
func (s *Store) Since(resource, namespace string, afterRV int64) (changes []Change, untilRV int64, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if afterRV < s.compacted {
		return nil, s.rev, nil, ErrCompacted
	}
	from, _ := slices.BinarySearchFunc(s.log, afterRV+1, func(c Change, rv int64) int { return cmp.Compare(c.RV, rv) })
	for _, c := range s.log[from:] {
		if (resource == "" || c.Key.Resource == resource) && (namespace == "" || c.Key.Namespace == namespace) {
			changes = append(changes, c)
		}
	}
	return changes, max(s.rev, afterRV), s.more, nil
}

// Everything returns all objects of all resources, their newest version, and a channel that is
// closed when there are changes.
func (s *Store) Everything() (all []Change, rv int64, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, objects := range s.now {
		all = append(all, inOrder(objects, "")...)
	}
	return all, s.rev, s.more
}

// Compact forgets what was before the newest version.
func (s *Store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted, s.log = s.rev, nil
}

// Compacted is the oldest version that is known.
func (s *Store) Compacted() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compacted
}
