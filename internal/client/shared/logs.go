package shared

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/podlogs"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/loops/attempts"
	objects "github.com/kates-go/kates/internal/object"
)

// ErrNoLogs is the error of a client without a REST connection.
var ErrNoLogs = errors.New("this client was made of a dynamic.Interface and cannot read logs")

// Give hands on what is read of a container of the pod with that UID. It returns an error at the
// end of ctx.
type Give func(ctx context.Context, container string, pod types.UID, e podlogs.Event) error

// PodLogs starts to read the logs of a pod's containers. takes: there is somebody who takes them.
func (c *Client) PodLogs(
	ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions, takes bool, give Give,
) error {
	return plain.While("read the log of a pod", c.podLogs(ctx, pod, options, takes, give))
}

func (c *Client) podLogs(
	ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions, takes bool, give Give,
) error {
	switch {
	case c.Logs == nil:
		return ErrNoLogs
	case pod == nil || !takes:
		return errors.New("it needs a pod and a channel")
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if options == nil {
		options = &corev1.PodLogOptions{}
	}
	pod, err := c.withContainers(ctx, pod, options)
	if err != nil {
		return err
	}
	names := podlogs.Containers(pod)
	if options.Container != "" {
		names = []string{options.Container}
	}
	return c.readLogs(ctx, pod, names, options, give)
}

// withContainers returns the pod as given, or as the server has it if what was given does not tell
// enough.
func (c *Client) withContainers(ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions) (*corev1.Pod, error) {
	at := types.NamespacedName{Namespace: cmp.Or(pod.Namespace, c.Namespace), Name: pod.Name}
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
	found, err := c.Logs.Pod(ctx, at)
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
func (c *Client) readLogs(
	ctx context.Context, pod *corev1.Pod, names []string, options *corev1.PodLogOptions, give Give,
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
				Source: c.Logs, Clock: clock.RealClock{}, Logger: log, Backoff: logBackoff,
				Idle: c.Streams.Config().IdleTimeout,
			},
			Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
			UID: pod.UID, Options: *o, Give: func(ctx context.Context, e podlogs.Event) error { return give(ctx, name, pod.UID, e) },
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

// LogSource asks an API server.
type LogSource struct {
	*wire.Server
	Dynamic dynamic.Interface
}

// Pod implements [podlogs.Source].
func (s *LogSource) Pod(ctx context.Context, pod types.NamespacedName) (*corev1.Pod, error) {
	in := s.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(pod.Namespace)
	u, err := in.Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	p := &corev1.Pod{}
	return p, asjson.Decode(u.Object, p)
}
