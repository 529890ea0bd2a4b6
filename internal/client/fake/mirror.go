package fake

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// Server gives versions to the objects of a fake. [New] makes one. It is safe for concurrent use.
// No request and no function of a user runs with its lock held.
type Server struct {
	client  dynamic.Interface
	mu      lockorder.Mutex[lockorder.FakeMirrors]
	version int64
	mirrors map[schema.GroupVersionResource]*mirror
}

// New returns the server of a fake.
func New(client dynamic.Interface) *Server {
	return &Server{client: client, version: 1, mirrors: make(map[schema.GroupVersionResource]*mirror)}
}

// mirror is what is known of one resource. The server's lock guards it, and its watchers.
type mirror struct {
	server   *Server
	of       schema.GroupVersionResource
	objects  map[object.Key]history
	watchers map[*watcher]bool
	requests map[*request]bool
	had      map[object.Key]bool // the tracker has had it in this life
	unshown  map[object.Key]bool // now is an own write, and no event has shown it
	gone     int                 // objects that are gone
	oldest   int64               // the deletions up to here are forgotten
	checked  int64               // the newest state that a check of the tracker has found
}

// state is what an object is from a version on.
type state struct {
	version int64
	uid     types.UID
	object  object.Object // nil: gone
	last    object.Object // the content before that
	written time.Time     // by this client, and no event has shown it yet; zero for all others
}

// history has the states of an object that something may still repeat, in the order of versions.
// The last one is now.
type history []state

const (
	// statesMost bounds the states of one object.
	statesMost = 256
	// goneMost bounds the deletions that are remembered. A watch from before those that are
	// forgotten lists again.
	goneMost = 10_000
)

// mirrorOf returns the mirror of a resource. Called with mu held.
func (s *Server) mirrorOf(r schema.GroupVersionResource) *mirror {
	if s.mirrors[r] == nil {
		s.mirrors[r] = &mirror{
			server: s, of: r, objects: make(map[object.Key]history), watchers: make(map[*watcher]bool),
			requests: make(map[*request]bool), oldest: s.version,
			had: make(map[object.Key]bool), unshown: make(map[object.Key]bool),
		}
	}
	return s.mirrors[r]
}

// since returns the states that something may repeat which knows everything up to a version: the
// one at that version, and those after.
func (h history) since(version int64) history {
	for i := len(h) - 1; i > 0; i-- {
		if h[i].version <= version {
			return h[i:]
		}
	}
	return h
}

// now is the present state; the zero state of an object that was never there.
func (h history) now() state {
	if len(h) == 0 {
		return state{}
	}
	return h[len(h)-1]
}

// shows reports whether the object is so in the state: o, or gone.
func (s state) shows(o object.Object) bool {
	if s.object == nil || o == nil {
		return s.object == nil && o == nil
	}
	return object.SameContent(s.object, o)
}

// stamped returns a copy of a content with the stamp of the state.
func (s state) stamped(o object.Object) object.Object {
	return object.Stamp(copied(o), s.uid, text(s.version))
}

func text(version int64) string { return strconv.FormatInt(version, 10) }

// add makes a new state of an object, and tells the watchers. Nil is gone. Called with mu held.
func (m *mirror) add(key object.Key, o object.Object) state {
	was := m.objects[key].now()
	if o != nil && was.object != nil && others(was.object, o) {
		m.add(key, nil)
		was = m.objects[key].now()
	}
	m.server.version++
	now := state{version: m.server.version, uid: was.uid}
	if o != nil {
		now.object = copied(o) // whoever else has it may write to it
	}
	switch {
	case o == nil:
		delete(m.had, key)
		now.last = was.object
		m.gone++
	case was.object == nil:
		now.uid = types.UID(fmt.Sprintf("kates-fake-%d", now.version))
		if was.version > 0 {
			m.gone--
		}
	}
	m.objects[key] = append(m.kept(key), now)
	for w := range m.watchers {
		w.queueState(key, was, now)
	}
	if m.gone > goneMost {
		m.forget()
	}
	return now
}

// others reports whether two contents are those of different objects: a fixture has set other UIDs.
func others(a, b object.Object) bool {
	return a.GetUID() != "" && b.GetUID() != "" && a.GetUID() != b.GetUID()
}

// kept returns the states of an object that may still be repeated. Called with mu held.
func (m *mirror) kept(key object.Key) history {
	oldest := m.server.version
	for r := range m.requests {
		oldest = min(oldest, r.since)
	}
	for w := range m.watchers {
		oldest = min(oldest, w.at(key))
	}
	h := m.objects[key].since(oldest)
	return slices.Clone(h[max(0, len(h)-statesMost):])
}

// forget forgets the objects that are gone. Called with mu held.
func (m *mirror) forget() {
	for key, h := range m.objects {
		if h.now().object == nil {
			delete(m.objects, key)
		}
	}
	m.gone, m.oldest = 0, m.server.version
}

// request is a list or a write under way: its answer may repeat the states since it began.
type request struct {
	*mirror
	since int64
}

// beginRequest begins a request.
func (m *mirror) beginRequest() *request {
	m.drain()
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	r := &request{m, m.server.version}
	m.requests[r] = true
	return r
}

// endRequest ends the request.
func (r *request) endRequest() {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	delete(r.requests, r)
}

// finds returns the newest state since the request began that shows an object so. Called with mu
// held.
func (r *request) finds(key object.Key, o object.Object) (s state, ok bool) {
	h := r.objects[key].since(r.since)
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].shows(o) {
			return h[i], true
		}
	}
	return state{}, false
}

// drain returns when all that the fake has put into the buffers of its watches has been taken in.
func (m *mirror) drain() {
	m.server.mu.Lock()
	all := make([]*watcher, 0, len(m.watchers))
	for w := range m.watchers {
		all = append(all, w)
	}
	m.server.mu.Unlock()
	for _, w := range all {
		w.drain()
	}
}

// errExpired is the answer to a watch from a version whose deletions are forgotten.
var errExpired = apierrors.NewResourceExpired("the version of the watch is too old")
