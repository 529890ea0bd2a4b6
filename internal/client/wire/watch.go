package wire

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// objectDecoder makes the object of an event. It refuses another kind than that of the resource.
// It is safe for concurrent use.
type objectDecoder func(e frames.Event) (runtime.Object, error)

// reading is an open watch. One goroutine reads it; Stop ends that. client-go's own watch keeps
// neither the cause of its end nor a bound on what it reads.
type reading struct {
	events  *frames.Events
	backlog *backlog
	result  chan watch.Event
	done    chan struct{}
	stop    func()
}

// read reads the answer to a watch. No event may have more bytes than the bound. What cannot be
// read ends the watch with an error event, whose object is a [source.Unreadable].
func (s *restSource) read(body io.ReadCloser, decode objectDecoder) watch.Interface {
	r := &reading{result: make(chan watch.Event), done: make(chan struct{})}
	r.backlog = newBacklog(s.helpers, s.originals.ofEvent(decode).event, r.hand)
	r.events = frames.Watch(&caughtUp{body, r.backlog.flush}, s.maxObjectBytes)
	r.stop = sync.OnceFunc(func() {
		close(r.done)
		_ = body.Close() // its error says nothing about what was read
	})
	go r.run()
	return r
}

func (r *reading) ResultChan() <-chan watch.Event { return r.result }

// Stop ends the watch. It may be called more than once.
func (r *reading) Stop() { r.stop() }

// run hands out the events until the watch ends.
func (r *reading) run() {
	defer close(r.result)
	defer r.stop()
	defer r.backlog.close()
	for {
		e, err := r.events.Next()
		if err == nil {
			err = r.backlog.add(e, r.events.Buffered())
		} else if !errors.Is(err, errOver) {
			err = r.broken(err)
		}
		if err != nil {
			return
		}
	}
}

// broken hands out the events before the end of the answer, and the error that ended it.
func (r *reading) broken(err error) error {
	if r.plain(err) {
		return errors.Join(r.backlog.flush(), errOver)
	}
	if r.events.Inside() {
		err = fmt.Errorf("in the middle of an event: %w", err)
	}
	if over := r.backlog.flush(); over != nil {
		return over
	}
	return r.hand(watch.Event{}, err)
}

// errOver is the end of a watch: nothing is handed out any more.
var errOver = errors.New("the watch is over")

// hand hands out an event, or an error, which ends the watch.
func (r *reading) hand(e watch.Event, err error) error {
	if err != nil {
		e = watch.Event{Type: watch.Error, Object: &source.Unreadable{Err: err}}
	}
	select {
	case r.result <- e:
	case <-r.done:
		return errOver
	}
	if err != nil {
		return errOver
	}
	return nil
}

// plain reports whether an error is one with which a watch ends between two events. Connections do
// so all the time.
func (r *reading) plain(err error) bool {
	if r.events.Inside() {
		return false
	}
	return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

// event decodes an event.
func (decode objectDecoder) event(e frames.Event) (watch.Event, error) {
	var o runtime.Object
	var err error
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		o, err = decode(e)
	case watch.Bookmark:
		o, err = position(e.Object, e.Encoding)
	case watch.Error:
		o, err = failure(e)
	default:
		return watch.Event{}, fmt.Errorf("an event of the unknown type %q", plain.Clip(string(e.Type)))
	}
	if err != nil {
		return watch.Event{}, fmt.Errorf("%s event: %w", e.Type, err)
	}
	return watch.Event{Type: e.Type, Object: o}, nil
}

// position decodes a bookmark: its version and annotations. The rest of the object is empty, and
// need not suit the kind's type.
func position(raw []byte, e frames.Encoding) (runtime.Object, error) {
	var o metav1.PartialObjectMetadata
	return &o, decodeInto(&o, raw, e)
}

// failure decodes the object of an error event: a Status that tells of a failure.
func failure(e frames.Event) (runtime.Object, error) {
	s := &metav1.Status{}
	err := decodeInto(s, e.Object, e.Encoding)
	if k := cmp.Or(e.Kind, s.Kind); k != "" && k != "Status" {
		return nil, fmt.Errorf("its object is a %s, and no Status", plain.Clip(k))
	}
	if err != nil {
		return nil, fmt.Errorf("its object is no Status: %w", err)
	}
	if s.Status == metav1.StatusSuccess || s.Status == "" && s.Code == 0 && s.Reason == "" {
		return nil, errors.New("its object is no Status of a failure")
	}
	if s.Message = plain.Clip(s.Message); s.Message == "" {
		s.Message = fmt.Sprintf("an error without a message, of code %d and reason %q", s.Code, plain.Clip(string(s.Reason)))
	}
	return s, nil
}

// event makes an untyped object, by the rules for lists. A list may leave out the kind of its
// items, an event may not.
func (s *restSource) event(e frames.Event) (runtime.Object, error) {
	o, silent, err := s.decode(e.Object, e.Encoding)
	switch {
	case err != nil:
		return nil, err
	case silent:
		return nil, errors.New("there is no object in it, or one without a kind")
	}
	return o, nil
}

// ofKind returns an error if an object says that it is of another kind than the resource's.
func ofKind(r objects.Resource, is schema.GroupVersionKind) error {
	if is.Kind == "" || is == r.Kind {
		return nil
	}
	return &kindError{what: anObject, got: is, want: r.Kind}
}
