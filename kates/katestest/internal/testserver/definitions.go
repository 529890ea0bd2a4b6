package testserver

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/rules"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// definitions are the custom kinds that are defined, by the names of their definitions. A kind
// stays the same as long as its definition does, so that its watches go on.
type definitions struct {
	mu     sync.Mutex
	byName map[string]definition
}

// definition is the state of a definition, and the kinds that it defines: one for each version.
type definition struct {
	uid        types.UID
	generation int64
	kinds      []*kinds.Kind
}

// kindOf is the kind in whose version the objects of a storage are stored; nil if there is none.
func (s *Server) kindOf(storage string) *kinds.Kind {
	if all := s.kinds().Stored(storage); len(all) > 0 {
		if k := all[0]; k.Custom == nil || k.Custom.Stored == nil {
			return k
		}
	}
	s.custom.mu.Lock()
	defer s.custom.mu.Unlock()
	for _, k := range s.custom.byName[storage].kinds {
		return k.Custom.Stored
	}
	return nil
}

// define makes the set of kinds anew, after a definition has changed.
func (s *Server) define() error {
	s.custom.mu.Lock()
	defer s.custom.mu.Unlock()
	stored, _, err := s.store.List(definitionsStored, "", 0)
	if err != nil {
		return err
	}
	all, now := slices.Clone(s.builtIn), map[string]definition{}
	for _, c := range stored {
		o := &unstructured.Unstructured{Object: c.New.Content}
		d := s.custom.byName[c.Key.Name]
		if d.uid != o.GetUID() || d.generation != o.GetGeneration() {
			d = definition{uid: o.GetUID(), generation: o.GetGeneration()}
			if d.kinds, err = kinds.Define(o.Object); err != nil {
				return err
			}
		}
		now[c.Key.Name] = d
		for _, k := range d.kinds {
			if k.Custom.Served {
				all = append(all, k)
			}
		}
	}
	s.custom.byName = now
	s.serve(kinds.NewSet(all...))
	return nil
}

// establish brings the status of a definition up to date. A real server does so a moment after the
// write; here the kind is served when the write is answered.
func (s *Server) establish(q *request) error {
	_, err := s.store.Write(q.key(), func(old store.Object, _ int64) (map[string]any, bool, error) {
		if old.Content == nil {
			return nil, false, nil
		}
		next := runtime.DeepCopyJSON(old.Content)
		if rules.Establish(next, time.Now()); same(next, old.Content) {
			return nil, false, nil
		}
		next, err := s.managers.Update(q.kind, "status", old.Content, next, "kube-apiserver")
		return next, true, err
	})
	return err
}

// afterEachWrite runs a task after each write, and again while there is something to do for it.
func (s *Server) afterEachWrite(task func() (busy bool)) {
	for {
		_, more := s.store.Newest()
		for task() {
			if s.ctx.Err() != nil {
				return
			}
		}
		select {
		case <-more:
		case <-s.ctx.Done():
			return
		}
	}
}

// undefineAll deletes the objects of the definitions that are deleted. That is the server's own
// task, not one of its controllers.
func (s *Server) undefineAll() (busy bool) {
	definitions, _, err := s.store.List(definitionsStored, "", 0)
	if err != nil {
		return false
	}
	for _, d := range definitions {
		o := &unstructured.Unstructured{Object: d.New.Content}
		if o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), rules.Cleanup) {
			busy = s.undefine(o) || busy
		}
	}
	return busy
}

// undefine deletes the objects of a kind whose definition is deleted, and then lets that go.
func (s *Server) undefine(definition *unstructured.Unstructured) (busy bool) {
	defined := &request{kind: s.kindOf(definitionsStored), name: definition.GetName()}
	if s.establish(defined) != nil { // it says that the deletion is in progress
		return false
	}
	k := s.kindOf(definition.GetName())
	objects, _, err := s.store.List(definition.GetName(), "", 0)
	if err != nil {
		return false
	}
	for _, c := range objects {
		o := &unstructured.Unstructured{Object: c.New.Content}
		if k != nil && o.GetDeletionTimestamp() == nil {
			busy = s.drop(item{k, c.Key, o, c.New.RV}, metav1.DeletePropagationBackground) || busy
		}
	}
	if len(objects) > 0 && k != nil {
		return busy
	}
	done := s.amend(item{kind: defined.kind, key: defined.key(), object: definition},
		func(o *unstructured.Unstructured) { without(o, rules.Cleanup) })
	_ = s.define() // the definitions that are left were fine before
	return done
}
