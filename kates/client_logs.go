package kates

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/client/podlogs"
	"github.com/kates-go/kates/internal/client/shared"
)

// ErrLogsNotSupported is returned by [Client.PodLogs] of a client that is made from a
// dynamic.Interface, such as client-go's fake: logs need a REST connection.
var ErrLogsNotSupported = shared.ErrNoLogs

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
	return c.core.PodLogs(ctx, pod, options, events != nil, func(ctx context.Context, container string, uid types.UID, e podlogs.Event) error {
		event := LogEvent{
			PodID: string(uid), Container: container,
			Timestamp: e.Timestamp, Output: e.Output, Closed: e.Closed, Error: e.Err,
		}
		select {
		case events <- event:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
