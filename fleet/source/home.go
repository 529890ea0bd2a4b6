package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// home watches objects of a home cluster, in a struct of type S, and makes members of them.
type home[S any] struct {
	name    string
	client  *kates.Client
	queries []kates.Query
	members func(*S) []fleet.Member
	// optional has the fields of optional queries by their names, whether they are nil. A nil one
	// is certainly empty only where the kind is not served.
	optional func(*S) map[string]bool

	watch atomic.Pointer[kates.Snapshots[S]] // nil while it does not run
}

// recheck is how often a source asks again whether a kind is not served, or only refused.
const recheck = 10 * time.Second

// String implements [fleet.Source].
func (h *home[S]) String() string { return h.name }

// Run implements [fleet.Source].
func (h *home[S]) Run(ctx context.Context, set func([]fleet.Member)) error {
	watch, err := kates.Watch[S](ctx, h.client, h.queries...)
	if err != nil {
		return err
	}
	defer watch.Close()
	h.watch.Store(watch)
	defer h.watch.Store(nil)
	again := time.NewTicker(recheck)
	defer again.Stop()
	var snap *S
	for held := false; ; {
		select {
		case _, open := <-watch.Changed():
			next := new(S)
			changed, err := watch.Update(ctx, next)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return err
			case !open:
				return errors.New("the watch has ended")
			case !changed:
				continue
			}
			snap, held = next, true
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if held && h.refused(snap, watch.Status()) == nil {
			set(h.members(snap))
			held = false
		}
	}
}

// refused returns why a snapshot does not say for certain what there is: a field is nil, but not
// because its kind is not served.
func (h *home[S]) refused(snap *S, status kates.Status) error {
	if h.optional == nil {
		return nil
	}
	var errs []error
	empty := h.optional(snap)
	for _, q := range status.Queries {
		if empty[q.Name] && q.State != kates.StateMissing {
			errs = append(errs, fmt.Errorf("query %q (%s): %s: %s", q.Name, q.Kind, q.State, q.Error))
		}
	}
	return errors.Join(errs...)
}

// Err says what is wrong with the watches: an outage, or rights that are missing. The members
// stay.
func (h *home[S]) Err() error {
	watch := h.watch.Load()
	if watch == nil {
		return nil
	}
	status := watch.Status()
	errs := []error{status.Err()}
	for _, q := range status.Queries {
		if q.Absent && q.State != kates.StateMissing {
			errs = append(errs, fmt.Errorf("query %q (%s): %s: %s", q.Name, q.Kind, q.State, q.Error))
		}
	}
	return errors.Join(errs...)
}

// narrow sets a query's namespaces. None means all.
func narrow(q kates.Query, namespaces []string) kates.Query {
	if len(namespaces) > 0 {
		q.Namespaces = slices.Clone(namespaces)
	}
	return q
}

// byAge sorts objects by age, then by namespace and name: of two that claim a free name, the older
// one gets it.
func byAge[T kates.Object](objects []T) []T {
	return slices.SortedStableFunc(slices.Values(objects), func(a, b T) int {
		x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		return x.Compare(y.Time)
	})
}

// live reports whether an object is there and not being deleted.
func live(o kates.Object) bool { return o.GetDeletionTimestamp() == nil }
