// Package sim is a simulated API server for tests in synctest's time: it has the history of every
// object, serves lists and watches of it as late and as broken as a test wants, and has a client
// that reports its own writes to streams.
package sim

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/object"
)

// Server is the simulated server. It serves like a real one. Time is synctest's.
type Server struct {
	Mu      sync.Mutex
	changed *sync.Cond
	Rev     int
	uids    int
	History []Event
	Now     map[string]map[object.Key]*unstructured.Unstructured // by resource
	Oldest  int                                                  // older versions are gone: 410

	// what tests set
	Delay func(resource string) time.Duration // of each event
	// DelayOf is Delay for one watch, and counts before it. The filter tells watches apart.
	DelayOf func(w *Watch) time.Duration
	// ListDelay is the time before a list is served, streamed or not.
	ListDelay func(resource string) time.Duration
	// ListAnswer is the time that the answer of a list needs.
	ListAnswer func(resource string) time.Duration
	Fail       func(verb, resource string) error // of each request
	Lag        func(newest, atLeast int) int     // the version of a list that may be older
	// LastState says which deletions are delivered with the last version of the object in place of
	// their own, as some servers and proxies do.
	LastState func(e Event) bool
	// Bookmarked is the version of the last bookmark of a short watch; 0: there is none.
	Bookmarked func(newest int) int
	// Shards, if not nil, makes the server shard as it is asked to. It returns what a list says of
	// its share: what was asked for, or "" for nothing.
	Shards func(selector string) string
	// Unserved are the resources and versions of the API that are not served, see Serve.
	Unserved map[string]bool
	// Schema is how the server shows objects now, see Reschema.
	Schema   int
	Cuts     map[*Watch]struct{} // open watches
	Lists    map[string]int      // requests by resource
	Probes   map[string]int      // lists of one object
	Watches  map[string]int
	Streamed map[string]int // watches with initial events
	Pages    int
	Asked    string // the least version that the latest list asked for
}

// Event is one change of one object. New is nil for a deletion.
type Event struct {
	Rev      int
	Resource string
	Key      object.Key
	old, New *unstructured.Unstructured
	Schema   int // how the server showed objects then
}

// New returns a server without objects.
func New() *Server {
	s := &Server{
		Rev: 100, Now: map[string]map[object.Key]*unstructured.Unstructured{},
		Cuts: map[*Watch]struct{}{}, Lists: map[string]int{}, Probes: map[string]int{}, Streamed: map[string]int{}, Watches: map[string]int{},
		Unserved: map[string]bool{},
	}
	s.changed = sync.NewCond(&s.Mu)
	return s
}

// Resource returns the resource of a name. Objects of spaces are in no namespace.
func Resource(name string) object.Resource {
	return object.Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: name},
		Kind:                 schema.GroupVersionKind{Version: "v1", Kind: "Thing"},
		Namespaced:           name != "spaces", Storage: name,
	}
}

// Field reads the field by which the server selects, beside those of the metadata.
func Field(o object.Object, field string) (value string, ok bool) {
	u, untyped := o.(*unstructured.Unstructured)
	if !untyped || field != "spec.node" {
		return "", false
	}
	value, _, _ = unstructured.NestedString(u.Object, "spec", "node")
	return value, true
}

// Query returns a query over all objects of a resource.
func Query(name, resource string) query.Query {
	return query.Query{Name: name, Kind: resource, Resolve: func(context.Context) (object.Resource, error) { return Resource(resource), nil }}
}

// Thing returns an object in namespace ns, with labels: keys and values by turns.
func Thing(name string, kv ...string) *unstructured.Unstructured {
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

// Failing makes requests fail; nil ends it.
func (s *Server) Failing(f func(verb, resource string) error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Fail = f
}

// Serve serves a resource in a version of the API, or no longer: that ends its watches.
func (s *Server) Serve(resource, version string, served bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Unserved[resource+"/"+version] = !served
	for w := range s.Cuts {
		if !served && w.Source.Resource == resource && w.Source.Version == version {
			w.StopLocked()
		}
	}
}

// Serves reports whether a resource is served in a version of the API.
func (s *Server) Serves(resource, version string) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return !s.Unserved[resource+"/"+version]
}

