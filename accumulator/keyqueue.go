package accumulator

import (
	"k8s.io/client-go/util/workqueue"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/attempts"
)

// keyQueue is client-go's: a key is in it once, is held by one worker, and comes back after its backoff. Only who has the reader's turn
// takes a key from it, and only if there is one, since to wait there heeds no context.
//
// ShutDown ends its goroutine, that of the delays, and does not wait for it: client-go (v0.37) neither does so nor has anything that tells of
// its end. It returns at once, whatever it was waiting for, and calls nothing but this queue, which takes no keys by then.
type keyQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	limits workqueue.TypedRateLimiter[string]
	ready  chan struct{} // there may be a key
}

func newKeyQueue(b attempts.Backoff, log logr.Logger) *keyQueue {
	q := &keyQueue{
		limits: workqueue.NewTypedItemExponentialFailureRateLimiter[string](b.First, b.Most),
		ready:  make(chan struct{}, 1),
	}
	plain := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: &fifo{nudge: q.nudge}})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Queue: plain, Logger: &log})
	q.TypedRateLimitingInterface = workqueue.NewTypedRateLimitingQueueWithConfig(q.limits,
		workqueue.TypedRateLimitingQueueConfig[string]{DelayingQueue: delaying})
	return q
}

// nudge wakes somebody who waits for a key.
func (q *keyQueue) nudge() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// pop takes a key, if there is one. Called by who has the reader's turn.
func (q *keyQueue) pop() (key string, ok bool) {
	if q.Len() == 0 {
		return "", false
	}
	key, end := q.Get()
	return key, !end
}

// fifo is the order of the keys, and tells when there is one.
type fifo struct {
	keys  []string
	nudge func()
}

func (f *fifo) Touch(string) {}

func (f *fifo) Push(key string) {
	f.keys = append(f.keys, key)
	f.nudge()
}

func (f *fifo) Len() int { return len(f.keys) }

func (f *fifo) Pop() string {
	key := f.keys[0]
	f.keys[0] = ""
	f.keys = f.keys[1:]
	return key
}
