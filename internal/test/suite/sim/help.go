package sim

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/object"
)

// Late delays every event and bookmark from now on.
func (s *Server) Late(d time.Duration) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Delay = func(string) time.Duration { return d }
}

// Requested counts all requests for a resource.
func (s *Server) Requested(resource string) int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Lists[resource] + s.Probes[resource] + s.Watches[resource]
}

// Requests counts all lists of the resource, including those of one object.
func (s *Server) Requests(resource string) int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Lists[resource] + s.Probes[resource]
}

// Story returns the history of one name.
func (s *Server) Story(resource string, key object.Key) (text string) {
	for _, e := range s.History {
		if e.Resource == resource && e.Key == key {
			text += fmt.Sprintf("  %d: %s %v\n", e.Rev, Describe(e.New), labelsOf(e.New))
		}
	}
	return text
}

// Moment returns the first version of the server, from least on, at which an object was as asked
// for; nil stands for no object. It returns false if there is none.
func (s *Server) Moment(resource string, key object.Key, least int, is func(*unstructured.Unstructured) bool) (rev int, ok bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var then *unstructured.Unstructured
	rev = least
	for _, e := range s.History {
		if e.Resource != resource || e.Key != key {
			continue
		}
		if e.Rev > least {
			if is(then) {
				return rev, true
			}
			rev = e.Rev
		}
		then = e.New
	}
	return rev, is(then)
}

// Describe returns an object's name, UID and version, for messages.
func Describe(o object.Object) string {
	if u, ok := o.(*unstructured.Unstructured); o == nil || (ok && u == nil) {
		return "nothing"
	}
	return fmt.Sprintf("%s/%s %s@%s", o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion())
}

// labelsOf returns what tests change of an object, for messages.
func labelsOf(u *unstructured.Unstructured) any {
	if u == nil {
		return nil
	}
	return []any{u.GetLabels(), u.Object["spec"], u.GetFinalizers(), u.GetDeletionTimestamp() != nil}
}

// Revision returns a version as a number, 0 if it is none.
func Revision(version string) int {
	n := 0
	_, _ = fmt.Sscan(version, &n)
	return n
}

// In returns an object in a namespace, with labels: keys and values by turns.
func In(namespace, name string, kv ...string) *unstructured.Unstructured {
	u := Thing(name, kv...)
	u.SetNamespace(namespace)
	return u
}

// Relabelled returns an object of the resource "as" with other labels, which nobody has written.
func (s *Server) Relabelled(name string, kv ...string) *unstructured.Unstructured {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	u := s.Now["as"][object.Key{Namespace: "ns", Name: name}].DeepCopy()
	u.SetLabels(Thing(name, kv...).GetLabels())
	return u
}

// Relabel gives an object of "as" other labels, as another client.
func (s *Server) Relabel(name string, kv ...string) { s.Create("as", s.Relabelled(name, kv...)) }

// Scoped returns a query whose kind is served, and has namespaces, as the test says.
func Scoped(q query.Query, served, namespaced *atomic.Bool) query.Query {
	q.Resolve = func(context.Context) (object.Resource, error) {
		r := Resource(q.Kind)
		r.Namespaced = namespaced.Load()
		if !served.Load() {
			return r, query.ErrNotServed
		}
		return r, nil
	}
	return q
}
