package coherence_test

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/test/suite/rounds"
)

// watcher is one stream: a watch on the server, and a view.
type watcher struct {
	*coherence.View
	selective bool
	next      int // index into the history
	store     map[types.NamespacedName]*thing
	written   map[types.NamespacedName]int // the revision of the newest own write, by key
	deleted   map[types.UID]bool           // by DELETED events that came while a write was under way
	gone      map[types.NamespacedName]int // the revision of a deletion whose event did not tell it
}

func newWatcher(selective bool) *watcher {
	return &watcher{
		View:      coherence.NewView(coherence.Options{Whole: !selective}),
		selective: selective, next: -1,
		store: map[types.NamespacedName]*thing{}, written: map[types.NamespacedName]int{}, deleted: map[types.UID]bool{},
		gone: map[types.NamespacedName]int{},
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
		last := c.new == nil && c.rev%3 == 0 // some deletions have the last version of the object
		rv, lastRV := version(c.rev), ""
		if last && coherence.LastState(w.stored(c.key), c.old) {
			rv, lastRV, w.gone[c.key] = "", c.old.GetResourceVersion(), c.rev
		}
		delete(w.store, c.key)
		w.deleted[c.old.uid] = c.new == nil && rv != ""
		w.Observe(coherence.Event{Key: c.key, UID: c.old.uid, Version: rv, LastRV: lastRV})
	}
}

// list replaces the store by the server's state at a revision.
func (w *watcher) list(s *server, rev int) {
	w.store = map[types.NamespacedName]*thing{}
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
	w.List(version(rev), func(key types.NamespacedName) types.UID {
		if t := w.store[key]; t != nil {
			return t.uid
		}
		return ""
	})
}

func (w *watcher) stored(key types.NamespacedName) coherence.Object {
	if t := w.store[key]; t != nil {
		return t
	}
	return nil
}

func (w *watcher) read(key types.NamespacedName) *thing {
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
	keys     []types.NamespacedName
}

// check compares what every watcher reads with the truth: the object at the position, or at the
// newest own write if that is newer.
func (m *model) check(t *rapid.T) {
	for i, w := range m.watchers {
		if w.next < 0 {
			continue
		}
		for _, key := range m.keys {
			want := m.at(key, max(w.position(), w.written[key], w.gone[key]))
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

// record tells a watcher of a write. The watcher may have to ask the server.
func (m *model) record(t *rapid.T, w *watcher, write coherence.Write) {
	if o, ok := write.Object.(*thing); ok && !w.shows(o) {
		write.Object = nil
	}
	if w.Record(write, w.stored(write.Key), time.Time{}) {
		return
	}
	if !w.selective && w.deleted[write.UID] {
		t.Fatalf("the server is asked for %s, which the watch has shown to be deleted", write.UID)
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

// commit handles the answer to a write.
func (m *model) commit(t *rapid.T, i int) {
	a := m.inFlight[i]
	defer m.end(i)
	m.journal.Commit("things", a.write)
	for _, w := range m.watchers {
		w.written[a.write.Key] = max(w.written[a.write.Key], a.rev)
		m.record(t, w, a.write)
	}
	if n, _ := strconv.Atoi(a.write.Version); n > m.floor {
		m.floor = n
	}
}

// begin tells every watcher that a write is about to be sent.
func (m *model) begin(key types.NamespacedName) {
	for _, w := range m.watchers {
		w.Begin(key)
	}
}

// end ends a write, whether its answer has come or is lost.
func (m *model) end(i int) {
	for _, w := range m.watchers {
		w.End(m.inFlight[i].write.Key)
	}
	m.inFlight = append(m.inFlight[:i], m.inFlight[i+1:]...)
}

// deliverAll delivers everything, and fails if anything is still pending.
func (m *model) deliverAll(t *rapid.T) {
	for len(m.inFlight) > 0 {
		m.commit(t, 0)
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

// TestModelG4G5G6OwnWritesAreShownUntilTheWatchShowsThem runs an own and a foreign writer,
// watches with
// and without a selector, and late answers, in random order.
//
// It takes 5,000 steps (2,000 under the race detector), or as many as the flag -steps says
// (package rounds). An action that had nothing to do is no step. A failure is reproduced with
// -rapid.seed or -rapid.failfile, as rapid prints.
func TestModelG4G5G6OwnWritesAreShownUntilTheWatchShowsThem(t *testing.T) {
	rounds.Check(t, func(t *rapid.T, step func()) {
		m := &model{server: newServer()}
		for _, name := range []string{"a", "b", "c"} {
			m.keys = append(m.keys, types.NamespacedName{Name: name})
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
		m.deliverAll(t)
	})
}

// actions returns what may happen, by name. Each action reports whether it did something.
func (m *model) actions() map[string]func(*rapid.T) bool {
	key := rapid.SampledFrom(m.keys)
	some := rapid.IntRange(0, len(m.watchers)-1)
	return map[string]func(*rapid.T) bool{
		"foreign write": func(t *rapid.T) bool {
			_, _, ok := m.write(t, key.Draw(t, "key"))
			return ok
		},
		"own write": func(t *rapid.T) bool {
			key := key.Draw(t, "key")
			m.begin(key)
			write, rev, ok := m.write(t, key)
			m.inFlight = append(m.inFlight, answer{write, rev})
			last := len(m.inFlight) - 1
			switch {
			case !ok: // refused
				m.end(last)
			case rapid.Bool().Draw(t, "answered at once"):
				m.commit(t, last)
			}
			return ok
		},
		"answer": func(t *rapid.T) bool {
			if len(m.inFlight) == 0 {
				return false
			}
			i := rapid.IntRange(0, len(m.inFlight)-1).Draw(t, "which")
			if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
				m.end(i)
			} else {
				m.commit(t, i)
			}
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
			least := max(w.position(), m.floor, 10)
			for _, rev := range w.gone { // a consistent list is newer than every event (rule 3)
				least = max(least, rev)
			}
			w.list(m.server, rapid.IntRange(least, m.rev).Draw(t, "served at"))
			return true
		},
	}
}
