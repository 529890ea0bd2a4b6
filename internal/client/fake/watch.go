package fake

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/object"
)

const (
	// bookmarkEvery is how often a watch says how far it is: so it is not taken for a dead one.
	bookmarkEvery = time.Minute
	// hold is how long the event of an own write may be late.
	hold = 10 * time.Second
)

// watcher is a watch of a stream on one of the fake. It has one goroutine, which ends with the
// context, with Stop, or when the fake ends its watch. The server's lock guards the fields below
// it.
type watcher struct {
	source   *source
	selects  stream.Selection
	upstream watch.Interface
	late     bool // a reactor's, which may bring the event of a write after the answer
	result   chan watch.Event
	wake     chan struct{}
	drains   chan chan struct{}
	stop     context.CancelFunc
	ended    chan struct{}

	sinceRV  int64
	brought  map[object.Key]int64 // the newest state that the fake's watch has brought
	withheld map[object.Key]object.Object
	in       map[object.Key]bool // what the stream has
	queue    []watch.Event
}

func newWatcher(s *source, selects stream.Selection, upstream watch.Interface, sinceRV int64) *watcher {
	_, prompt := upstream.(*watch.RaceFreeFakeWatcher)
	return &watcher{
		source: s, selects: selects, upstream: upstream, late: !prompt, sinceRV: sinceRV,
		result: make(chan watch.Event), wake: make(chan struct{}, 1), ended: make(chan struct{}),
		drains:  make(chan chan struct{}),
		brought: make(map[object.Key]int64), in: make(map[object.Key]bool), withheld: make(map[object.Key]object.Object),
	}
}

// ResultChan has the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch.
func (w *watcher) Stop() { w.stop() }

// start brings what has happened since a version, and goes on.
func (w *watcher) start(ctx context.Context, fromRV int64) error {
	m := w.source.mirror
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	if fromRV < m.oldest {
		return errExpired
	}
	type change struct {
		key object.Key
		now state
	}
	var since []change
	for key, h := range m.objects {
		now := h.now()
		if now.version > fromRV {
			since = append(since, change{key, now})
		}
		if w.wants(key, now.object) || now.version > fromRV {
			w.in[key] = true // of what came since, nobody knows
		}
	}
	slices.SortFunc(since, func(a, b change) int { return cmp.Compare(a.now.version, b.now.version) })
	for _, c := range since {
		w.tell(c.key, c.now, c.now)
	}
	m.watchers[w] = true
	ctx, w.stop = context.WithCancel(ctx)
	go w.run(ctx)
	return nil
}

func (w *watcher) wants(key object.Key, o object.Object) bool {
	s := w.source
	return o != nil && (s.namespace == "" || s.namespace == key.Namespace) && Selects(s.of, w.selects, o)
}

// at is the version of the newest state of an object that the fake's watch has brought.
func (w *watcher) at(key object.Key) int64 { return max(w.brought[key], w.sinceRV) }

// tell tells the stream of a new state. One that it does not select is a deletion if it has the
// object, with the content from before; else only the version is news. Called with the lock held.
func (w *watcher) tell(key object.Key, was, now state) {
	wanted, had := w.wants(key, now.object), w.in[key]
	if !wanted {
		delete(w.in, key)
		if last := cmp.Or[object.Object](was.object, now.last); had && last != nil && w.within(key) {
			w.push(watch.Event{Type: watch.Deleted, Object: now.stamped(last)})
			return
		}
		w.bookmark()
		return
	}
	w.in[key] = true
	if had {
		w.push(watch.Event{Type: watch.Modified, Object: now.stamped(now.object)})
	} else {
		w.push(watch.Event{Type: watch.Added, Object: now.stamped(now.object)})
	}
}

func (w *watcher) within(key object.Key) bool {
	return w.source.namespace == "" || w.source.namespace == key.Namespace
}

// bookmark says how far the watch is. Called with the lock held.
func (w *watcher) bookmark() {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(w.source.of.Kind)
	u.SetResourceVersion(text(w.source.server.version))
	if last := len(w.queue) - 1; last >= 0 && w.queue[last].Type == watch.Bookmark {
		w.queue = w.queue[:last]
	}
	w.push(watch.Event{Type: watch.Bookmark, Object: u})
}

