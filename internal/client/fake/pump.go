package fake

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// notice is what the reader of the fake's watch tells the watcher. They come in order.
type notice struct {
	event watch.Event
	done  chan struct{} // a mark, to be closed: what the fake had put into its buffer is before it
	ended bool          // the fake has ended its watch
}

// aheadMost bounds what is read ahead of a reactor's watch, whose writer waits while its buffer is
// full. A test may write to it without end.
const aheadMost = 1000

// pump reads the fake's watch. A watch of the fake itself panics if its buffer is full. So the pump
// waits neither for a lock nor for a stream, and what it has read of such a watch has no bound. It
// ends with the context.
func (w *watcher) pump(ctx context.Context) {
	defer close(w.pumped)
	upstream := w.upstream.ResultChan()
	var queue []notice
	read := func(e watch.Event, open bool) {
		if !open {
			upstream = nil
		}
		queue = append(queue, notice{event: e, ended: !open})
	}
	for {
		var to chan notice
		var first notice
		if len(queue) > 0 {
			to, first = w.notices, queue[0]
		}
		from := upstream
		if w.late && len(queue) >= aheadMost {
			from = nil
		}
		select {
		case <-ctx.Done():
			return
		case e, open := <-from:
			read(e, open)
		case to <- first:
			queue = queue[1:]
		case done := <-w.drains:
			for range len(upstream) + 1 { // not until it is empty: a test may write without end
				select {
				case e, open := <-upstream:
					read(e, open)
				default:
				}
			}
			queue = append(queue, notice{done: done})
		}
	}
}

// drain returns when the watch has taken in what the fake has put into its buffer.
func (w *watcher) drain() {
	done := make(chan struct{})
	select {
	case w.drains <- done:
		select {
		case <-done:
		case <-w.ended:
		}
	case <-w.ended:
	}
}
