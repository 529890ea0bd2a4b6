package podlogs

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// cluster is a simulated server with one pod of one container, whose log is written in synctest's
// time. Its connections are cut, in mid-line too and also in good order, and fall silent.
type cluster struct {
	random *rand.Rand

	mu        sync.Mutex
	pod       *corev1.Pod // nil: deleted
	instances []*instance // of the container
	changed   chan struct{}
	faults    bool
	failed    int  // tries in a row with a fault; mostFailed at most
	bad       bool // the try that runs has a fault
	requests  int
}

// mostFailed is below mostFailures: a reader gives up what has failed too often, and is right.
// What fails before a log ends counts too.
const mostFailed = 3

// instance is one life of the container.
type instance struct {
	entries []entry
	over    bool
}

type entry struct {
	at   time.Time
	text string // with its end of line
}

const exitedWith = 7

func newCluster(seed uint64) *cluster {
	c := &cluster{random: rand.New(rand.NewPCG(seed, 1)), changed: make(chan struct{})}
	c.pod = &corev1.Pod{}
	c.pod.Namespace, c.pod.Name, c.pod.UID = "prod", "web", "uid-1"
	c.pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	c.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	return c
}

// change does something to the state, and wakes who waits for it.
func (c *cluster) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *cluster) status() *corev1.ContainerStatus {
	if len(c.pod.Status.ContainerStatuses) == 0 {
		c.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}}
	}
	return &c.pod.Status.ContainerStatuses[0]
}

// start starts the container, for the first time or again.
func (c *cluster) start() {
	c.change(func() {
		c.instances = append(c.instances, &instance{})
		status := c.status()
		status.RestartCount = int32(len(c.instances) - 1)
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	})
}

// exit ends the container.
func (c *cluster) exit(code int32) {
	c.change(func() {
		c.instances[len(c.instances)-1].over = true
		c.status().State = corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code},
		}
	})
}

// write writes lines into the log, at one moment.
func (c *cluster) write(texts ...string) {
	c.change(func() {
		now := c.instances[len(c.instances)-1]
		for _, text := range texts {
			at := time.Now()
			if c.random.IntN(4) == 0 { // the other output, whose lines are a bit late
				at = at.Add(-time.Duration(c.random.IntN(1000)) * time.Microsecond)
			}
			now.entries = append(now.entries, entry{at, text})
		}
	})
}

// text is all that was written.
func (c *cluster) text() string {
	var all strings.Builder
	for _, i := range c.instances {
		for _, e := range i.entries {
			all.WriteString(e.text)
		}
	}
	return all.String()
}

func (c *cluster) Pod(context.Context, types.NamespacedName) (*corev1.Pod, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fails(8):
		return nil, apierrors.NewInternalError(io.ErrUnexpectedEOF)
	case c.pod == nil:
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), "web")
	}
	return c.pod.DeepCopy(), nil
}

// fails draws a fault, which one of so many requests meets. A try is a Log and a Pod after it.
func (c *cluster) fails(ofRequests int) bool {
	fails := c.faults && c.failed < mostFailed && c.random.IntN(ofRequests) == 0
	c.bad = c.bad || fails
	return fails
}

// Log answers as the API server does, that is, with times rounded down to seconds.
func (c *cluster) Log(
	ctx context.Context, _ types.NamespacedName, o *corev1.PodLogOptions,
) (io.ReadCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if c.failed++; !c.bad {
		c.failed = 0
	}
	c.bad = false
	n := len(c.instances)
	if o.Previous {
		n--
	}
	switch {
	case c.pod == nil:
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), "web")
	case c.fails(8):
		return nil, apierrors.NewInternalError(io.ErrUnexpectedEOF)
	case c.fails(16):
		c.mu.Unlock()
		<-ctx.Done()
		c.mu.Lock()
		return nil, ctx.Err()
	case n < 1:
		return nil, apierrors.NewBadRequest("the container is waiting to start")
	}
	body, in := io.Pipe()
	from := c.instances[n-1]
	first := c.batch(from, 0)
	go func() {
		stop := context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
		_ = in.CloseWithError(c.send(ctx, in, from, first, o))
		stop()
	}()
	return body, nil
}

