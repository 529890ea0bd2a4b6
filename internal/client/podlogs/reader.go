package podlogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kates-go/kates/internal/loops/attempts"
)

// Source is the server that has the logs.
type Source interface {
	// Log opens a log.
	Log(context.Context, types.NamespacedName, *corev1.PodLogOptions) (io.ReadCloser, error)
	// Pod reads a pod.
	Pod(context.Context, types.NamespacedName) (*corev1.Pod, error)
}

// Event is a line of a log, a part of a long line, or its end.
type Event struct {
	Timestamp string
	Output    string // with its end of line
	Closed    bool   // nothing comes after it
	Err       error  // why, nil where the log has ended
}

// Config is what readers have in common.
type Config struct {
	Source  Source
	Clock   clock.WithDelayedExecution
	Logger  logr.Logger
	Backoff attempts.Backoff
	// Idle is how long a connection may be silent.
	Idle time.Duration
}

// mostFailures is how often in a row a log that does not grow any more is tried in vain.
const mostFailures = 10

// Reader reads the log of one container.
type Reader struct {
	Config
	// Pod names the pod. Another one of its name is not read.
	Pod types.NamespacedName
	UID types.UID
	// Options are the caller's, with a container. Timestamps are asked for in any case.
	Options corev1.PodLogOptions
	// Give takes what was read. It blocks as long as it likes. An error, which is the context's,
	// ends the reader.
	Give func(context.Context, Event) error

	given *given
	pace  pace
	began time.Time // when the first stream was opened; zero: none was
	empty bool      // a stream has shown that the log began without a line
	size  int64     // of what was given, with timestamps
	tail  string    // the line without an end that the last stream has ended with

	seen     bool  // a look has shown the pod
	restarts int32 // of which all streams before are read
}

// Run reads the log until it has ended, and gives an Event that says so last. If ctx ends, it
// returns without one.
func (r *Reader) Run(ctx context.Context) {
	r.given = newGiven()
	r.pace = pace{Backoff: r.Backoff, clock: r.Clock, log: r.Logger}
	read := r.readOnce
	if r.Options.Follow && !r.Options.Previous { // what is over does not grow
		read = r.follow
	}
	if err := read(ctx); ctx.Err() == nil {
		_ = r.Give(ctx, Event{Closed: true, Err: err}) // its error is that of ctx
	}
}

// readOnce reads what there is, and resumes where the connection was cut.
func (r *Reader) readOnce(ctx context.Context) error {
	for unconfirmed := 0; ; {
		_, err := r.read(ctx, r.next())
		switch {
		case err == nil && r.tail != "" && unconfirmed < mostFailures:
			unconfirmed++
		case err == nil || ctx.Err() != nil || definite(err) || r.pace.failed >= mostFailures:
			return err
		default:
			r.pace.wait(ctx, err)
		}
	}
}

// follow reads on until the container has ended, whatever happens on the way.
func (r *Reader) follow(ctx context.Context) error {
	var t try
	for ctx.Err() == nil {
		s, err := r.open(ctx, r.next())
		t = t.after(r.look(ctx))
		if t.looked == nil && t.now.state != gone && !r.seen {
			r.seen, r.restarts = true, t.now.restarts
		}
		if t.err = err; err == nil {
			t.new, t.err = r.readOn(ctx, s, t)
		}
		if over, err := r.over(t); over || ctx.Err() != nil {
			return err
		}
		switch {
		case t.err == nil && t.now.state == ended: // once more, to be certain
			r.pace.worked()
		case errors.Is(t.err, errIdle):
			r.pace.worked()
		case t.new == 0 || t.err != nil:
			r.pace.wait(ctx, t.err)
		}
	}
	return ctx.Err()
}

// try is an attempt to read on.
type try struct {
	before, now sight // the looks before and after the stream was opened
	looked      error // of the second one
	new         int   // how many lines came
	err         error
	refused     int // tries in a row in which the server has refused a log that there should be
}

// after is the try that follows t, with the result of its look.
func (t try) after(now sight, err error) try {
	next := try{before: t.now, now: now, looked: err}
	if err != nil {
		next.now = t.now
	}
	if t.denied() {
		next.refused = t.refused + 1
	}
	return next
}

// denied reports whether the server does not want to show the log, and says so of a container that
// has begun.
func (t try) denied() bool {
	begun := t.before.state != waiting && t.now.state != waiting
	return t.err != nil && t.looked == nil && begun && definite(t.err) && !apierrors.IsNotFound(t.err)
}

// over reports whether the log has ended, or cannot be read. The error says why, if it has not
// ended.
func (r *Reader) over(t try) (bool, error) {
	switch {
	case r.full():
		return true, nil
	case t.now.state == gone && !r.seen:
		if t.err == nil && t.new == 0 {
			t.err = apierrors.NewNotFound(corev1.Resource("pods"), r.Pod.Name)
		}
		return true, t.err
	case t.now.state == gone:
		return true, nil
	case t.looked != nil && definite(t.looked):
		return true, fmt.Errorf("see whether the container has ended: %w", t.looked)
	case t.err == nil && t.new == 0 && t.before.state == ended:
		return true, nil
	case t.denied() && t.refused > 0:
		return true, t.err
	case t.err != nil && t.looked == nil && t.before.state == ended && r.pace.failed >= mostFailures:
		return true, t.err
	}
	return false, nil
}