func (w *watcher) push(e watch.Event) {
	w.queue = append(w.queue, e)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// next takes the next event off the queue.
func (w *watcher) next() (e watch.Event, ok bool) {
	mu := &w.source.server.mu
	mu.Lock()
	defer mu.Unlock()
	if len(w.queue) == 0 {
		return e, false
	}
	e, w.queue = w.queue[0], w.queue[1:]
	return e, true
}

// run is the watch's goroutine. It alone reads the fake's watch, so that its order stays.
func (w *watcher) run(ctx context.Context) {
	defer w.end()
	quiet := time.NewTicker(bookmarkEvery)
	defer quiet.Stop()
	upstream := w.upstream.ResultChan()
	overdue := time.NewTimer(hold)
	overdue.Stop()
	defer overdue.Stop()
	pending, has := watch.Event{}, false
	for {
		if !has {
			pending, has = w.next()
		}
		var result chan watch.Event
		if has {
			result = w.result
		} else if upstream == nil {
			return // the fake has ended its watch, and everything is told
		}
		select {
		case <-ctx.Done():
			return
		case result <- pending:
			has = false
		case <-w.wake:
		case e, open := <-upstream:
			upstream = w.heard(e, open, overdue)
		case done := <-w.drains:
			for more := upstream != nil; more; {
				select {
				case e, open := <-upstream:
					upstream = w.heard(e, open, overdue)
					more = upstream != nil
				default:
					more = false
				}
			}
			close(done)
		case <-overdue.C:
			w.overdue()
		case <-quiet.C:
			w.source.server.mu.Lock()
			w.bookmark()
			w.source.server.mu.Unlock()
		}
	}
}

// end ends the watch of the fake.
func (w *watcher) end() {
	w.stop()
	w.upstream.Stop()
	w.source.server.mu.Lock()
	delete(w.source.watchers, w)
	w.source.server.mu.Unlock()
	close(w.ended)
	close(w.result)
}

// drain returns when the watch has taken in what the fake has put into its buffer.
func (w *watcher) drain() {
	done := make(chan struct{})
	select {
	case w.drains <- done:
		<-done
	case <-w.ended:
	}
}

// heard takes in an event of the fake, and returns where the next one comes from: nil if none does.
func (w *watcher) heard(e watch.Event, open bool, overdue *time.Timer) <-chan watch.Event {
	if !open {
		return nil
	}
	mu := &w.source.server.mu
	mu.Lock()
	defer mu.Unlock()
	o, ok := e.Object.(object.Object)
	switch e.Type {
	case watch.Bookmark:
		return w.upstream.ResultChan() // its versions are none of ours
	case watch.Added, watch.Modified, watch.Deleted:
		if !ok {
			w.push(e) // the stream says what is wrong with it
			break
		}
		key := object.KeyOf(o)
		if e.Type == watch.Deleted {
			o = nil
		}
		if w.take(key, o) {
			overdue.Reset(hold)
		}
	default:
		w.push(e)
	}
	return w.upstream.ResultChan()
}

// take takes in that the fake's watch shows an object so, or gone. It reports whether that waits
// for the event of an own write.
func (w *watcher) take(key object.Key, o object.Object) (waits bool) {
	m := w.source.mirror
	states := m.objects[key].since(w.at(key))
	for i := range states {
		if states[i].shows(o) {
			w.brought[key], states[i].written = states[i].version, time.Time{}
			delete(w.withheld, key)
			return false
		}
	}
	if len(states) == 0 && o == nil {
		return false // it was never there
	}
	owed := slices.ContainsFunc(states, func(s state) bool {
		return s.version > w.at(key) && !s.written.IsZero() && time.Since(s.written) < hold
	})
	if w.late && owed {
		w.withheld[key] = o
		return true
	}
	w.brought[key] = m.add(key, o).version
	return false
}

// overdue takes in what has waited for events that have not come.
func (w *watcher) overdue() {
	mu := &w.source.server.mu
	mu.Lock()
	defer mu.Unlock()
	for key, o := range w.withheld {
		delete(w.withheld, key)
		w.brought[key] = w.source.add(key, o).version
	}
}
