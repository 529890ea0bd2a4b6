package accumulator

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/coherence"
)

// sim is a simulated API server: the history of every object, with lists and watches
// over it as a real one makes them. Time is synctest's.
type sim struct {
	mu      sync.Mutex
	changed *sync.Cond
	rev     int
	uids    int
	history []simEvent
	now     map[string]map[Key]*unstructured.Unstructured // by resource
	oldest  int                                           // versions before it are compacted: 410

	// what tests set
	delay     func(resource string) time.Duration // of each event
	listDelay func(resource string) time.Duration // of each list, before it is served
	// listAnswer is how long the answer of a list is on its way.
	listAnswer func(resource string) time.Duration
	fail       func(verb, resource string) error // of each request
	lag        func(newest, atLeast int) int     // the version a list that may be older is served at
	cuts       map[*simWatch]struct{}            // open watches
	lists      map[string]int                    // requests by resource
	watches    map[string]int
	pages      int
}

type simEvent struct {
	rev      int
	resource string
	key      Key
	old, new *unstructured.Unstructured
}

func newSim() *sim {
	s := &sim{
		rev: 100, now: map[string]map[Key]*unstructured.Unstructured{},
		cuts: map[*simWatch]struct{}{}, lists: map[string]int{}, watches: map[string]int{},
	}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func simResource(name string) Resource {
	return Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: name},
		Kind:                 schema.GroupVersionKind{Version: "v1", Kind: "Thing"},
		Namespaced:           true, Storage: name,
	}
}

func simQuery(name, resource string) Query {
	return Query{Name: name, Kind: resource, Resolve: func(context.Context) (Resource, error) { return simResource(resource), nil }}
}

func thing(name string, kv ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}
	u.SetNamespace("ns")
	u.SetName(name)
	l := map[string]string{}
	for i := 0; i+1 < len(kv); i += 2 {
		l[kv[i]] = kv[i+1]
	}
	if len(l) > 0 {
		u.SetLabels(l)
	}
	return u
}

// put stores the next version of an object, or, with nil, removes it.
func (s *sim) put(resource string, key Key, u *unstructured.Unstructured) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putLocked(resource, key, u)
}

func (s *sim) putLocked(resource string, key Key, u *unstructured.Unstructured) *unstructured.Unstructured {
	s.rev++
	objects := s.now[resource]
	if objects == nil {
		objects = map[Key]*unstructured.Unstructured{}
		s.now[resource] = objects
	}
	old := objects[key]
	if u != nil {
		u = u.DeepCopy()
		u.SetResourceVersion(strconv.Itoa(s.rev))
		if u.GetUID() == "" {
			s.uids++
			u.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
		}
		objects[key] = u
	} else {
		delete(objects, key)
	}
	s.history = append(s.history, simEvent{s.rev, resource, key, old, u})
	s.changed.Broadcast()
	return u
}

// create and remove are a foreign writer's.
func (s *sim) create(resource string, u *unstructured.Unstructured) *unstructured.Unstructured {
	return s.put(resource, Key{Namespace: u.GetNamespace(), Name: u.GetName()}, u)
}

func (s *sim) touch(resource, name string, n int) {
	key := Key{Namespace: "ns", Name: name}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.now[resource][key].DeepCopy()
	_ = unstructured.SetNestedField(u.Object, int64(n), "spec", "n")
	s.putLocked(resource, key, u)
}

func (s *sim) remove(resource, name string) {
	s.put(resource, Key{Namespace: "ns", Name: name}, nil)
}

// cut breaks every open watch.
func (s *sim) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.cuts {
		w.stopLocked()
	}
}

// restore puts the server back to an earlier state, as from a backup.
func (s *sim) restore(rev int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.history[:0:0]
	s.now = map[string]map[Key]*unstructured.Unstructured{}
	for _, e := range s.history {
		if e.rev > rev {
			break
		}
		kept = append(kept, e)
		if s.now[e.resource] == nil {
			s.now[e.resource] = map[Key]*unstructured.Unstructured{}
		}
		if e.new == nil {
			delete(s.now[e.resource], e.key)
		} else {
			s.now[e.resource][e.key] = e.new
		}
	}
	s.history, s.rev = kept, rev
	for w := range s.cuts {
		w.stopLocked()
	}
}

// at is the state of a resource at a version.
func (s *sim) at(resource string, rev int) map[Key]*unstructured.Unstructured {
	state := map[Key]*unstructured.Unstructured{}
	for _, e := range s.history {
		if e.rev > rev {
			break
		}
		if e.resource != resource {
			continue
		}
		if e.new == nil {
			delete(state, e.key)
		} else {
			state[e.key] = e.new
		}
	}
	return state
}

func (s *sim) source(r Resource, namespace string) cache.ListerWatcherWithContext {
	return &simSource{s, r.Resource, namespace}
}

type simSource struct {
	*sim
	resource, namespace string
}

// simFilter is what a request asks for.
type simFilter struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (s *simSource) filter(o metav1.ListOptions) simFilter {
	f := simFilter{namespace: s.namespace}
	f.labels, _ = labels.Parse(o.LabelSelector)
	f.fields, _ = fields.ParseSelector(o.FieldSelector)
	return f
}

