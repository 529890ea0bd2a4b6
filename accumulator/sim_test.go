package accumulator

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// sim is a simulated API server. It has the history of every object, and serves lists and watches
// of it like a real one. Time is synctest's.
type sim struct {
	mu      sync.Mutex
	changed *sync.Cond
	rev     int
	uids    int
	history []simEvent
	now     map[string]map[Key]*unstructured.Unstructured // by resource
	oldest  int                                           // versions before it are compacted: 410

	// what tests set
	delay func(resource string) time.Duration // of each event
	// delayOf is delay for one watch. The filter tells watches apart.
	delayOf func(w *simWatch) time.Duration
	// listDelay is the time before a list is served, streamed or not.
	listDelay func(resource string) time.Duration
	// listAnswer is the time that the answer of a list needs.
	listAnswer func(resource string) time.Duration
	fail       func(verb, resource string) error // of each request
	lag        func(newest, atLeast int) int     // the version of a list that may be older
	cuts       map[*simWatch]struct{}            // open watches
	lists      map[string]int                    // requests by resource
	probes     map[string]int                    // lists of one object
	watches    map[string]int
	streamed   map[string]int // watches with initial events
	pages      int
	asked      string // the least version that the latest list asked for
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
		cuts: map[*simWatch]struct{}{}, lists: map[string]int{}, probes: map[string]int{}, streamed: map[string]int{}, watches: map[string]int{},
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

// failing makes requests fail; nil ends it.
func (s *sim) failing(f func(verb, resource string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// opened counts the lists of a resource, streamed or not. The caller holds mu.
func (s *sim) opened(resource string) int { return s.lists[resource] + s.streamed[resource] }

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

// create and remove are foreign writes.
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

// watching counts the open watches.
func (s *sim) watching() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.cuts)
}

// restore sets the server back to an earlier state, as from a backup, and ends all watches.
func (s *sim) restore(rev int) {
	s.rewind(rev)
	s.cut()
}

// rewind is restore for watches that do not notice.
func (s *sim) rewind(rev int) {
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
}

// at returns the state of a resource at a version.
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
