package fake

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/object"
)

const (
	// bookmarkEvery is how often a watch says how far it is: so it is not taken for a dead one.
	bookmarkEvery = time.Minute
	// hold is how long the event of an own write may be late.
	hold = 10 * time.Second
)

// watcher is a watch of a stream on one of the fake. It has a goroutine, and one that reads for it.
// They end with the context, with Stop, or when the fake ends its watch. The server's lock guards
// the fields below sinceRV.
type watcher struct {
	source   *view
	selects  object.Selection
	upstream watch.Interface
	late     bool // a reactor's, which may bring the event of a write after the answer
	result   chan watch.Event
	wake     chan struct{}
	drains   chan chan struct{}
	notices  chan notice
	stop     context.CancelFunc
	pumped   chan struct{}
	ended    chan struct{}

	sinceRV  int64
	brought  map[object.Key]int64 // the newest state that the fake's watch has brought
	withheld map[object.Key]waiting
	in       map[object.Key]bool // what the stream has
	queue    []watch.Event
}

// waiting is an object as an event has shown it, or nil, that waits since then.
type waiting struct {
	object object.Object
	since  time.Time
}

// newWatcher reads the fake's watch from now on. Call start or abandon.
func newWatcher(
	ctx context.Context, s *view, selects object.Selection, upstream watch.Interface, sinceRV int64,
) (*watcher, context.Context) {
	_, prompt := upstream.(*watch.RaceFreeFakeWatcher)
	w := &watcher{
		source: s, selects: selects, upstream: upstream, late: !prompt, sinceRV: sinceRV,
		result: make(chan watch.Event), wake: make(chan struct{}, 1), ended: make(chan struct{}),
		drains: make(chan chan struct{}), notices: make(chan notice), pumped: make(chan struct{}),
		brought: make(map[object.Key]int64), in: make(map[object.Key]bool), withheld: make(map[object.Key]waiting),
	}
	ctx, w.stop = context.WithCancel(ctx)
	go w.pump(ctx)
	return w, ctx
}

// abandon ends a watcher that has not started.
func (w *watcher) abandon() {
	w.stop()
	<-w.pumped
	w.upstream.Stop()
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
		w.queueState(c.key, c.now, c.now)
	}
	m.watchers[w] = true
	go w.run(ctx)
	return nil
}

func (w *watcher) wants(key object.Key, o object.Object) bool {
	s := w.source
	return o != nil && (s.namespace == "" || s.namespace == key.Namespace) && Selects(s.of, w.selects, o)
}

// at is the version of the newest state of an object that the fake's watch has brought.
func (w *watcher) at(key object.Key) int64 { return max(w.brought[key], w.sinceRV) }

// queueState tells the stream of a new state. One that it does not select is a deletion if it has the
// object, with the content from before; else only the version is news. Called with the lock held.
func (w *watcher) queueState(key object.Key, was, now state) {
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

// run is the watch's goroutine. It alone takes in what the fake's watch brings, so that its order
// stays.
func (w *watcher) run(ctx context.Context) {
	defer w.endUpstream()
	quiet := time.NewTicker(bookmarkEvery)
	defer quiet.Stop()
	overdue := time.NewTimer(hold)
	overdue.Stop()
	defer overdue.Stop()
	pending, has, armed, over := watch.Event{}, false, false, false
	for {
		if !armed {
			var after time.Duration
			if after, armed = w.due(); armed {
				overdue.Reset(after)
			}
		}
		if !has {
			pending, has = w.next()
		}
		var result chan watch.Event
		if has {
			result = w.result
		} else if over {
			return // the fake has ended its watch, and everything is told
		}
		select {
		case <-ctx.Done():
			return
		case result <- pending:
			has = false
		case <-w.wake:
		case n := <-w.notices:
			w.heard(n)
			over = over || n.ended
		case <-overdue.C:
			armed = false
			w.overdue()
		case <-quiet.C:
			w.source.server.mu.Lock()
			w.bookmark()
			w.source.server.mu.Unlock()
		}
	}
}

// endUpstream ends the watch of the fake.
func (w *watcher) endUpstream() {
	w.stop()
	<-w.pumped
	w.upstream.Stop()
	w.source.server.mu.Lock()
	delete(w.source.watchers, w)
	w.source.server.mu.Unlock()
	close(w.ended)
	close(w.result)
}

// heard takes in what the fake's watch has brought.
func (w *watcher) heard(n notice) {
	if n.done != nil {
		close(n.done)
		return
	}
	if n.ended {
		return
	}
	mu := &w.source.server.mu
	mu.Lock()
	defer mu.Unlock()
	o, ok := n.event.Object.(object.Object)
	switch n.event.Type {
	case watch.Bookmark: // its versions are none of ours
	case watch.Added, watch.Modified, watch.Deleted:
		if !ok {
			w.push(n.event) // the stream says what is wrong with it
			break
		}
		key := object.KeyOf(o)
		if n.event.Type == watch.Deleted {
			o = nil
		}
		w.addShown(key, o)
	default:
		w.push(n.event)
	}
}

// addShown takes in that the fake's watch shows an object so, or gone. That may have to wait for the
// event of an own write.
func (w *watcher) addShown(key object.Key, o object.Object) {
	m := w.source.mirror
	if !w.late && o != nil {
		defer func() { m.had[key] = m.objects[key].now().object != nil }()
	}
	states := m.objects[key].since(w.at(key))
	for i := range states {
		if states[i].shows(o) {
			w.brought[key], states[i].written = states[i].version, time.Time{}
			delete(w.withheld, key)
			return
		}
	}
	if len(states) == 0 && o == nil {
		return // it was never there
	}
	owed := slices.ContainsFunc(states, func(s state) bool {
		return s.version > w.at(key) && !s.written.IsZero() && time.Since(s.written) < hold
	})
	if w.late && owed {
		first := cmp.Or(w.withheld[key].since, time.Now())
		w.withheld[key] = waiting{o, first}
		return
	}
	w.brought[key] = m.add(key, o).version
}

// due is when something is overdue; false if nothing can be.
func (w *watcher) due() (after time.Duration, any bool) {
	m := w.source.mirror
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	first := time.Time{}
	for _, each := range w.withheld {
		first = earlier(first, each.since)
	}
	for key := range m.unshown {
		if written := m.objects[key].now().written; written.IsZero() {
			delete(m.unshown, key)
		} else {
			first = earlier(first, written)
		}
	}
	return time.Until(first.Add(hold)), !first.IsZero()
}

// earlier is the earlier one of two times. A zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// overdue takes in what has waited for events that have not come, and looks whether these were
// ever to come.
func (w *watcher) overdue() {
	mu := &w.source.server.mu
	mu.Lock()
	for key, each := range w.withheld {
		if time.Since(each.since) >= hold {
			delete(w.withheld, key)
			w.brought[key] = w.source.add(key, each.object).version
		}
	}
	mu.Unlock()
	w.source.check()
}
