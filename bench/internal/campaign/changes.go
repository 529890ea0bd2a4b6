package campaign

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kates-go/kates/bench/internal/gateway"
	"github.com/kates-go/kates/bench/internal/workload"
)

// writers is how many changes of gateways' objects are under way at once.
const writers = 16

// pacedChanges makes n changes at a rate per second, as far as the server takes them. The changes
// of one object are made in their order.
func pacedChanges(ctx context.Context, web *workload.Web, rate, n int) ([]workload.WebChange, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	made := make([]workload.WebChange, n)
	lanes := make([]chan int, writers)
	var running sync.WaitGroup
	for i := range lanes {
		lanes[i] = make(chan int, n) // so a slow lane holds up no other one
		running.Go(func() {
			for mark := range lanes[i] {
				change, err := web.Change(ctx, mark)
				if err != nil {
					cancel(err)
					return
				}
				made[mark-1] = change
			}
		})
	}
	begun := time.Now()
	for mark := 1; mark <= n && ctx.Err() == nil; mark++ {
		_ = pause(ctx, time.Until(begun.Add(time.Duration(mark)*time.Second/time.Duration(rate))))
		lanes[web.Lane(mark)%writers] <- mark
	}
	for _, lane := range lanes {
		close(lane)
	}
	running.Wait()
	return made, context.Cause(ctx)
}

// delays returns for each change how long it took from the server's answer until it was in effect,
// in ms. A change that a later one of the same object has replaced is in effect with that one.
// What is not in effect yet is missing.
func delays(made []workload.WebChange, seen []gateway.Seen) (endpoints, ingresses []float64, missing []workload.WebChange) {
	type object struct {
		ingress bool
		key     string
	}
	seenOf := map[object][]gateway.Seen{} // in the order of time, which is that of marks
	for _, s := range seen {
		of := object{s.Ingress, s.Key}
		seenOf[of] = append(seenOf[of], s)
	}
	for _, c := range made {
		all := seenOf[object{c.Ingress, c.Key}]
		i := slices.IndexFunc(all, func(s gateway.Seen) bool { return s.Mark >= c.Mark })
		if i < 0 {
			missing = append(missing, c)
			continue
		}
		// An event may be faster than the answer to the writer.
		ms := max(0, float64(all[i].UnixNano-c.At.UnixNano())/1e6)
		if c.Ingress {
			ingresses = append(ingresses, ms)
		} else {
			endpoints = append(endpoints, ms)
		}
	}
	return endpoints, ingresses, missing
}
