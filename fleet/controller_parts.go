package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/kates-go/kates/kates"
)

// Errors of [Parts].
var (
	// ErrNoCluster: the fleet has no cluster of that name any more, or it is not complete yet.
	ErrNoCluster = errors.New("there is no such cluster, or not all of it is known yet")
	// ErrNotPruned: nothing was pruned, because the cluster may have more than is known of it.
	ErrNotPruned = errors.New("nothing was pruned")
	// ErrUnreachable: what the root owns in a cluster could not be removed.
	ErrUnreachable = errors.New("what is owned there cannot be removed now")
)

// ApplyOwned applies what the root wants in a cluster, and prunes the rest, as
// [kates.Client.ApplyOwned] does. The set is Remote, its Owner is the root, and Existing, if it is
// nil, is what R has.
//
// Nothing is pruned while the cluster is among the Missing: the rest is done, and the error is, or
// has, an [ErrNotPruned]. A cluster that is not among Clusters is an [ErrNoCluster], and so is one
// that has left the fleet since, or leaves during the call: nothing is written to another cluster
// that has taken its name.
//
// A cluster that does not answer holds up the reconcile for Options.Timeout, from when it is
// stale. After that nothing is sent to it until it answers, and the error is an ErrNotPruned at
// once.
func (p *Parts[H, R]) ApplyOwned(ctx context.Context, cluster string, set kates.OwnedSet, opts ...kates.WriteOption) (kates.OwnedResult, error) {
	c, shown := p.from[cluster].from, p.Clusters[cluster]
	if c == nil || shown == nil || c.part.cluster.ctx.Err() != nil {
		return kates.OwnedResult{}, fmt.Errorf("cluster %q: %w", cluster, ErrNoCluster)
	}
	if err := c.refusesWrites(); err != nil {
		return kates.OwnedResult{}, fmt.Errorf("cluster %q: %w: %w", cluster, ErrNotPruned, err)
	}
	ctx, end := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() { c.endWhenStale(ctx, end) })
	defer waiting.Wait()
	defer end(nil)
	defer context.AfterFunc(c.part.cluster.ctx, func() { end(nil) })()
	set.Owner, set.Remote = p.info.Root, true
	held := p.held(c)
	switch {
	case held != nil:
		set.Existing = []kates.Object{}
	case set.Existing == nil:
		set.Existing = p.home.owned(reflect.ValueOf(shown).Elem())
	}
	result, err := c.part.cluster.client.ApplyOwned(ctx, set, opts...)
	if held != nil {
		held = fmt.Errorf("%w: %w", ErrNotPruned, held)
	}
	if err != nil && c.part.cluster.ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrNoCluster, err)
	}
	if context.Cause(ctx) == errSilent && held == nil {
		held = fmt.Errorf("%w: %w", ErrNotPruned, errSilent)
	}
	if err = errors.Join(err, held); err != nil {
		err = fmt.Errorf("cluster %q: %w", cluster, err)
	}
	return result, err
}

// held says why nothing is pruned in a cluster: it was missing when the root's parts were taken,
// or is by now.
func (p *Parts[H, R]) held(c *homeCluster) error {
	for _, m := range append(slices.Clone(p.Missing), c.missing()...) {
		if m.Cluster == c.part.cluster.name {
			return m.Err
		}
	}
	return nil
}

// RemoveOwned removes what the root owns in all clusters, in the set of that name and Label. It
// returns nil when nothing is left of it. Otherwise call it again later: an error names each
// cluster that is among the Missing ([ErrUnreachable]), or refuses. If all have removed what they
// had, and finalizers still keep some of it, the error is [kates.AgainWithBackoff].
//
// It is what removes a root's finalizer ([kates.UnderFinalizer]) only when nothing is left behind.
// Clusters that have left the fleet do not count.
func (p *Parts[H, R]) RemoveOwned(ctx context.Context, set kates.OwnedSet, opts ...kates.WriteOption) error {
	set.Objects = nil
	var errs []error
	for _, m := range p.Missing {
		errs = append(errs, fmt.Errorf("cluster %q: %w: %w", m.Cluster, ErrUnreachable, m.Err))
	}
	for cluster := range p.Clusters {
		if slices.ContainsFunc(p.Missing, func(m Missing) bool { return m.Cluster == cluster }) {
			continue
		}
		_, err := p.ApplyOwned(ctx, cluster, set, opts...)
		switch {
		case errors.Is(err, ErrNotPruned), errors.Is(err, ErrNoCluster):
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
			fallthrough
		case err != nil:
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := p.pull(ctx); err != nil {
		return err
	}
	for _, m := range p.Missing {
		errs = append(errs, fmt.Errorf("cluster %q: %w: %w", m.Cluster, ErrUnreachable, m.Err))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	label, value := cmp.Or(set.Label, kates.OwnedSetLabel), set.SetName+"."+string(p.info.Root.GetUID())
	for _, shown := range p.Clusters {
		for _, o := range p.home.owned(reflect.ValueOf(shown).Elem()) {
			if o.GetLabels()[label] == value {
				return kates.AgainWithBackoff()
			}
		}
	}
	return nil
}
