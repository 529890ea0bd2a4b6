package collect

import (
	"context"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/source"
)

// upkeep does for queries what is due without a reader: it helps late streams, and looks for kinds
// that are unknown or no longer served as before.
type upkeep struct {
	host    *query.Host
	queries func() []query.Running
	settled func() bool   // whether a change of the queries can take effect
	due     chan struct{} // holds a value when something may be due
	editing chan struct{} // held while the queries change
}

// edit makes one change of the queries at a time.
func (u *upkeep) edit(ctx context.Context, change func() error) error {
	select {
	case u.editing <- struct{}{}:
		defer func() { <-u.editing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := change()
	u.host.Attend()
	u.host.Follow() // a query may have been complete before it waited
	u.host.Wake()
	return err
}

// run runs until ctx ends, and its tasks have ended. Each task is done by itself: a request that
// hangs delays nothing else.
func (u *upkeep) run(ctx context.Context) {
	busy, done := make(map[query.Task]bool), make(chan query.Task)
	for ctx.Err() == nil {
		for _, q := range u.queries() {
			for _, task := range q.Attend() {
				if busy[task] {
					continue
				}
				busy[task] = true
				go func() {
					u.do(ctx, task)
					done <- task
				}()
			}
		}
		if u.settled() { // if not, the server is asked on behalf of streams that are late
			u.host.Wake() // nobody else may have seen it
		}
		select {
		case <-ctx.Done():
		case <-u.due:
		case task := <-done: // more may be due
			delete(busy, task)
		}
	}
	for len(busy) > 0 {
		delete(busy, <-done)
	}
}

// do does a task after a while. After a failure it waits before the task is done again.
func (u *upkeep) do(ctx context.Context, task query.Task) {
	if source.Sleep(ctx, task.Patience()); ctx.Err() != nil {
		return
	}
	ok := task.Do(ctx)
	u.host.Wake()
	if !ok {
		source.Sleep(ctx, u.host.Streams.Config().KindPoll)
	}
}
