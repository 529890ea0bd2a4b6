package events

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/kates"
)

// The types of events.
const (
	Normal  = corev1.EventTypeNormal
	Warning = corev1.EventTypeWarning
)

// Limits of the API.
const (
	noteMost = 1024 // bytes of a note
	wordMost = 128  // bytes of a reason and of an action
)

// Recorder records events. It is client-go's events.EventRecorder. In tests of a program that
// takes that interface, events.NewFakeRecorder can replace it.
//
// Events are best effort, as the API says. They are sent in the background. While the server
// cannot be reached, sending is tried some twelve times. An event is dropped when the server
// refuses it, when a thousand are waiting, or when the recorder ends. Equal events are
// aggregated; equal means one object, type, reason and action, whatever the note. The first makes
// an object, the second turns it into a series, and further ones within six minutes of each other
// only count. The count is written when the series has ended, and every half an hour.
//
// A Recorder is safe for concurrent use.
type Recorder struct {
	recorder clientevents.EventRecorderLogger
	logger   klog.Logger
	sink     *sink
	cancel   context.CancelFunc
	ended    chan struct{}
}

var _ clientevents.EventRecorder = (*Recorder)(nil)

// NewRecorder returns a recorder for the named controller (example.com/dns). The name is a part
// of each event. The recorder needs the rights to create and patch events in the group
// events.k8s.io. The client's scheme knows the kind of objects that do not carry it. It runs until
// ctx ends, or until Close. Then nothing is left running, and unsent events are dropped. Problems
// are logged by the logger of ctx (klog.NewContext, logr.NewContext), otherwise by klog's.
func NewRecorder(ctx context.Context, client *kates.Client, controller string) (*Recorder, error) {
	problems := validation.IsQualifiedName(controller)
	switch {
	case client == nil:
		return nil, errors.New("record events: the client is nil")
	case len(problems) > 0:
		return nil, fmt.Errorf("record events: the controller %q: %s", controller, strings.Join(problems, "; "))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("record events: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	to := &sink{client: client}
	broadcaster := clientevents.NewBroadcaster(to)
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		cancel()
		broadcaster.Shutdown()
		return nil, fmt.Errorf("record events: %w", err)
	}
	logger := klog.FromContext(ctx)
	r := &Recorder{
		recorder: broadcaster.NewRecorder(client.Scheme(), controller).WithLogger(logger),
		logger:   logger, sink: to, cancel: cancel, ended: make(chan struct{}),
	}
	context.AfterFunc(ctx, func() { // ends with ctx or on Close
		broadcaster.Shutdown()
		to.wait()
		close(r.ended)
	})
	return r, nil
}

// Eventf records an event about an object. related is another object that it involves, or nil.
// The event's type is [Normal] or [Warning]; reason and action are short CamelCase words for
// programs to read. The note, made from a format and its arguments, is for people. It is cut at
// 1024 bytes. Put nothing secret into it. Eventf returns at once and reports no error: what
// cannot be recorded is logged. After the end it does nothing.
//
// The object may be of any kind, typed or not. Events of objects without a namespace are in
// "default". The object is not kept.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	problem := ""
	switch {
	case isNil(regarding):
		problem = "there is no object"
	case eventType != Normal && eventType != Warning:
		problem = "its type is neither Normal nor Warning"
	case reason == "" || len(reason) > wordMost:
		problem = "its reason is empty or longer than 128 bytes"
	case action == "" || len(action) > wordMost:
		problem = "its action is empty or longer than 128 bytes"
	}
	if problem != "" {
		r.logger.Error(errors.New(problem), "cannot record an event", "type", eventType, "reason", reason, "action", action)
		return
	}
	if isNil(related) {
		related = nil
	}
	r.recorder.Eventf(regarding, related, eventType, reason, action, "%s", clip(fmt.Sprintf(note, args...)))
}

// isNil reports whether there is no object, or a nil pointer to one.
func isNil(o runtime.Object) bool {
	v := reflect.ValueOf(o)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// clip cuts a note between two characters.
func clip(note string) string {
	if len(note) <= noteMost {
		return note
	}
	const more = "…"
	end := noteMost - len(more)
	for end > 0 && !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + more
}

// Close ends the recorder. It cancels the requests under way and waits for them.
func (r *Recorder) Close() {
	r.cancel()
	<-r.ended
}

// sink sends events with a client.
type sink struct {
	client *kates.Client
	mu     lockorder.Mutex[lockorder.EventSink]
	over   bool
	busy   sync.WaitGroup
}

var errOver = errors.New("the recorder has ended")

// begin starts a request, unless the recorder has ended.
func (s *sink) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errOver
	}
	s.busy.Add(1)
	return nil
}

func (s *sink) wait() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.busy.Wait()
}

func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.send(event, func(into *eventsv1.Event) error { return s.client.Create(ctx, event, into) })
}

func (s *sink) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.send(event, func(into *eventsv1.Event) error { return s.client.Update(ctx, event, into) })
}

// Patch gets a strategic merge patch that sets the series. As a JSON merge patch it has the same
// meaning, and a fake supports that.
func (s *sink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.send(event, func(into *eventsv1.Event) error { return s.client.Patch(ctx, event, kates.MergePatchType, data, into) })
}

func (s *sink) send(event *eventsv1.Event, send func(*eventsv1.Event) error) (*eventsv1.Event, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.busy.Done()
	got := &eventsv1.Event{}
	if err := send(got); err != nil {
		return nil, plain(err)
	}
	return got, nil
}

// plain returns the server's own error. client-go decides by its Go type whether to try again.
func plain(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return err
}
