package stream

import "github.com/kates-go/kates/coherence"

// Newest returns the newest version of an object that the streams of exactly this resource (group
// and version too) know: an own write's answer, or what a watch has brought. It is nil where no
// stream shows the object, which does not mean that there is none. It is shared: nobody writes to it.
//
// With [Whole] it is the whole object, as the server had it at that version. A stream that holds less than the server
// sends (a transform, metadata alone) has no part in it: who starts a write from such an
// object takes away what he has never seen. With [Typed] it is what the Go type knows of it.
func (s *Set) Newest(r Resource, key Key, form Form) Object {
	if !r.Namespaced {
		key.Namespace = ""
	}
	s.mu.Lock()
	streams := s.over(r.Storage)
	s.mu.Unlock()
	var newest Object
	for _, st := range streams {
		if st.resource.GroupVersionResource != r.GroupVersionResource || !st.covers(key) || st.key.form != form || st.transform != nil {
			continue
		}
		o := st.latest(key)
		if o != nil && (newest == nil || coherence.Newer(o.GetResourceVersion(), newest.GetResourceVersion())) {
			newest = o
		}
	}
	return newest
}

// latest is what the stream shows of key, nil where that may be older than what it has shown, or is
// not an object that decoded.
func (s *stream) latest(key Key) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own.givenUp {
		return nil
	}
	o := s.read(key)
	if Fault(o) != nil {
		return nil
	}
	return o
}
