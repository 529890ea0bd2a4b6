package streamset

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// Lookup returns the newest version of one object that the streams of exactly this resource
// (group and version too) have shown, in any form that has the part. Own writes are in the answer
// (G4), and no request is made. The object is shared: nobody writes to it.
//
// known is false where the streams cannot tell, also where a stream that has too little of its
// objects has shown a newer version: then only the server can say. A known object that is nil
// does not exist at the version that a stream without selectors has reached.
func (s *Set) Lookup(r object.Resource, key object.Key, part intake.Part) (o object.Object, known bool) {
	if !r.Namespaced {
		key.Namespace = ""
	}
	if object.Ambiguous(key) {
		return nil, false // streams from JSON may hold another object of that name
	}
	var absent bool          // a stream without selectors shows that there is none
	var as string            // at this version
	var newest object.Object // in any form
	for _, st := range s.serving(r) {
		if !st.Covers(key) {
			continue
		}
		e := st.Entry(key)
		switch {
		case e.GaveUp:
			return nil, false // it may have shown a newer version
		case e.Shown != nil:
			newest = object.Newer(newest, e.Shown)
			if object.Fault(e.Shown) == nil && st.HoldsPart(part) {
				o = object.Newer(o, e.Shown)
			}
		case e.Listed && st.Whole():
			absent, as = true, coherence.Newest(as, e.ShownRV)
		}
	}
	switch {
	case newest == nil:
		return nil, absent
	case coherence.Comparable(as) && !coherence.Newer(newest.GetResourceVersion(), as):
		return nil, true // a stream that has come further does not have it any more
	case o == nil || coherence.Newer(newest.GetResourceVersion(), o.GetResourceVersion()):
		return nil, false
	}
	return object.Bare(o), true
}

// List returns the objects in a namespace ("" for all) that the selector selects, from a stream
// that has all of them with at least that part of each. ok is false if there is no such stream,
// or if one of its objects did not decode: then nobody knows whether it is selected. The objects
// are shared, in no particular order. It takes time in the number of objects of the stream.
func (s *Set) List(r object.Resource, namespace string, selector labels.Selector, part intake.Part) (found []object.Object, ok bool) {
	for _, st := range s.serving(r) {
		if st.Key.Namespace != "" && st.Key.Namespace != namespace || !st.Whole() || !st.HoldsPart(part) {
			continue
		}
		var all []audience.Change
		all, ok = st.Everything()
		for _, c := range all {
			if o := object.Bare(c.Object); namespace == "" || o.GetNamespace() == namespace {
				found, ok = append(found, o), ok && object.Fault(o) == nil
			}
		}
		if ok {
			break
		}
		found = nil
	}
	selected := found[:0]
	for _, o := range found {
		if selector.Matches(labels.Set(o.GetLabels())) {
			selected = append(selected, o)
		}
	}
	return selected, ok
}

// Holds reports whether the object of that UID is known to some stream of the resource.
func (s *Set) Holds(r object.Resource, key object.Key, uid types.UID) bool {
	o, known := s.Lookup(r, key, intake.Version)
	return known && o != nil && o.GetUID() == uid
}

// serving returns the streams of exactly this resource, as it is served now.
func (s *Set) serving(r object.Resource) (found []*stream.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.over(r.Storage) {
		if st.Resource.Serves(r) {
			found = append(found, st)
		}
	}
	return found
}

// Newest returns an object as the streams of exactly this resource (group and version too) show it
// in a form for which has is true: from an own write's answer or from a watch. It is nil where no
// stream shows it so, or where another one shows a newer version. It is shared: nobody writes to
// it. It is nil, too, where a stream without selectors has come further and has none, or has given
// up own writes.
//
// An untyped object ([object.IsWhole]) is as the server had it at that version, and any other has
// what its form has. Streams that hold less than their form has (a transform, some fields of a Go
// type) do not count: a write that starts from such an object would remove what it has not read.
func (s *Set) Newest(r object.Resource, key object.Key, has func(object.Object) bool) object.Object {
	if !r.Namespaced {
		key.Namespace = ""
	}
	if object.Ambiguous(key) {
		return nil // streams from JSON may hold another object of that name
	}
	var found, newest object.Object
	var absentRV string
	for _, st := range s.serving(r) {
		if !st.Covers(key) {
			continue
		}
		e := st.Entry(key)
		switch {
		case e.GaveUp:
			return nil
		case e.Shown == nil:
			if e.Listed && st.Whole() {
				absentRV = coherence.Newest(absentRV, e.ShownRV)
			}
			continue
		}
		newest = object.Newer(newest, e.Shown)
		if st.HoldsForm() && object.Fault(e.Shown) == nil && has(object.Bare(e.Shown)) {
			found = object.Newer(found, e.Shown)
		}
	}
	switch {
	case found == nil, coherence.Newer(newest.GetResourceVersion(), found.GetResourceVersion()):
		return nil
	case coherence.Comparable(absentRV) && !coherence.Newer(found.GetResourceVersion(), absentRV):
		return nil
	}
	return object.Bare(found)
}

// Partly returns in words what a stream of a resource holds of an object, if it holds only some
// fields of it, and not that at a path. It is empty if there is no such stream.
func (s *Set) Partly(r object.Resource, key object.Key, path ...string) string {
	if !r.Namespaced {
		key.Namespace = ""
	}
	for _, st := range s.serving(r) {
		if !st.Covers(key) {
			continue
		}
		if st.Keep != nil && !st.Keep.Holds(path...) {
			return st.Keep.String()
		}
		if p, projects := st.Key.Form.Projection(); projects && !project.Has(p.Into, path...) {
			return "the fields of " + p.Into.String()
		}
	}
	return ""
}
