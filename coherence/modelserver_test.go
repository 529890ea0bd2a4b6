package coherence_test

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/coherence"
)

// thing is one version of an object of the model.
type thing struct {
	key       types.NamespacedName
	uid       types.UID
	rev       int
	in        bool // has the label that a selective view asks for
	finalizer bool
	deleted   bool // has a deletionTimestamp
}

func (t *thing) GetUID() types.UID          { return t.uid }
func (t *thing) GetResourceVersion() string { return version(t.rev) }

func version(rev int) string {
	if rev == 0 {
		return ""
	}
	return strconv.Itoa(rev)
}

// server is the truth: every object at every revision.
type server struct {
	rev     int
	uids    int
	history []change // by revision
	now     map[types.NamespacedName]*thing
}

type change struct {
	rev      int
	key      types.NamespacedName
	old, new *thing // nil: not there
}

func newServer() *server { return &server{rev: 10, now: map[types.NamespacedName]*thing{}} }

func (s *server) set(key types.NamespacedName, t *thing) *thing {
	s.rev++
	if t != nil {
		c := *t
		c.rev = s.rev
		t = &c
	}
	s.history = append(s.history, change{s.rev, key, s.now[key], t})
	if t == nil {
		delete(s.now, key)
	} else {
		s.now[key] = t
	}
	return t
}

// at is the object of that name at a revision.
func (s *server) at(key types.NamespacedName, rev int) *thing {
	var t *thing
	for _, c := range s.history {
		if c.rev > rev {
			break
		}
		if c.key == key {
			t = c.new
		}
	}
	return t
}

// write does a random write. It returns what the client reads from the answer (no object for a
// Status), and the revision at which the write is done. ok is false if the server refused it.
func (s *server) write(t *rapid.T, key types.NamespacedName) (w coherence.Write, rev int, ok bool) {
	w.Key = key
	cur := s.now[key]
	if cur == nil {
		s.uids++
		n := s.set(key, &thing{
			key: key, uid: types.UID(fmt.Sprintf("u%d", s.uids)),
			in: rapid.Bool().Draw(t, "in"), finalizer: rapid.Bool().Draw(t, "finalizer"),
		})
		return coherence.Write{Key: key, UID: n.uid, Version: n.GetResourceVersion(), Object: n}, n.rev, true
	}
	w.UID = cur.uid
	verbs := []string{"update", "move", "nothing", "delete", "delete", "release"}
	switch rapid.SampledFrom(verbs).Draw(t, "verb") {
	case "update":
		n := s.set(key, cur)
		w.Version, w.Object = n.GetResourceVersion(), n
		return w, n.rev, true
	case "move":
		c := *cur
		c.in = !c.in
		n := s.set(key, &c)
		w.Version, w.Object = n.GetResourceVersion(), n
		return w, n.rev, true
	case "nothing": // answered with the version it has
		w.Version, w.Object = cur.GetResourceVersion(), cur
		return w, cur.rev, true
	case "delete":
		if cur.finalizer {
			if cur.deleted {
				w.Version, w.Object = cur.GetResourceVersion(), cur
				return w, cur.rev, true
			}
			c := *cur
			c.deleted = true
			n := s.set(key, &c)
			w.Version, w.Object = n.GetResourceVersion(), n
			return w, n.rev, true
		}
		s.set(key, nil)
		if rapid.Bool().Draw(t, "answered with the deletion's version") {
			w.Version = version(s.rev)
		}
		return w, s.rev, true
	case "release": // removes the last finalizer: an update, or the end of a deleted object
		if !cur.finalizer {
			return w, 0, false
		}
		c := *cur
		c.finalizer = false
		if !c.deleted {
			n := s.set(key, &c)
			w.Version, w.Object = n.GetResourceVersion(), n
			return w, n.rev, true
		}
		s.set(key, nil)
		return w, s.rev, true
	}
	return w, 0, false
}
