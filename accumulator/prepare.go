package accumulator

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// Transform changes an object before a stream holds it. It gets each version of an object
// once, fresh and nobody else's: it may write to it, but not to what says which object and version
// it is (apiVersion, kind, namespace, name, uid, resourceVersion). It is called without locks, by the
// goroutine that lists and watches and by those that write, at the same time. Where it
// returns an error or panics, that one object is left out as [Invalid], until its next version.
//
// What a query selects is judged before.
type Transform func(Object) error

// prepare makes of an object from the server what the stream holds: in the stream's form, and
// transformed. The object is fresh: nobody else has it. Called without locks.
func (s *stream) prepare(o Object) Object {
	if s.transform == nil && s.key.form == Whole {
		return o
	}
	held, same := s.has(o)
	if same {
		return held // once per version
	}
	return s.made(o, held)
}

// made is prepare of a version that the stream does not hold, or not for certain. It may hold another one, before.
func (s *stream) made(o, before Object) Object {
	switch {
	case rejection(o) != nil:
		return o
	case s.transform == nil && s.is(o):
		s.compact(o, before)
		return o
	}
	id := identityOf(o, s.resource)
	o, err := s.inForm(o)
	if err != nil {
		return reject(id, err)
	}
	s.compact(o, before)
	if s.transform == nil {
		return o
	}
	if err := transformed(s.transform, o); err != nil {
		return reject(id, err)
	}
	if changed := identityOf(o, s.resource); changed != id {
		return reject(id, fmt.Errorf("the transform changed what says which object it is: %v, before %v", changed, id))
	}
	return o
}

// prepareWrite is prepare for what a write of this client came to. Its object is shared with other
// streams, and with the caller.
func (s *stream) prepareWrite(w coherence.Write) coherence.Write {
	o, ok := w.Object.(Object)
	if !ok {
		return w
	}
	if s.transform != nil && s.key.form != Metadata && rejection(o) == nil {
		o = o.DeepCopyObject().(Object)
	}
	w.Object = s.prepare(o)
	return w
}

// has returns what the stream holds of an object, nil if nothing, and whether it is of this very version.
func (s *stream) has(o Object) (held Object, same bool) {
	version := o.GetResourceVersion()
	comparable := !s.streams.config.ByContent && coherence.Comparable(version)
	key := object.KeyOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	shown, stored := s.read(key), s.store[key]
	for _, held := range []Object{shown, stored} {
		if comparable && held != nil && held.GetUID() == o.GetUID() && held.GetResourceVersion() == version {
			return held, true
		}
	}
	return cmp.Or(shown, stored), false
}

// transformed runs the user's function.
func transformed(f Transform, o Object) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{what: "the transform panicked", value: p, stack: debug.Stack()}
		}
	}()
	if err := f(o); err != nil {
		return fmt.Errorf("transform: %w", err)
	}
	return nil
}

// panicError is a panic of a user's function.
type panicError struct {
	what  string
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("%s: %v\n%s", p.what, p.value, p.stack) }

// identity says which object and version something is.
type identity struct{ apiVersion, kind, namespace, name, uid, version string }

func identityOf(o Object, r Resource) identity {
	gvk := o.GetObjectKind().GroupVersionKind()
	if _, short := o.(*metav1.PartialObjectMetadata); short {
		gvk = r.Kind
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return identity{apiVersion, kind, o.GetNamespace(), o.GetName(), string(o.GetUID()), o.GetResourceVersion()}
}

// Undecoded is what a source delivers in place of an object of a resource that does not decode: what says which object
// and version it is, and why. It is left out as [Invalid] until its next version, and counts as ever for everything else.
func Undecoded(r Resource, key Key, uid types.UID, version string, err error) Object {
	apiVersion, kind := r.Kind.ToAPIVersionAndKind()
	return reject(identity{apiVersion, kind, key.Namespace, key.Name, string(uid), version}, err)
}

// Fault is why an object is left out: it did not decode, or could not be prepared. It is nil for all others.
func Fault(o Object) error { return rejection(o) }

// rejected stands in the store for an object that could not be decoded or prepared. It has what
// says which object it is, and nothing else.
type rejected struct {
	metav1.PartialObjectMetadata
	err  error
	text string // of err; the same for the same error, wherever it came up
}

func reject(id identity, err error) *rejected {
	r := &rejected{err: err, text: err.Error()}
	var p *panicError
	if errors.As(err, &p) {
		r.text = fmt.Sprint(p.what, p.value)
	}
	r.APIVersion, r.Kind = id.apiVersion, id.kind
	r.Namespace, r.Name, r.ResourceVersion = id.namespace, id.name, id.version
	r.UID = types.UID(id.uid)
	return r
}

// rejection is why an object is left out, nil if it is not.
func rejection(o Object) error {
	if r, ok := o.(*rejected); ok {
		return r.err
	}
	return nil
}

// pointerOf tells function values apart: two are the same if they have the same code and,
// for closures, the same variables.
func pointerOf[F any](f F) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&f)) }
