package fleet

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
)

// Run calls a function with snapshots of the whole fleet (see [Watch]): with the first one, and
// then, whenever something has changed, with the current one. The rules are those of [kates.Run]:
// errors and panics mean another try after a backoff, with the newest snapshot, [kates.Permanent]
// marks an error that ends Run, and [kates.Again] asks for another call. It returns what kates.Run
// returns.
//
//	err := fleet.Run(ctx, f, func(ctx context.Context, snap *Snapshot) error {
//	    return rebuild(ctx, snap) // snap.Missing: clusters that are not shown, or are stale
//	}, kates.WithTriggers(ticker.C))
//
// The options are queries, [kates.WithBackoff], [kates.WithOnError], [kates.WithTriggers],
// [kates.WithShutdownTimeout], [kates.WithSignals] and [kates.LeaderElection], whose Lease is in
// the home cluster (Options.Home). Followers watch, and keep their snapshots up to date. A new
// leader is called with a snapshot as new as the clusters were when it won; for one that does not
// answer it waits for Options.Timeout at most. [kates.WatchOption] is an error (see
// Options.Interval), and so is a field for deltas: a try after an error would not have those of
// the one before.
func Run[S any](ctx context.Context, f *Fleet, call func(ctx context.Context, snap *S) error, options ...kates.RunOption) error {
	t := reflect.TypeFor[S]()
	fail := func(err error) error { return fmt.Errorf("run %s: %w", t, err) }
	switch {
	case f == nil:
		return fail(errors.New("the fleet is nil"))
	case call == nil:
		return fail(errors.New("there is no function to call"))
	}
	plan, err := f.plan(t.String(), f.log.WithValues("run", t.String()), options)
	switch {
	case err != nil:
		return fail(err)
	case plan.Watched:
		return fail(errors.New("a watch option is one of a cluster's client; a fleet has Options.Interval"))
	case plan.Keyed:
		return fail(errors.New("WithWorkers is an option of RunEach: one snapshot has one function"))
	}
	config := plan.Config
	ctx, grace, stop, err := config.Shutdown.Begin(ctx, config.Log)
	if err != nil {
		return fail(err)
	}
	defer stop()
	snaps, end, err := keyed.Outlive(ctx, grace, func(life context.Context) (*Snapshots[S], error) {
		return Watch[S](life, f, plan.Queries...)
	})
	if err != nil {
		return fail(plan.Unstarted(err))
	}
	defer end()
	defer snaps.Close()
	if snaps.shape.deltas != nil {
		return fail(errors.New("a field for deltas is for Watch"))
	}
	err = keyed.NewWhole(config, grace, whole[S]{snaps}, call).Run(ctx)
	return keyed.Lacking(config.Log, snaps.Ready(), endOf(ctx, err, fail))
}

// whole is the watch of a fleet as [keyed.Snapshots].
type whole[S any] struct{ *Snapshots[S] }

// Current implements [keyed.Snapshots].
func (w whole[S]) Current(ctx context.Context) (snap *S, changed, complete bool, err error) {
	snap = new(S)
	if changed, complete, err = w.update(ctx, reflect.ValueOf(snap).Elem()); err != nil {
		err = w.because(err)
	}
	return snap, changed, complete, err
}

// Sync implements [keyed.Snapshots]. It waits for all clusters at the same time.
func (w whole[S]) Sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.fleet.options.Timeout)
	defer cancel()
	parts, _, _ := w.now()
	var running sync.WaitGroup
	for _, p := range parts {
		running.Go(func() {
			if err := p.cluster.client.Sync(ctx); err != nil {
				w.fleet.log.Error(err, "a new leader goes on without the latest of a cluster", "cluster", p.cluster.name)
			}
		})
	}
	running.Wait()
	return context.Cause(w.ctx)
}

func (w whole[S]) Done() <-chan struct{} { return w.ctx.Done() }
func (w whole[S]) Err() error            { return context.Cause(w.ctx) }
func (w whole[S]) Handled()              {}
