package coherence_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/rounds"
)

// thing is an object of the model. Each version of it is a value of its own.
type thing struct {
	key       coherence.Key
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
	now     map[coherence.Key]*thing
}

type change struct {
	rev      int
	key      coherence.Key
	old, new *thing // nil: not there
}

func newServer() *server { return &server{rev: 10, now: map[coherence.Key]*thing{}} }

func (s *server) set(key coherence.Key, t *thing) *thing {
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
func (s *server) at(key coherence.Key, rev int) *thing {
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

// write does something at random to an object, as a server would answer it: the
// object (nil for a Status), the revision that makes the write true, and what a client reads from it.
func (s *server) write(t *rapid.T, key coherence.Key) (w coherence.Write, rev int, ok bool) {
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
	switch rapid.SampledFrom([]string{"update", "move", "nothing", "delete", "delete", "release"}).Draw(t, "verb") {
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
	case "release": // the last finalizer: an update, or, of a deleted object, the end of it
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

// watcher is a stream over the server, with a view.
type watcher struct {
	*coherence.View
	selective bool
	next      int // index into the history
	store     map[coherence.Key]*thing
	written   map[coherence.Key]int // the revision of the newest own write, by key
}

func newWatcher(selective bool) *watcher {
	return &watcher{
		View:      coherence.NewView(coherence.Options{Whole: !selective}),
		selective: selective, next: -1,
		store: map[coherence.Key]*thing{}, written: map[coherence.Key]int{},
	}
}

func (w *watcher) shows(t *thing) bool { return t != nil && (!w.selective || t.in) }

// deliver brings the next event of the watch, as a server makes it for the selector.
func (w *watcher) deliver(s *server) {
	c := s.history[w.next]
	w.next++
	old, now := w.shows(c.old), w.shows(c.new)
	switch {
	case now:
		w.store[c.key] = c.new
		w.Observe(coherence.Event{Key: c.key, UID: c.new.uid, Object: c.new, Version: version(c.rev)})
	case old:
		delete(w.store, c.key)
		w.Observe(coherence.Event{Key: c.key, UID: c.old.uid, Version: version(c.rev)})
	}
}

// list replaces the store by the server's state at a revision.
func (w *watcher) list(s *server, rev int) {
	w.store = map[coherence.Key]*thing{}
	w.next = 0
	for _, c := range s.history {
		if c.rev > rev {
			break
		}
		w.next++
		if w.shows(c.new) {
			w.store[c.key] = c.new
		} else {
			delete(w.store, c.key)
		}
	}
	w.List(version(rev), func(key coherence.Key) types.UID {
		if t := w.store[key]; t != nil {
			return t.uid
		}
		return ""
	})
}

func (w *watcher) stored(key coherence.Key) coherence.Object {
	if t := w.store[key]; t != nil {
		return t
	}
	return nil
}

func (w *watcher) read(key coherence.Key) *thing {
	o := w.Read(key, w.stored(key))
	if o == nil {
		return nil
	}
	return o.(*thing)
}

func (w *watcher) position() int {
	n, _ := strconv.Atoi(w.Position())
	return n
}

// answer is a write that the server has done and the client does not know of yet.
type answer struct {
	write coherence.Write
	rev   int
}

// model is a server, a client with its journal, and some watchers.
type model struct {
	*server
	journal  coherence.Journal
	watchers []*watcher
	inFlight []answer
	floor    int
	keys     []coherence.Key
}

// check compares what every watcher reads with the truth: the object at the newer of
// what has been delivered and what this client wrote.
func (m *model) check(t *rapid.T) {
	for i, w := range m.watchers {
		if w.next < 0 {
			continue
		}
		for _, key := range m.keys {
			want := m.at(key, max(w.position(), w.written[key]))
			if !w.shows(want) {
				want = nil
			}
			if got := w.read(key); got != want {
				t.Fatalf("G4, G5: watcher %d (selective %v, at %s) shows %v for %s, the truth is %v",
					i, w.selective, w.Position(), got, key.Name, want)
			}
		}
	}
}

// record gives a write to a watcher, which may have to ask the server.
func (m *model) record(w *watcher, write coherence.Write) {
	if o, ok := write.Object.(*thing); ok && !w.shows(o) {
		write.Object = nil
	}
	if w.Record(write, w.stored(write.Key), time.Time{}) {
		return
	}
	asked := coherence.Write{Key: write.Key, Version: version(m.rev)}
	if now := m.now[write.Key]; w.shows(now) {
		asked.Object, asked.UID = now, now.uid
	}
	m.journal.Commit("things", asked)
	m.floor = m.rev
	w.Record(asked, w.stored(write.Key), time.Time{})
	w.written[write.Key] = m.rev // this stream knows as much now
}

func (m *model) commit(i int) {
	a := m.inFlight[i]
	m.inFlight = append(m.inFlight[:i], m.inFlight[i+1:]...)
	m.journal.Commit("things", a.write)
	for _, w := range m.watchers {
		w.written[a.write.Key] = max(w.written[a.write.Key], a.rev)
		m.record(w, a.write)
	}
	if n, _ := strconv.Atoi(a.write.Version); n > m.floor {
		m.floor = n
	}
}

// settle delivers everything, and looks for what is left.
func (m *model) settle(t *rapid.T) {
	for len(m.inFlight) > 0 {
		m.commit(0)
	}
	for i, w := range m.watchers {
		if w.next < 0 {
			w.list(m.server, m.rev)
		}
		for w.next < len(m.history) {
			w.deliver(m.server)
		}
		w.Advance(version(m.rev)) // a bookmark
		if n := w.Pending(); n != 0 {
			t.Fatalf("G6: watcher %d holds %d pending writes when all is quiet", i, n)
		}
	}
	m.check(t)
	for i, w := range m.watchers {
		for _, key := range m.keys {
			want := m.now[key]
			if !w.shows(want) {
				want = nil
			}
			if got := w.read(key); got != want {
				t.Fatalf("G6: watcher %d shows %v for %s, the server has %v", i, got, key.Name, want)
			}
		}
	}
}

// TestG4G5G6OwnWritesAreShownUntilTheWatchShowsThem lets an own and a foreign writer,
// watches with and without a selector, and answers that come late, meet in every order that
// chance makes.
//
// It takes 200,000 steps (20,000 under the race detector), or as many as the flag -steps says
// (package rounds): one with nothing to do does not count. A failure is reproduced with -rapid.seed or -rapid.failfile, as rapid says.
func TestG4G5G6OwnWritesAreShownUntilTheWatchShowsThem(t *testing.T) {
	rounds.Check(t, func(t *rapid.T, step func()) {
		m := &model{server: newServer()}
		for _, name := range []string{"a", "b", "c"} {
			m.keys = append(m.keys, coherence.Key{Name: name})
		}
		for range rapid.IntRange(1, 3).Draw(t, "watchers") {
			m.watchers = append(m.watchers, newWatcher(rapid.Bool().Draw(t, "selective")))
		}
		actions := map[string]func(*rapid.T){"": m.check}
		for name, act := range m.actions() {
			actions[name] = func(t *rapid.T) {
				if act(t) {
					step()
				}
			}
		}
		t.Repeat(actions)
		m.settle(t)
	})
}

// actions are what may happen. Each reports whether there was something to do.
func (m *model) actions() map[string]func(*rapid.T) bool {
	key := rapid.SampledFrom(m.keys)
	some := rapid.IntRange(0, len(m.watchers)-1)
	return map[string]func(*rapid.T) bool{
		"foreign write": func(t *rapid.T) bool {
			_, _, ok := m.write(t, key.Draw(t, "key"))
			return ok
		},
		"own write": func(t *rapid.T) bool {
			write, rev, ok := m.write(t, key.Draw(t, "key"))
			if !ok {
				return false
			}
			m.inFlight = append(m.inFlight, answer{write, rev})
			if rapid.Bool().Draw(t, "answered at once") {
				m.commit(len(m.inFlight) - 1)
			}
			return true
		},
		"answer": func(t *rapid.T) bool {
			if len(m.inFlight) == 0 {
				return false
			}
			m.commit(rapid.IntRange(0, len(m.inFlight)-1).Draw(t, "which"))
			return true
		},
		"event": func(t *rapid.T) (any bool) {
			w := m.watchers[some.Draw(t, "watcher")]
			for range rapid.IntRange(1, 4).Draw(t, "events") {
				if w.next >= 0 && w.next < len(m.history) {
					w.deliver(m.server)
					any = true
				}
			}
			return any
		},
		"bookmark": func(t *rapid.T) bool {
			w := m.watchers[some.Draw(t, "watcher")]
			if w.next != len(m.history) {
				return false
			}
			w.Advance(version(m.rev))
			return true
		},
		"list": func(t *rapid.T) bool {
			w := m.watchers[some.Draw(t, "watcher")]
			w.list(m.server, rapid.IntRange(max(w.position(), m.floor, 10), m.rev).Draw(t, "served at"))
			return true
		},
	}
}
