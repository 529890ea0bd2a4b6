package stream

import "github.com/kates-go/kates/coherence"

// Newest returns the newest version of an object that the streams of exactly this resource (group
// and version too) show: from an own write's answer or from a watch. It is nil where no stream
// shows the object; there may be one all the same. It is shared: nobody writes to it.
//
// With [Whole] it is the whole object, as the server had it at that version, and with [Typed] the
// fields that the Go type has. Streams that hold less than the server sends (a transform,
// metadata alone) do not count: a write that starts from such an object would remove what it has
// not read.
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

// latest returns the object that the stream shows for key. It is nil where the stream may have
// shown a newer one, or where the object did not decode.
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
