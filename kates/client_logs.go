package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/podlogs"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/loops/attempts"
	objects "github.com/kates-go/kates/internal/object"
)

// ErrLogsNotSupported is returned by [Client.PodLogs] of a client that is made from a
// dynamic.Interface, such as client-go's fake: logs need a REST connection.
var ErrLogsNotSupported = errors.New("this client was made of a dynamic.Interface and cannot read logs")

// LogEvent is a line of a container's log, or the end of a log. See [Client.PodLogs].
type LogEvent struct {
	// PodID is the UID of the pod, and Container the name of its container.
	PodID     string
	Container string
	// Timestamp is when the line was written, as the server says it (RFC 3339), "" if it does not.
	Timestamp string
	// Output is the line, with its end of line if it has one. A line of more than a mebibyte comes
	// in several events, which have the same Timestamp.
	Output string
	// Closed says that this is the last event of the container. It has no Output.
	Closed bool
	// Error is why the log cannot be read any more. It is nil where the log has ended.
	Error error
}

// PodLogs sends the log of a pod to a channel: one event for each line, and for each container one
// event that is Closed. It returns at once. Many calls may share a channel:
//
//	events := make(chan kates.LogEvent)
//	for _, pod := range snap.Pods {
//		if err := client.PodLogs(ctx, pod, &kates.PodLogOptions{Follow: true}, events); err != nil {
//			return err
//		}
//	}
//	for event := range events {
//		fmt.Printf("%s %s: %s", event.Container, event.Timestamp, event.Output)
//	}
//
// It reads all containers of the pod (those of the object as given; if that has none or no UID, it
// asks the server), or the one that the options name. Nil options are the zero ones. The channel
// may have any size: a reader waits until there is room, and holds one line meanwhile. The channel
// is never closed.
//
// Each line comes once and in order, also if the connection is cut, or is silent for
// [Tuning].IdleTimeout: the log is then read on at the last line. While nothing new comes, the
// pauses grow to ten seconds. With Follow, a log goes on when its container is started again, and
// what the container had written before is read first. It has ended when the container has ended
// for good or the pod is gone, and all is read; a container that has not begun yet is awaited.
// This needs the right to get pods, beside the one to get pods/log. Without Follow, the log as it
// is has an end. The server keeps logs for a limited time, so lines may be missing after a long
// outage.
//
// An event with an Error is for what another try does not mend: the pod is not there, or the
// client has no right. When ctx ends or the client is closed, nothing more is sent, and no
// goroutine is left. A client without a REST connection returns [ErrLogsNotSupported].
//
// See https://kubernetes.io/docs/concepts/cluster-administration/logging/.
func (c *Client) PodLogs(
	ctx context.Context, pod *Pod, options *PodLogOptions, events chan<- LogEvent,
) error {
	return while("read the log of a pod", c.podLogs(ctx, pod, options, events))
}

func (c *Client) podLogs(
	ctx context.Context, pod *Pod, options *PodLogOptions, events chan<- LogEvent,
) error {
	switch {
	case c.core.connection.logs == nil:
		return ErrLogsNotSupported
	case pod == nil || events == nil:
		return errors.New("it needs a pod and a channel")
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if options == nil {
		options = &PodLogOptions{}
	}
	pod, err := c.withContainers(ctx, pod, options)
	if err != nil {
		return err
	}
	names := podlogs.Containers(pod)
	if options.Container != "" {
		names = []string{options.Container}
	}
	return c.core.readLogs(ctx, pod, names, options, events)
}

// withContainers returns the pod as given, or as the server has it if what was given does not tell
// enough.
func (c *Client) withContainers(ctx context.Context, pod *Pod, options *PodLogOptions) (*Pod, error) {
	at := types.NamespacedName{Namespace: cmp.Or(pod.Namespace, c.core.Namespace), Name: pod.Name}
	err := cmp.Or(core.Segment("name", at.Name), core.Segment("namespace", at.Namespace))
	if at.Name == "" {
		err = errors.New("it has no name")
	}
	if err == nil && options.Container != "" {
		err = core.Segment("container", options.Container)
	}
	if err != nil {
		return nil, err
	}
	if pod.UID != "" && pod.Namespace != "" && (options.Container != "" || len(pod.Spec.Containers) > 0) {
		return pod, nil
	}
	found, err := c.core.connection.logs.Pod(ctx, at)
	switch {
	case err != nil:
		return nil, err
	case pod.UID != "" && found.UID != pod.UID:
		return nil, apierrors.NewConflict(corev1.Resource("pods"), at.Name,
			fmt.Errorf("its UID is %s, not %s", found.UID, pod.UID))
	}
	return found, nil
}

// readLogs starts a reader for each container. They are a user of the client's streams, so Close
// ends them.
func (c *shared) readLogs(
	ctx context.Context, pod *Pod, names []string, options *PodLogOptions, events chan<- LogEvent,
) error {
	ctx, cancel := context.WithCancel(ctx)
	all := &logReaders{cancel: cancel, done: make(chan struct{})}
	if err := c.Streams.Enter(all); err != nil {
		cancel()
		return err
	}
	var running sync.WaitGroup
	for _, name := range names {
		o := options.DeepCopy()
		o.Container = name
		log := c.Log.WithValues("pod", objects.Path(pod.Namespace, pod.Name), "container", name)
		r := &podlogs.Reader{
			Config: podlogs.Config{
				Source: c.connection.logs, Clock: clock.RealClock{}, Logger: log, Backoff: logBackoff,
				Idle: c.Streams.Config().IdleTimeout,
			},
			Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
			UID: pod.UID, Options: *o, Give: give(events, string(pod.UID), name),
		}
		running.Go(func() { r.Run(ctx) })
	}
	go func() { // ends after the readers
		defer close(all.done)
		running.Wait()
		cancel()
		c.Streams.Leave(all)
	}()
	return nil
}

// logBackoff is how long a reader waits for more.
var logBackoff = attempts.Backoff{First: 100 * time.Millisecond, Most: 10 * time.Second}

// give returns a function that sends to a channel what is read of a container.
func give(
	events chan<- LogEvent, pod, container string,
) func(context.Context, podlogs.Event) error {
	return func(ctx context.Context, e podlogs.Event) error {
		event := LogEvent{
			PodID: pod, Container: container,
			Timestamp: e.Timestamp, Output: e.Output, Closed: e.Closed, Error: e.Err,
		}
		select {
		case events <- event:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// logReaders are the readers of one call of PodLogs.
type logReaders struct {
	cancel context.CancelFunc
	done   chan struct{} // closed after the last one
}

// Close ends the readers.
func (l *logReaders) Close() {
	l.cancel()
	<-l.done
}

// Shares is false: lines are nobody's.
func (*logReaders) Shares(any) bool { return false }

// logSource asks an API server.
type logSource struct {
	*wire.Server
	dynamic dynamic.Interface
}

func (s *logSource) Pod(ctx context.Context, pod types.NamespacedName) (*corev1.Pod, error) {
	in := s.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(pod.Namespace)
	u, err := in.Get(ctx, pod.Name, GetOptions{})
	if err != nil {
		return nil, err
	}
	p := &corev1.Pod{}
	return p, asjson.Decode(u.Object, p)
}