func (f simFilter) shows(u *unstructured.Unstructured) bool {
	if u == nil || (f.namespace != "" && u.GetNamespace() != f.namespace) || !f.labels.Matches(labels.Set(u.GetLabels())) {
		return false
	}
	node, _, _ := unstructured.NestedString(u.Object, "spec", "node")
	return f.fields.Matches(fields.Set{
		"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace(), "spec.node": node,
	})
}

func (s *simSource) request(ctx context.Context, verb string) error {
	s.mu.Lock()
	if verb == "list" {
		s.lists[s.resource]++
	} else {
		s.watches[s.resource]++
	}
	fail, wait := s.fail, s.listDelay
	s.mu.Unlock()
	if verb == "list" && wait != nil {
		sleep(ctx, wait(s.resource))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if fail != nil {
		return fail(verb, s.resource)
	}
	return nil
}

func (s *simSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if err := s.request(ctx, "list"); err != nil {
		return nil, err
	}
	list, err := s.serve(o)
	s.mu.Lock()
	wait := s.listAnswer
	s.mu.Unlock()
	if wait != nil {
		sleep(ctx, wait(s.resource))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return list, err
}

// serve makes the answer of a list as of now, or as old as it may be.
func (s *simSource) serve(o metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rev, start := s.rev, 0
	atLeast, _ := strconv.Atoi(o.ResourceVersion)
	switch {
	case o.Continue != "":
		var token struct{ Rev, Start int }
		_ = json.Unmarshal([]byte(o.Continue), &token)
		rev, start = token.Rev, token.Start
		if rev < s.oldest {
			return nil, apierrors.NewResourceExpired("the continue token is too old")
		}
	case o.ResourceVersion == "":
	case atLeast > s.rev:
		err := apierrors.NewTimeoutError("Too large resource version", 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, err
	case s.lag != nil:
		rev = s.lag(s.rev, atLeast)
	}
	f := s.filter(o)
	var items []unstructured.Unstructured
	for _, u := range s.at(s.resource, rev) {
		if f.shows(u) {
			items = append(items, *u.DeepCopy())
		}
	}
	sort.Slice(items, func(i, j int) bool { return items[i].GetName() < items[j].GetName() })
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ThingList"}}
	list.SetResourceVersion(strconv.Itoa(rev))
	if start > 0 {
		s.pages++
	}
	items = items[min(start, len(items)):]
	if o.Limit > 0 && int64(len(items)) > o.Limit {
		items = items[:o.Limit]
		token, _ := json.Marshal(struct{ Rev, Start int }{rev, start + len(items)})
		list.SetContinue(string(token))
	}
	list.Items = items
	return list, nil
}

func (s *simSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := s.request(ctx, "watch"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &simWatch{sim: s.sim, source: s, filter: s.filter(o), out: make(chan watch.Event), stop: make(chan struct{})}
	from, _ := strconv.Atoi(o.ResourceVersion)
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		for _, u := range s.at(s.resource, s.rev) {
			if w.filter.shows(u) {
				w.initial = append(w.initial, watch.Event{Type: watch.Added, Object: u.DeepCopy()})
			}
		}
		w.initial = append(w.initial, bookmark(s.rev, true))
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
	out     chan watch.Event
	stop    chan struct{}
	stopped bool
	marked  int // the version a bookmark is owed for
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
		if d := w.sim.delay; d != nil {
			t := time.NewTimer(d(w.source.resource))
			select {
			case <-t.C:
			case <-w.stop:
				t.Stop()
				return
			}
		}
		if !w.send(e) {
			return
		}
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

// next waits for an event that the watch is to deliver.
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

// event is what the server makes of a change for the watch's filter.
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

// bookmarks tells every open watch how far it has come.
func (s *sim) bookmarks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.cuts {
		w.marked = s.rev
	}
	s.changed.Broadcast()
}

// own is this client's writer: it writes to the server and, once answered, tells the
// streams, as package kates does.
type own struct {
	*sim
	streams *Streams
}

// write performs f on the object under the server's lock and commits its answer after
// a while. The result of f: the answer (nil for a Status), whether the object is gone.
func (o own) put(resource string, u *unstructured.Unstructured, answer time.Duration) {
	r := simResource(resource)
	key := Key{Namespace: u.GetNamespace(), Name: u.GetName()}
	w := o.streams.Begin(r, key)
	got := o.sim.put(resource, key, u)
	after(answer)
	_ = w.Commit(context.Background(), Outcome{Write: coherence.Write{
		Key: key, UID: got.GetUID(), Version: got.GetResourceVersion(), Object: got.DeepCopy(),
	}})
}

func (o own) delete(resource, name string, answer time.Duration, versioned bool) bool {
	r := simResource(resource)
	key := Key{Namespace: "ns", Name: name}
	o.sim.mu.Lock()
	old := o.sim.now[resource][key]
	if old == nil {
		o.sim.mu.Unlock()
		return false
	}
	o.sim.mu.Unlock()
	w := o.streams.Begin(r, key)
	o.sim.mu.Lock()
	old = o.sim.now[resource][key]
	if old == nil {
		o.sim.mu.Unlock()
		w.Abandon()
		return false
	}
	o.sim.putLocked(resource, key, nil)
	out := coherence.Write{Key: key, UID: old.GetUID()}
	if versioned {
		out.Version = strconv.Itoa(o.sim.rev)
	}
	o.sim.mu.Unlock()
	after(answer)
	_ = w.Commit(context.Background(), Outcome{Write: out})
	return true
}

// after lets the bubble's time pass.
func after(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
