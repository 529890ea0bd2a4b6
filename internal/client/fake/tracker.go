package fake

import (
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/object"
)

// missed takes in what was deleted before a watch, since a list or another watch. The tracker had
// it, and has it no more; an object that came back since has an event.
func (s *view) missed(w *watcher) {
	w.drain()
	s.server.mu.Lock()
	from := s.server.version
	s.server.mu.Unlock()
	after := s.tracked()
	if after == nil {
		return
	}
	s.drain()
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	for key := range s.had {
		if s.namespace != "" && s.namespace != key.Namespace {
			continue
		}
		now := s.objects[key].now()
		if !after[key] && now.object != nil && now.version <= from {
			s.add(key, nil)
		}
	}
}

// truth is what the fake's tracker has of an object; nil: it has none.
type truth struct {
	known  bool
	object object.Object
}

// shows reports whether an object is so in a state, too. False if nobody knows.
func (t truth) shows(s state) bool { return t.known && s.shows(t.object) }

// learn makes what the tracker has the newest state, if it is not. Called with mu held.
func (m *mirror) learn(key object.Key, t truth) state {
	now := m.objects[key].now()
	if t.shows(now) {
		return now
	}
	now = m.add(key, t.object)
	if t.object != nil {
		m.had[key] = true
	}
	m.passed(key)
	return now
}

// check compares the own writes whose events have not come in time with what the tracker has. A
// reactor has answered them and stored nothing, or no watch follows the fake.
func (m *mirror) check() {
	mu := &m.server.mu
	mu.Lock()
	due := make(map[object.Key]int64)
	for key := range m.unshown {
		if now := m.objects[key].now(); now.written.IsZero() || time.Since(now.written) >= hold {
			due[key] = now.version
			delete(m.unshown, key)
		}
	}
	mu.Unlock()
	for key, version := range due {
		m.checkOne(key, version)
	}
}

func (m *mirror) checkOne(key object.Key, version int64) {
	truth := m.ask(key)
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	now := m.objects[key].now()
	if !truth.known || now.version != version || now.written.IsZero() {
		return
	}
	if learnt := m.learn(key, truth); learnt.version > version {
		m.checked = learnt.version
	}
}

// outdated reports whether a check has found something that is newer than a version.
func (m *mirror) outdated(version int64) bool {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	return m.checked > version
}

// These are the parts of a tracker that are used. Its own interface is in client-go/testing, which
// no program should link.
type (
	lister interface {
		List(
			r schema.GroupVersionResource, kind schema.GroupVersionKind, namespace string, o ...metav1.ListOptions,
		) (runtime.Object, error)
	}
	getter interface {
		Get(
			r schema.GroupVersionResource, namespace, name string, o ...metav1.GetOptions,
		) (runtime.Object, error)
	}
)

// tracker is the fake's tracker; nil if it has none.
func (s *Server) tracker() any {
	method := reflect.ValueOf(s.client).MethodByName("Tracker")
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return nil
	}
	return method.Call(nil)[0].Interface()
}

// ask asks the tracker, which is no action of the fake. Called without mu.
func (m *mirror) ask(key object.Key) truth {
	tracker, ok := m.server.tracker().(getter)
	if !ok {
		return truth{}
	}
	got, err := tracker.Get(m.of, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return truth{known: true}
	}
	u, ok := got.(*unstructured.Unstructured)
	if err != nil || !ok {
		return truth{}
	}
	return truth{true, u}
}

// tracked returns what the fake's tracker has; nil if it has no tracker, or that does not tell.
func (s *view) tracked() map[object.Key]bool {
	tracker, ok := s.server.tracker().(lister)
	if !ok {
		return nil
	}
	list, err := tracker.List(s.of.GroupVersionResource, s.of.Kind, s.namespace)
	if err != nil {
		return nil
	}
	keys := make(map[object.Key]bool)
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if m, err := meta.Accessor(item); err == nil {
			keys[object.Key{Namespace: m.GetNamespace(), Name: m.GetName()}] = true
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return keys
}