// Opened counts the lists of a resource, streamed or not. The caller holds Mu.
func (s *Server) Opened(resource string) int { return s.Lists[resource] + s.Streamed[resource] }

// Put stores the next version of an object, or, with nil, removes it.
func (s *Server) Put(resource string, key object.Key, u *unstructured.Unstructured) *unstructured.Unstructured {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.putLocked(resource, key, u)
}

// putLocked is Put, called with Mu held.
func (s *Server) putLocked(resource string, key object.Key, u *unstructured.Unstructured) *unstructured.Unstructured {
	s.Rev++
	objects := s.Now[resource]
	if objects == nil {
		objects = map[object.Key]*unstructured.Unstructured{}
		s.Now[resource] = objects
	}
	old := objects[key]
	if u != nil {
		u = u.DeepCopy()
		u.SetResourceVersion(strconv.Itoa(s.Rev))
		if u.GetUID() == "" {
			s.uids++
			u.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
		}
		objects[key] = u
	} else {
		delete(objects, key)
	}
	s.History = append(s.History, Event{s.Rev, resource, key, old, u, s.Schema})
	s.changed.Broadcast()
	return u
}

// Create stores an object, as another client.
func (s *Server) Create(resource string, u *unstructured.Unstructured) *unstructured.Unstructured {
	return s.Put(resource, object.Key{Namespace: u.GetNamespace(), Name: u.GetName()}, u)
}

// Touch changes spec.n of an object, as another client.
func (s *Server) Touch(resource, name string, n int) {
	key := object.Key{Namespace: "ns", Name: name}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	u := s.Now[resource][key].DeepCopy()
	_ = unstructured.SetNestedField(u.Object, int64(n), "spec", "n")
	s.putLocked(resource, key, u)
}

// Remove removes an object, as another client.
func (s *Server) Remove(resource, name string) {
	s.Put(resource, object.Key{Namespace: "ns", Name: name}, nil)
}

// Cut breaks every open watch.
func (s *Server) Cut() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for w := range s.Cuts {
		w.StopLocked()
	}
}

// Watching counts the open watches.
func (s *Server) Watching() int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return len(s.Cuts)
}

// Restore sets the server back to an earlier state, as from a backup, and ends all watches.
func (s *Server) Restore(rev int) {
	s.Rewind(rev)
	s.Cut()
}

// Rewind is Restore for watches that do not notice.
func (s *Server) Rewind(rev int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	kept := s.History[:0:0]
	s.Now = map[string]map[object.Key]*unstructured.Unstructured{}
	for _, e := range s.History {
		if e.Rev > rev {
			break
		}
		kept = append(kept, e)
		if s.Now[e.Resource] == nil {
			s.Now[e.Resource] = map[object.Key]*unstructured.Unstructured{}
		}
		if e.New == nil {
			delete(s.Now[e.Resource], e.Key)
		} else {
			s.Now[e.Resource][e.Key] = e.New
		}
	}
	s.History, s.Rev = kept, rev
}

// At returns the state of a resource at a version.
func (s *Server) At(resource string, rev int) map[object.Key]*unstructured.Unstructured {
	state := map[object.Key]*unstructured.Unstructured{}
	for _, e := range s.History {
		if e.Rev > rev {
			break
		}
		if e.Resource != resource {
			continue
		}
		if e.New == nil {
			delete(state, e.Key)
		} else {
			state[e.Key] = e.New
		}
	}
	return state
}

// VersionOf names an object with its version.
func VersionOf(u *unstructured.Unstructured) string {
	return u.GetName() + "@" + string(u.GetUID()) + "@" + u.GetResourceVersion()
}
