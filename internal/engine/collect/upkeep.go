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

// run runs until ctx ends, and its tasks have ended. There is one task for each late stream, and
// one for each kind that is looked for: a request that hangs delays nothing else.
func (u *upkeep) run(ctx context.Context) {
	busy, done := make(map[any]bool), make(chan any)
	start := func(of any, task func()) {
		if busy[of] {
			return
		}
		busy[of] = true
		go func() {
			task()
			done <- of
		}()
	}
	for ctx.Err() == nil {
		for _, q := range u.queries() {
			q.Tend()
			for _, late := range q.Late() {
				start(late, func() { u.help(ctx, late) })
			}
			if q.Unresolved() {
				start(q, func() { u.resolve(ctx, q) })
			}
		}
		select {
		case <-ctx.Done():
		case <-u.due:
		case of := <-done: // more may be due
			delete(busy, of)
		}
	}
	for len(busy) > 0 {
		delete(busy, <-done)
	}
}

// resolve looks for the kind of a query, after a while.
func (u *upkeep) resolve(ctx context.Context, q query.Running) {
	if source.Sleep(ctx, u.host.Streams.Config().KindPoll); ctx.Err() != nil {
		return
	}
	q.Resolve(ctx)
	u.host.Follow()
	u.host.Wake()
}

// help asks the server on behalf of a late stream, if something still waits for it.
func (u *upkeep) help(ctx context.Context, late query.Late) {
	source.Sleep(ctx, late.Patience())
	ok := late.CatchUp(ctx)
	u.host.Wake()
	if !ok {
		source.Sleep(ctx, u.host.Streams.Config().KindPoll)
	}
}
