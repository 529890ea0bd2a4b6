package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/kates"
)

// Object is an object with its cluster, for a field of all clusters' objects.
type Object[T any] struct {
	Cluster string
	Object  T
}

// Delta is a [kates.Delta] of one cluster.
type Delta struct {
	Cluster string `json:"cluster"`
	kates.Delta
}

// Invalid is a [kates.Invalid] of one cluster.
type Invalid struct {
	Cluster string
	kates.Invalid
}

// Missing says that a snapshot lacks a cluster, or that what it shows of the cluster may be
// outdated. Do not take the absence of an object for its deletion there.
type Missing struct {
	Cluster string
	// Shown: what was last known of the cluster is in the snapshot. Otherwise nothing of it is.
	Shown bool
	// Since is when the cluster was last heard, or when the fleet began to wait for it.
	Since time.Time
	// Err says why.
	Err error

	kind string // of the error, whose text may differ from attempt to attempt
}

// Snapshots hands out snapshots of type S, whose fields have the objects of all clusters. See
// [Watch]. Objects are read-only. One goroutine reads at a time; the other methods are safe for
// concurrent use.
type Snapshots[S any] struct {
	*watching
	looping atomic.Bool
}

// Watch starts watching the kinds that the exported fields of the struct S name, in all clusters
// of the fleet, until ctx ends or Close:
//
//	type Snapshot struct {
//	    Deployments map[string][]*appsv1.Deployment   // by cluster
//	    Services    []fleet.Object[*corev1.Service]    // each with its cluster
//	    Hosts       map[string][]map[string]any       `kates:"hosts.getambassador.io,optional"`
//	    Missing     []fleet.Missing                   // clusters that are not shown, or are stale
//	    Deltas      []*fleet.Delta                    // the latest changes
//	    Invalid     []fleet.Invalid                   // objects left out, and why
//	    Cached      string                            `kates:"-"` // not a query
//	}
//
// A field of one cluster may have any form that [kates.Watch] takes: a map by cluster has it as
// its values. Tags and queries are those of kates.Watch, without those that are added later. What
// is wrong with them is an error here, if it shows without a server, and else the error of each
// cluster.
//
// There is no snapshot before each source has said which clusters there are, and each cluster is
// complete, does not answer, or has had its time (Options.Deadline). After that no cluster holds
// up another. A cluster that comes later is shown when it is complete: all its kinds at once. One
// that goes leaves with all its objects. What is shown of a cluster has the guarantees of package
// kates, own writes included; between clusters there is no order.
//
// A cluster that fails keeps its last known objects, and is among the missing, in the struct and
// in the status of the watch. A watch that cannot start is tried again, with pauses that grow. If
// another cluster takes the name, its objects replace those of the former one when all of them are
// there; until then the former ones are shown, and the name is among the missing.
func Watch[S any](ctx context.Context, f *Fleet, queries ...kates.Query) (*Snapshots[S], error) {
	t := reflect.TypeFor[S]()
	if f == nil {
		return nil, fmt.Errorf("watch %s: the fleet is nil", t)
	}
	shape, err := shapeOf(t)
	if err == nil {
		err = shape.check(queries)
	}
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", t, err)
	}
	if shape.unfilled != nil {
		f.log.Info("fields are not filled, because they are not exported", "type", t.String(), "fields", shape.unfilled)
	}
	return &Snapshots[S]{watching: startWatching(ctx, f, shape, queries)}, nil
}

// Update fills the struct with the current snapshot: every field but those with the tag "-". It
// reports whether that differs from the last one. Until the first snapshot is complete it returns
// false and touches nothing. After an error, too, the struct is untouched, and what has changed is
// in the next snapshot. Update does not wait for the network, and asks no cluster that has not
// changed.
func (s *Snapshots[S]) Update(ctx context.Context, into *S) (bool, error) {
	if s.looping.Load() {
		return false, kates.ErrSecondReader
	}
	if into == nil {
		return false, errors.New("update: the struct is nil")
	}
	changed, _, err := s.update(ctx, reflect.ValueOf(into).Elem())
	return changed, err
}

// All iterates over snapshots, as those of package kates do: it yields the current one as soon as
// it is complete, and again whenever something has changed and the loop's body has returned.
func (s *Snapshots[S]) All(ctx context.Context) iter.Seq2[*S, error] {
	return func(yield func(*S, error) bool) {
		if !s.looping.CompareAndSwap(false, true) {
			yield(nil, kates.ErrSecondReader)
			return
		}
		defer s.looping.Store(false)
		for first := true; ; {
			snap := new(S)
			changed, complete, err := s.update(ctx, reflect.ValueOf(snap).Elem())
			if errors.Is(err, context.Canceled) || errors.Is(err, kates.ErrClosed) {
				return
			}
			if err != nil {
				yield(nil, s.because(err))
				return
			}
			if complete && (changed || first) {
				first = false
				if !yield(snap, nil) {
					return
				}
			}
			select {
			case <-s.Changed():
			case <-ctx.Done():
			}
		}
	}
}
