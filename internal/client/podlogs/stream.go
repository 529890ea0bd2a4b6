package podlogs

import (
	"context"
	"errors"
	"io"
	"time"

	"k8s.io/utils/clock"
)

var (
	// errIdle is the cause of the end of a stream that brought nothing for too long.
	errIdle = errors.New("the connection has brought nothing for too long")
	// errNoAnswer is the error of a request that was not answered.
	errNoAnswer = errors.New("the server has not answered in time")
)

// stream is one answer to a request for a log. It ends if nothing comes for a while: a connection
// may be dead without anybody being told. The time in which nobody reads does not count.
type stream struct {
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	timer  clock.Timer
	idle   time.Duration
	grows  bool // what it lacks comes with a later one
}

// open sends a request for a log. The answer must begin within the time that it may be silent.
func open(
	ctx context.Context, clock clock.WithDelayedExecution, idle time.Duration,
	request func(context.Context) (io.ReadCloser, error),
) (*stream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{ctx: ctx, cancel: cancel, idle: idle}
	s.timer = clock.AfterFunc(idle, func() { cancel(errIdle) })
	body, err := request(ctx)
	s.timer.Stop()
	if err != nil {
		defer cancel(nil)
		if context.Cause(ctx) == errIdle {
			err = errNoAnswer
		}
		return nil, err
	}
	s.body = body
	return s, nil
}

// Read is io.Reader's.
func (s *stream) Read(p []byte) (int, error) {
	s.timer.Reset(s.idle)
	n, err := s.body.Read(p)
	s.timer.Stop()
	return n, s.cause(err)
}

// cause is errIdle in place of the error that the end for that reason looks like.
func (s *stream) cause(err error) error {
	if err != nil && context.Cause(s.ctx) == errIdle {
		return errIdle
	}
	return err
}

func (s *stream) close() {
	s.timer.Stop()
	s.cancel(nil)
	_ = s.body.Close()
}