// readOn reads a stream that was opened between two looks. Before it, it reads what a container
// that has been started again meanwhile had written last.
func (r *Reader) readOn(ctx context.Context, s *stream, t try) (n int, err error) {
	defer s.close()
	switch {
	case t.now.replaced:
		return 0, nil // it may be the log of the other pod
	case t.looked != nil && !definite(t.looked):
		return 0, t.looked // it may be the log of another life of the container
	}
	if t.now.restarts > r.restarts {
		if n, err = r.readPrevious(ctx); err != nil && !definite(err) {
			return n, err
		}
		r.restarts = t.now.restarts // if it was refused, it is there no longer
	}
	s.grows = t.before.state != ended
	more, err := r.consume(ctx, s)
	return n + more, err
}

// readPrevious reads what the container wrote before it was started again, until nothing new
// comes.
func (r *Reader) readPrevious(ctx context.Context) (n int, err error) {
	for more := 1; more > 0 && err == nil; n += more {
		o := r.next()
		o.Follow, o.Previous = false, true
		more, err = r.read(ctx, o)
	}
	return n, err
}

// look reads the pod.
func (r *Reader) look(ctx context.Context) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Idle)
	defer cancel()
	pod, err := r.Source.Pod(ctx, r.Pod)
	switch {
	case apierrors.IsNotFound(err):
		return sight{state: gone}, nil
	case err != nil:
		return sight{}, err
	case r.UID != "" && pod.UID != r.UID:
		return sight{state: gone, replaced: true}, nil
	}
	return see(pod, r.Options.Container), nil
}

// next returns the options of a request for what was not given yet.
func (r *Reader) next() *corev1.PodLogOptions {
	o := r.Options.DeepCopy()
	o.Timestamps = true
	if r.began.IsZero() {
		return o
	}
	o.LimitBytes = nil // the server would count what it repeats
	passed := int64(r.Clock.Since(r.began)/time.Second) + 1
	since, ok := r.given.since()
	switch {
	case ok:
		o.SinceTime, o.SinceSeconds, o.TailLines = &metav1.Time{Time: since}, nil, nil
	case o.TailLines != nil && (*o.TailLines == 0 || r.empty):
		o.SinceTime, o.SinceSeconds, o.TailLines = nil, &passed, nil
	case o.SinceSeconds != nil:
		passed += *o.SinceSeconds
		o.SinceSeconds = &passed
	}
	return o
}

func (r *Reader) open(ctx context.Context, o *corev1.PodLogOptions) (*stream, error) {
	at := r.Clock.Now()
	s, err := open(ctx, r.Clock, r.Idle, func(ctx context.Context) (io.ReadCloser, error) {
		return r.Source.Log(ctx, r.Pod, o)
	})
	if err == nil && r.began.IsZero() {
		r.began = at
	}
	return s, err
}

// read opens a log that does not grow, and reads it to its end.
func (r *Reader) read(ctx context.Context, o *corev1.PodLogOptions) (n int, err error) {
	s, err := r.open(ctx, o)
	if err != nil {
		return 0, err
	}
	defer s.close()
	return r.consume(ctx, s)
}

// consume gives what is new in a stream, and returns how much that was. The error is nil where the
// stream has ended in good order, or nothing more is wanted.
func (r *Reader) consume(ctx context.Context, s *stream) (n int, err error) {
	known, in := r.given.replay(), newPieces(s)
	for !r.full() {
		p, err := in.next()
		l := r.given.line(p)
		fresh := len(p.raw) > 0 && (p.whole || errors.Is(err, io.EOF)) && !known.repeats(l)
		if fresh && !p.whole {
			if fresh = r.ends(s, p); !fresh && !s.grows {
				n++ // another stream tells
			}
		}
		if fresh {
			if err := r.give(ctx, p); err != nil {
				return n, err
			}
			r.given.add(l)
			r.pace.worked()
			n++
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, errIdle) {
			return n, err
		}
		r.empty = r.empty || r.given.newest.IsZero()
		if errors.Is(err, errIdle) {
			return n, err
		}
		return n, nil
	}
	return n, nil
}

// give hands a piece to the caller, up to the limit.
func (r *Reader) give(ctx context.Context, p piece) error {
	text := p.text
	r.size += int64(len(p.raw))
	if limit := r.Options.LimitBytes; limit != nil && r.size > *limit {
		text = text[:max(0, int64(len(text))-(r.size-*limit))]
	}
	return r.Give(ctx, Event{Timestamp: p.stamp, Output: string(text)})
}

// full reports whether as much was given as the caller wants.
func (r *Reader) full() bool {
	return r.Options.LimitBytes != nil && r.size >= *r.Options.LimitBytes
}

// ends reports whether a line without an end, at the end of a stream, is the last of the log: two
// streams have ended with it, or nothing more is wanted. Else it comes again.
func (r *Reader) ends(s *stream, p piece) bool {
	limit, again := r.Options.LimitBytes, r.tail == string(p.raw)
	r.tail = ""
	switch {
	case limit != nil && r.size+int64(len(p.raw)) >= *limit:
		return true
	case s.grows, p.at.IsZero(): // a cut timestamp, for example
		return false
	case !again:
		r.tail = string(p.raw)
	}
	return again
}

// definite reports whether an error is an answer that another try does not change.
func definite(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 &&
		code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}