// batch is what a log has at one moment after some entries.
type batch struct {
	lines   []entry
	over    bool          // nothing comes after them
	changed chan struct{} // closed when something comes
	fault   int           // where the answer has a fault
}

// batch reads a log, and draws a fault. The caller holds the lock.
func (c *cluster) batch(from *instance, sent int) batch {
	// A copy: it is sent without the lock, while tests change what is written.
	lines := slices.Clone(from.entries[sent:])
	b := batch{lines: lines, over: from.over, changed: c.changed, fault: -9}
	if c.faults && c.failed < mostFailed {
		b.fault = c.random.IntN(12 * (1 + len(b.lines)))
		c.bad = c.bad || b.fault <= len(b.lines)+3
	}
	return b
}

// send writes an instance's log into an answer, until a fault or the end.
func (c *cluster) send(
	ctx context.Context, to io.Writer, from *instance, b batch, o *corev1.PodLogOptions,
) error {
	var since time.Time
	if o.SinceTime != nil {
		since = o.SinceTime.Truncate(time.Second)
	}
	for sent := 0; ; {
		lines, over, changed, fault := b.lines, b.over, b.changed, b.fault
		sent += len(lines)
		for i, l := range lines {
			if l.at.Before(since) {
				continue
			}
			raw := l.at.Format(time.RFC3339Nano) + " " + l.text
			if i == fault || i+1 == fault {
				_, _ = io.WriteString(to, raw[:1+c.between(0, len(raw)-1)])
				if i == fault {
					return io.ErrUnexpectedEOF
				}
				return nil // in good order, as an API server ends what the kubelet has cut
			}
			if _, err := io.WriteString(to, raw); err != nil {
				return err
			}
		}
		if c.faults && fault == len(lines)+3 {
			<-ctx.Done() // silent
		}
		if over || !o.Follow {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		c.mu.Lock()
		b = c.batch(from, sent)
		c.mu.Unlock()
	}
}

// live writes a log with restarts, at random times.
func (c *cluster) live() {
	for life := range 3 {
		time.Sleep(time.Duration(c.between(0, 20_000)) * time.Millisecond)
		c.start()
		for burst := range c.between(2, 40) {
			time.Sleep(time.Duration(c.between(0, 4000)) * time.Millisecond)
			var lines []string
			for i := range c.between(1, 6) {
				lines = append(lines, c.line(life, burst, i))
			}
			c.write(lines...)
		}
		// The log of the life before is no longer there after this one.
		time.Sleep(10 * time.Minute)
		c.write(fmt.Sprintf("end of life %d", life))
		if life < 2 {
			c.exit(exitedWith)
		}
	}
	c.exit(0)
}

// line is often one that was written before.
func (c *cluster) line(life, burst, i int) string {
	if c.between(0, 3) == 0 {
		return "tick\n"
	}
	return fmt.Sprintf("%d.%d.%d%s\n", life, burst, i, strings.Repeat(".", c.between(0, 30)))
}

// between is a random number from least to below most.
func (c *cluster) between(least, most int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return least + c.random.IntN(most-least)
}

// cutter cuts the first answer after some bytes.
type cutter struct {
	*cluster
	after int64
}

func (c *cutter) Log(
	ctx context.Context, at types.NamespacedName, o *corev1.PodLogOptions,
) (io.ReadCloser, error) {
	body, err := c.cluster.Log(ctx, at, o)
	if err != nil || c.after == 0 {
		return body, err
	}
	first := io.LimitReader(body, c.after)
	c.after = 0
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(first, cut{}), body}, nil
}

// cut is the end of a connection.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// refuser refuses so many requests for the log in a row after each that it answers.
type refuser struct {
	*cluster
	inARow, refused int
}

func (r *refuser) Log(
	ctx context.Context, at types.NamespacedName, o *corev1.PodLogOptions,
) (io.ReadCloser, error) {
	if r.refused++; r.refused <= r.inARow {
		return nil, apierrors.NewInternalError(io.ErrUnexpectedEOF)
	}
	r.refused = 0
	return r.cluster.Log(ctx, at, o)
}
