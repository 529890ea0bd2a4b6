package fleet

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/kates"
)

// Key is a key of one cluster.
type Key struct{ Cluster, Key string }

// String is "cluster: key".
func (k Key) String() string { return k.Cluster + ": " + k.Key }

// KeyError is an error of one key of a [RunEach] or a [Controller]. kates.WithOnError gets it.
type KeyError struct {
	Key
	Err error
}

// Error names the cluster and the key.
func (e *KeyError) Error() string {
	return fmt.Sprintf("cluster %q: key %q: %s", e.Cluster, e.Key.Key, e.Err.Error())
}

// Unwrap returns the error.
func (e *KeyError) Unwrap() error { return e.Err }

// ClusterError is an error of one cluster in a [RunEach] or a [Controller]: its watches could not
// start, or have ended. kates.WithOnError gets it.
type ClusterError struct {
	Cluster string
	Err     error
}

// Error names the cluster.
func (e *ClusterError) Error() string { return fmt.Sprintf("cluster %q: %s", e.Cluster, e.Err.Error()) }

// Unwrap returns the error.
func (e *ClusterError) Unwrap() error { return e.Err }

// RunEach calls a function with the snapshot of each key of each cluster. S is a struct of one
// cluster, and the options and the rules are those of [kates.RunEach], which runs for each
// cluster, with the cluster's client:
//
//	err := fleet.RunEach(ctx, f, func(ctx context.Context, tenant fleet.Key, snap *Tenant) error {
//	    return rebuild(ctx, tenant.Cluster, tenant.Key, snap) // an empty snapshot: it is gone
//	}, kates.Query{Name: "Quotas", Key: kates.ByNamespace}, kates.WithWorkers(4))
//
// Clusters do not wait for each other. [kates.WithWorkers] says how many calls there are at a time
// for each cluster, so one whose calls hang holds up no other. If the watches of a cluster cannot
// start, or end, that is a [*ClusterError], which is logged, given to [kates.WithOnError] and
// tried again after the backoff; errors of keys are each a [*KeyError]. An error that is marked by
// [kates.Permanent] ends RunEach, of whichever cluster and key.
//
// A cluster that does not answer keeps its last known objects, and nothing is called for that. The
// contexts of a cluster's calls end when it leaves the fleet. Then, as for a key that is gone, the
// function is called once more for each key that it was called with, with an empty snapshot, until
// it returns no error. The output of a cluster can so be removed; the cluster itself cannot be
// reached. If a cluster takes a name that another one has had, it takes over the keys: those that
// it has itself are called with their new snapshots, and the others, when it is complete, with an
// empty one. A name that is in the fleet without a usable configuration is not gone.
//
// What a program knew in an earlier life is not remembered: nothing is called for clusters and
// keys that went while it did not run.
//
// With [kates.LeaderElection], whose Lease is in the home cluster (Options.Home), followers do not
// watch: a new leader begins with fresh lists. Signals, triggers and the shutdown timeout are
// those of the whole run. [kates.Sharding] and [kates.Handle] are errors, and so is a field whose
// query comes later.
//
// It returns what [kates.RunEach] returns, and [kates.ErrClosed] if the fleet is closed.
func RunEach[S any](ctx context.Context, f *Fleet, call func(ctx context.Context, key Key, snap *S) error, options ...kates.RunOption) error {
	t := reflect.TypeFor[S]()
	fail := func(err error) error { return fmt.Errorf("run each %s: %w", t, err) }
	switch {
	case f == nil:
		return fail(errors.New("the fleet is nil"))
	case call == nil:
		return fail(errors.New("there is no function to call"))
	}
	plan, err := f.plan(t.String(), f.log.WithValues("run", t.String()), options)
	if err == nil {
		err = checkKeyed(t, plan.Queries)
	}
	if err != nil {
		return fail(err)
	}
	m := &many{
		fleet: f, plan: plan, log: f.log.WithValues("run", t.String()),
		loop: func(p *place, c *Cluster, options []kates.RunOption) (func(context.Context) error, func()) {
			return func(ctx context.Context) error {
				return kates.RunEach(ctx, c.client, func(ctx context.Context, key string, snap *S) error {
					return p.bound(ctx, c, key, func(ctx context.Context, key Key) error { return call(ctx, key, snap) })
				}, options...)
			}, func() {}
		},
		farewell: func(ctx context.Context, key Key) error { return call(ctx, key, new(S)) },
	}
	return m.start(ctx, fail)
}

// checkKeyed reports what is wrong with the queries of a RunEach, as far as that shows without a
// server. The rest is the error of each cluster.
func checkKeyed(t reflect.Type, queries []kates.Query) error {
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("a snapshot is a struct, not %s", t.Kind())
	}
	if err := compile.CheckNoneLater(t); err != nil {
		return err
	}
	keyed := false
	for _, q := range queries {
		if _, ok := t.FieldByName(q.Name); !ok {
			return fmt.Errorf("query %q: %s has no field of that name", q.Name, t)
		}
		keyed = keyed || !q.Key.IsZero()
	}
	if !keyed {
		return errors.New("no query has a Key")
	}
	return nil
}
