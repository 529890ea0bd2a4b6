package accumulator

import (
	"context"
	"sort"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func (s *simSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := s.request(ctx, "watch", 0); err != nil {
		return nil, err
	}
	streamed := o.SendInitialEvents != nil && *o.SendInitialEvents
	if streamed {
		if s.delayList(ctx); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &simWatch{sim: s.sim, source: s, filter: s.filter(o), out: make(chan watch.Event), stop: make(chan struct{})}
	from, _ := strconv.Atoi(o.ResourceVersion)
	if streamed {
		for _, u := range s.at(s.resource, s.rev) {
			if w.filter.shows(u) {
				w.initial = append(w.initial, watch.Event{Type: watch.Added, Object: u.DeepCopy()})
			}
		}
		w.initial = append(w.initial, bookmark(s.rev, true))
		w.answer, s.asked = s.listAnswer, o.ResourceVersion
		s.streamed[s.resource]++
		from = s.rev
	} else if from < s.oldest {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	w.from = from
	s.cuts[w] = struct{}{}
	go w.run()
	return w, nil
}

func bookmark(rev int, initial bool) watch.Event {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}
	u.SetResourceVersion(strconv.Itoa(rev))
	if initial {
		u.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return watch.Event{Type: watch.Bookmark, Object: u}
}

// simWatch delivers the history from a version on.
type simWatch struct {
	sim     *sim
	source  *simSource
	filter  simFilter
	from    int
	initial []watch.Event
	answer  func(resource string) time.Duration // the time that the initial events need
	out     chan watch.Event
	stop    chan struct{}
	stopped bool
	marked  int // the version of a bookmark that is due
}

func (w *simWatch) ResultChan() <-chan watch.Event { return w.out }

func (w *simWatch) Stop() {
	w.sim.mu.Lock()
	defer w.sim.mu.Unlock()
	w.stopLocked()
}

func (w *simWatch) stopLocked() {
	if !w.stopped {
		w.stopped = true
		delete(w.sim.cuts, w)
		close(w.stop)
		w.sim.changed.Broadcast()
	}
}

func (w *simWatch) run() {
	defer close(w.out)
	if w.answer != nil && !w.pause(w.answer(w.source.resource)) {
		return
	}
	for _, e := range w.initial {
		if !w.send(e) {
			return
		}
	}
	for {
		e, ok := w.next()
		if !ok {
			return
		}
		if !w.wait() || !w.send(e) {
			return
		}
	}
}

// wait waits for an event's delay.
func (w *simWatch) wait() bool {
	w.sim.mu.Lock()
	delay, delayOf := w.sim.delay, w.sim.delayOf
	w.sim.mu.Unlock()
	var d time.Duration
	switch {
	case delayOf != nil:
		d = delayOf(w)
	case delay != nil:
		d = delay(w.source.resource)
	}
	return w.pause(d)
}

func (w *simWatch) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.stop:
		return false
	}
}

func (w *simWatch) send(e watch.Event) bool {
	select {
	case w.out <- e:
		return true
	case <-w.stop:
		return false
	}
}

// next waits for an event that the watch delivers.
func (w *simWatch) next() (watch.Event, bool) {
	s := w.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if w.stopped {
			return watch.Event{}, false
		}
		i := sort.Search(len(s.history), func(i int) bool { return s.history[i].rev > w.from })
		for ; i < len(s.history); i++ {
			e := s.history[i]
			w.from = e.rev
			if e.resource != w.source.resource {
				continue
			}
			if out, ok := w.event(e); ok {
				return out, true
			}
		}
		if w.marked > 0 {
			rev := w.marked
			w.marked = 0
			return bookmark(rev, false), true
		}
		s.changed.Wait()
	}
}

// event returns the server's event of a change for the watch's filter.
func (w *simWatch) event(e simEvent) (watch.Event, bool) {
	old, now := w.filter.shows(e.old), w.filter.shows(e.new)
	switch {
	case now && old:
		return watch.Event{Type: watch.Modified, Object: e.new.DeepCopy()}, true
	case now:
		return watch.Event{Type: watch.Added, Object: e.new.DeepCopy()}, true
	case old:
		gone := e.old.DeepCopy()
		gone.SetResourceVersion(strconv.Itoa(e.rev))
		return watch.Event{Type: watch.Deleted, Object: gone}, true
	}
	return watch.Event{}, false
}

// bookmarks sends a bookmark on every open watch.
func (s *sim) bookmarks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.cuts {
		w.marked = s.rev
	}
	s.changed.Broadcast()
}
