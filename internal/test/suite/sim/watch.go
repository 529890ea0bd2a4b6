package sim

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

// WatchWithContext opens a watch.
func (s *Source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := s.request(ctx, "watch", 0); err != nil {
		return nil, err
	}
	streamed := o.SendInitialEvents != nil && *o.SendInitialEvents
	if streamed {
		if s.delayList(ctx); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	w := &Watch{sim: s.Server, Source: s, Filter: s.filter(o), out: make(chan watch.Event), stop: make(chan struct{})}
	from, _ := strconv.Atoi(o.ResourceVersion)
	if streamed {
		for _, u := range s.At(s.Resource, s.Rev) {
			if w.Filter.Shows(u) {
				w.initial = append(w.initial, watch.Event{Type: watch.Added, Object: s.render(u)})
			}
		}
		w.initial = append(w.initial, bookmark(s.Rev, true))
		w.answer, s.Asked = s.ListAnswer, o.ResourceVersion
		s.Streamed[s.Resource]++
		from = s.Rev
	} else if from < s.Oldest {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	w.from = from
	s.Cuts[w] = struct{}{}
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds < 60 {
		w.end = time.Duration(*o.TimeoutSeconds) * time.Second
		go w.expire() // ends with the watch
	}
	go w.run()
	return w, nil
}

// bookmark returns a bookmark. The initial one ends a streamed list.
func bookmark(rev int, initial bool) watch.Event {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}
	u.SetResourceVersion(strconv.Itoa(rev))
	if initial {
		u.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return watch.Event{Type: watch.Bookmark, Object: u}
}

// Watch delivers the history from a version on.
type Watch struct {
	sim     *Server
	Source  *Source
	Filter  Filter
	from    int
	initial []watch.Event
	answer  func(resource string) time.Duration // the time that the initial events need
	out     chan watch.Event
	stop    chan struct{}
	stopped bool
	marked  int // the version of a bookmark that is due
	end     time.Duration
}

// expire ends a watch that was asked for a short time. It sends a bookmark two seconds before
// that, as a server does. Longer watches do not end by themselves.
func (w *Watch) expire() {
	if !w.pause(w.end - 2*time.Second) {
		return
	}
	w.sim.Mu.Lock()
	if w.marked = w.sim.Rev; w.sim.Bookmarked != nil {
		w.marked = w.sim.Bookmarked(w.sim.Rev)
	}
	w.sim.changed.Broadcast()
	w.sim.Mu.Unlock()
	if w.pause(2 * time.Second) {
		w.Stop()
	}
}

// Short reports whether the watch was asked for a short time.
func (w *Watch) Short() bool { return w.end > 0 }

// ResultChan returns the events.
func (w *Watch) ResultChan() <-chan watch.Event { return w.out }

// Stop ends the watch.
func (w *Watch) Stop() {
	w.sim.Mu.Lock()
	defer w.sim.Mu.Unlock()
	w.StopLocked()
}

// StopLocked is Stop, called with the server's Mu held.
func (w *Watch) StopLocked() {
	if !w.stopped {
		w.stopped = true
		delete(w.sim.Cuts, w)
		close(w.stop)
		w.sim.changed.Broadcast()
	}
}

func (w *Watch) run() {
	defer close(w.out)
	if w.answer != nil && !w.pause(w.answer(w.Source.Resource)) {
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
func (w *Watch) wait() bool {
	w.sim.Mu.Lock()
	delay, delayOf := w.sim.Delay, w.sim.DelayOf
	w.sim.Mu.Unlock()
	var d time.Duration
	switch {
	case delayOf != nil:
		d = delayOf(w)
	case delay != nil:
		d = delay(w.Source.Resource)
	}
	return w.pause(d)
}

func (w *Watch) pause(d time.Duration) bool {
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

func (w *Watch) send(e watch.Event) bool {
	select {
	case w.out <- e:
		return true
	case <-w.stop:
		return false
	}
}

// next waits for an event that the watch delivers.
func (w *Watch) next() (watch.Event, bool) {
	s := w.sim
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for {
		if w.stopped {
			return watch.Event{}, false
		}
		i := sort.Search(len(s.History), func(i int) bool { return s.History[i].Rev > w.from })
		for ; i < len(s.History); i++ {
			e := s.History[i]
			w.from = e.Rev
			if e.Resource != w.Source.Resource {
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

// event returns the server's event of a change for the watch's filter, if there is one.
func (w *Watch) event(e Event) (watch.Event, bool) {
	old, now := w.Filter.Shows(e.old), w.Filter.Shows(e.New)
	switch {
	case now && old:
		return watch.Event{Type: watch.Modified, Object: w.sim.render(e.New)}, true
	case now:
		return watch.Event{Type: watch.Added, Object: w.sim.render(e.New)}, true
	case old:
		gone := w.sim.render(e.old)
		if e.New != nil || w.sim.LastState == nil || !w.sim.LastState(e) {
			gone.SetResourceVersion(strconv.Itoa(e.Rev))
		}
		return watch.Event{Type: watch.Deleted, Object: gone}, true
	}
	return watch.Event{}, false
}

// Bookmarks sends a bookmark on every open watch.
func (s *Server) Bookmarks() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for w := range s.Cuts {
		w.marked = s.Rev
	}
	s.changed.Broadcast()
}
