package fleet

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/kates"
)

// part is the watch of one cluster in a watch of the fleet. One goroutine starts it and passes on
// its signals; the reader takes from it.
type part struct {
	cluster *Cluster
	began   time.Time
	log     logr.Logger
	poke    func()        // tells the whole watch that there is news
	retry   chan struct{} // the cluster answers again
	started atomic.Pointer[kates.Accumulator]
	failure atomic.Pointer[error] // why it could not be started; nil: nothing
	end     context.CancelFunc
	lag     atomic.Pointer[lag]   // of its watches, when these were looked at last; nil: none
	trouble atomic.Pointer[error] // of the latest take; nil: none
	noted   noted                 // there may be something to take; set by the accumulator
	up      bool                  // the cluster answered when the fleet was looked at last; run's, of the watch

	// The rest belongs to the reader.
	value   reflect.Value // the latest struct that was taken; not valid before the first
	live    map[objectID]*kates.Delta
	invalid []kates.Invalid
}

// noted is what a part's watch and its client tell.
type noted struct {
	atomic.Bool
	witness func(watch string) collect.Witness // of the client; set before started is. Nil: it has none
}

// objectID names an object among those of one cluster.
type objectID struct {
	query string
	name  types.NamespacedName
	uid   types.UID
}

// run starts the watch, as often as it takes, and passes on its signals.
func (p *part) run(ctx context.Context, t reflect.Type, queries []kates.Query) {
	acc := p.start(ctx, t, queries)
	if acc == nil {
		return
	}
	defer acc.Close()
	p.started.Store(acc)
	p.poke()
	for {
		select {
		case _, open := <-acc.Changed():
			if !open {
				return
			}
			p.poke()
		case <-ctx.Done():
			return
		}
	}
}

// start starts the watch. It tries until it works, or ctx ends.
func (p *part) start(ctx context.Context, t reflect.Type, queries []kates.Query) *kates.Accumulator {
	// The whole watch keeps signals apart, and asks for what was noted alone.
	client := p.cluster.client.With(kates.WithInterval(0), noting{of: p})
	for failures := 1; ; failures++ {
		acc, err := client.WatchStruct(ctx, t, queries...)
		if err == nil || ctx.Err() != nil {
			p.failure.Store(nil)
			return acc
		}
		p.failure.Store(&err)
		p.poke()
		if failures == 1 {
			p.log.Error(err, "a cluster is missing: its watch cannot start", "cluster", p.cluster.name)
		}
		wait := time.NewTimer(retries.After(failures))
		select {
		case <-wait.C:
		case <-p.retry:
			wait.Stop()
		case <-ctx.Done():
			wait.Stop()
			return nil
		}
	}
}

// answers tells a part that could not be started that its cluster answers again.
func (p *part) answers() {
	select {
	case p.retry <- struct{}{}:
	default:
	}
}

// complete reports whether the cluster's first snapshot can be taken.
func (p *part) complete() bool {
	acc := p.started.Load()
	return acc != nil && acc.Ready() == nil
}

// lacks says why the part is not complete, and of which kind that is.
func (p *part) lacks() (kind string, why error) {
	if h := p.cluster.Health(); h.Phase != Up && h.Error != "" {
		return "no answer", errors.New(h.Error)
	}
	if err := p.failure.Load(); err != nil {
		return "no watch", *err
	}
	if acc := p.started.Load(); acc != nil {
		if err := acc.Ready(); err != nil {
			return "incomplete", err
		}
	}
	return "not begun", errors.New("its watches have not begun yet")
}

// lag says that watches lag though their cluster answers.
type lag struct {
	since time.Time
	why   error
}

// stale returns since when what is shown of the cluster may be outdated, and why; nil: it is not.
func (p *part) stale() (since time.Time, why error) {
	if h := p.cluster.Health(); h.Phase == Stale {
		return h.Since, errors.New(h.Error)
	}
	if l := p.lag.Load(); l != nil {
		return l.since, l.why
	}
	return time.Time{}, nil
}

