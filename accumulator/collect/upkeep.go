package collect

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
)

// upkeep does for queries what is due without a reader: it helps late streams, and looks for kinds
// that are unknown or no longer served as before.
type upkeep struct {
	host    *query.Host
	queries func() []query.Running
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
	u.host.Follow() // a successor may have been complete before it waited
	u.host.Wake()
	return err
}

// run runs until ctx ends.
func (u *upkeep) run(ctx context.Context) {
	for {
		queries, more := u.queries(), false
		for _, q := range queries {
			more = q.Tend() || more
		}
		helped, stuck := u.catchUp(ctx, queries)
		if helped {
			queries = u.queries() // some may have left meanwhile
		}
		if !stuck && (more || slices.ContainsFunc(queries, query.Running.Late)) {
			continue
		}
		if !stuck && !slices.ContainsFunc(queries, query.Running.Unresolved) {
			select {
			case <-ctx.Done():
				return
			case <-u.due:
				continue
			}
		}
		if stream.Sleep(ctx, u.host.Streams.Config().KindPoll); ctx.Err() != nil {
			return
		}
		_ = u.edit(ctx, func() error {
			for _, q := range u.queries() {
				if q.Unresolved() {
					q.Resolve(ctx)
				}
			}
			return nil
		})
	}
}

// catchUpAfter is how long a late stream may take by itself. Most are late for a moment only.
const catchUpAfter = 100 * time.Millisecond

// catchUp asks the server on behalf of late streams, if something waits for them. It reports
// whether there were any, and whether that failed.
func (u *upkeep) catchUp(ctx context.Context, queries []query.Running) (helped, stuck bool) {
	if !slices.ContainsFunc(queries, query.Running.Late) {
		return false, false
	}
	stream.Sleep(ctx, catchUpAfter)
	var tasks sync.WaitGroup
	var failed atomic.Bool
	for _, q := range queries {
		tasks.Go(func() {
			if !q.CatchUp(ctx) {
				failed.Store(true)
			}
		})
	}
	tasks.Wait()
	u.host.Wake()
	return true, failed.Load()
}