// missing says why the cluster is not shown, or may be outdated, as far as that does not depend on
// what the reader has taken.
func (p *part) missing() error {
	if !p.complete() {
		_, why := p.lacks()
		return why
	}
	if err := p.trouble.Load(); err != nil {
		return *err
	}
	_, why := p.stale()
	return why
}

// look notes whether the watches lag. That is too dear for each snapshot: it asks all queries.
func (p *part) look(patience time.Duration) {
	var since time.Time
	var why error
	for _, q := range p.started.Load().Status().Queries {
		late := q.State == kates.StateForbidden || q.Lag > patience
		if q.State == kates.StateSynced || q.Absent || q.Changing || !late {
			continue
		}
		if heard := cmpTime(q.Heard, q.Since); why == nil || heard.Before(since) {
			since, why = heard, errors.New("query "+q.Name+": "+string(q.State)+": "+q.Error)
		}
	}
	if why == nil {
		p.lag.Store(nil)
		return
	}
	p.lag.Store(&lag{since, why})
}

func cmpTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// noting is the option of a watch that notes in its part what there is to take.
type noting struct {
	kates.WatchOption // nil, and never called: it makes this a kates.WatchOption
	of                *part
}

var _ collect.NotedOption = noting{}

// Noted implements [collect.NotedOption].
func (n noting) Noted() *atomic.Bool { return &n.of.noted.Bool }

// Witnessed implements [collect.NotedOption].
func (n noting) Witnessed(by func(watch string) collect.Witness) { n.of.noted.witness = by }

// news reports whether there may be something to take. What was not noted would change nothing.
func (p *part) news() bool { return !p.value.IsValid() || p.noted.Load() }

// take takes what is new. The deltas are those since the last take. noted: they are wanted.
func (p *part) take(ctx context.Context, t reflect.Type, noted bool) (now reflect.Value, deltas []*Delta, err error) {
	p.noted.Store(false) // before the update: what is noted meanwhile stays
	next := reflect.New(t)
	var all *[]*kates.Delta
	if noted {
		all = new([]*kates.Delta)
	}
	var invalid []kates.Invalid
	changed, err := p.started.Load().JudgedUpdate(ctx, next.Interface(), all, &invalid, nil)
	if err != nil || !changed {
		return p.value, nil, err
	}
	p.value, p.invalid = next.Elem(), invalid
	if noted {
		deltas = p.note(*all)
	}
	return p.value, deltas, nil
}

// troubled notes the error of a take, if there was one.
func (p *part) troubled(err error) {
	if err == nil {
		p.trouble.Store(nil)
		return
	}
	p.trouble.Store(&err)
}

// note remembers what is shown, so that all of it can be a deletion when the cluster goes.
func (p *part) note(changes []*kates.Delta) (deltas []*Delta) {
	if p.live == nil {
		p.live = make(map[objectID]*kates.Delta)
	}
	for _, d := range changes {
		id := objectID{d.Query, types.NamespacedName{Namespace: d.Namespace, Name: d.Name}, d.UID}
		if d.DeltaType == kates.ObjectDelete {
			delete(p.live, id)
		} else {
			p.live[id] = d
		}
		deltas = append(deltas, &Delta{Cluster: p.cluster.name, Delta: *d})
	}
	return deltas
}

// farewell returns the deletion of all that was shown.
func (p *part) farewell() (deltas []*Delta) {
	for _, d := range p.live {
		gone := *d
		gone.DeltaType = kates.ObjectDelete
		deltas = append(deltas, &Delta{Cluster: p.cluster.name, Delta: gone})
	}
	return deltas
}

// sortDeltas orders deltas by cluster, query, namespace and name; a deletion comes before the
// addition of another object of that name.
func sortDeltas(deltas []*Delta) {
	slices.SortStableFunc(deltas, func(a, b *Delta) int {
		return cmp.Or(
			cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Query, b.Query),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(deletionFirst(a), deletionFirst(b)))
	})
}

func deletionFirst(d *Delta) int {
	if d.DeltaType == kates.ObjectDelete {
		return 0
	}
	return 1
}
