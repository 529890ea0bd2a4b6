package refs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/internal/engine/query"
)

// ErrAtRunTime says that a query with Refs cannot change while it runs.
var ErrAtRunTime = errors.New("queries with Refs are not added, removed or replaced at run time, nor are those removed whose objects name theirs: a query with Refs follows, by itself, what these objects name")

// Find looks for the kind of a query without Refs. It may ask the server. Nothing after it does.
func Find(ctx context.Context, q query.Query) (query.Kind, error) {
	if q.Refs != nil {
		return query.Kind{}, q.Error(ErrAtRunTime)
	}
	return query.FindKind(ctx, q)
}

// FindAll is [Find] for several queries.
func FindAll(ctx context.Context, queries []query.Query) ([]query.Kind, error) {
	all := make([]query.Kind, len(queries))
	for i, q := range queries {
		var err error
		if all[i], err = Find(ctx, q); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Open starts one query. former is the one whose place it is to take; nil: none. It sends no
// request. After an error nothing runs.
func Open(h query.Host, k query.Kind, former query.Running) (query.Running, error) {
	_, names := former.(*source)
	q := query.New(h, k, wakeOf(h, names), former != nil)
	if err := q.Connect(); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// wakeOf returns what says that there may be news in a query. Where its objects name others, the
// names are read before there is news.
func wakeOf(h query.Host, names bool) func() {
	if names {
		return h.Follow
	}
	return h.Wake
}

// CanFollow is [query.CanFollow]. Where objects of former name others, it also waits until all that
// the objects of q name is known.
func CanFollow(q, former query.Running) bool {
	s, names := former.(*source)
	return query.CanFollow(q, former) && (!names || s.foresees(q))
}

// Succeed returns the query that has the place of former from now on. first is the batch of next
// that was taken, if one was: took reports whether the query has it.
func Succeed(former, next query.Running, first query.Batch) (q query.Running, took bool) {
	s, names := former.(*source)
	if !names {
		return next, false
	}
	now := &source{next, s.reading}
	s.of.Store(now)
	if !first.OK() { // there was no snapshot: the names in its objects have yet to be read
		for i := range s.to { // the reader's turn may write to the rest of a naming meanwhile
			s.to[i].to.known.Store(false)
		}
		return now, false
	}
	first.ComesAfter(former, next)
	first.Breaks |= s.first.Breaks // the reader has not taken that
	s.first = first
	return now, true
}

// Naming is a [query.Running] whose objects name those of others.
type Naming interface {
	query.Running
	// Follow reads the names in objects as they come, so that the named objects are watched at
	// once. It keeps the changes for the next Take. next is a query that is to take the place of
	// this one; nil: there is none. Follow returns how long objects may still wait for those that
	// they name, 0 if none waits. It belongs to the reader's turn.
	Follow(present bool, next query.Running) (patience time.Duration)
}

// Rank is the length of the longest chain of names that leads to a query. Lower ranks are taken
// first.
func Rank(q query.Running) int {
	if r, named := q.Base().(*followed); named {
		return r.rank
	}
	return 0
}

// Links are the connections between queries: the objects of some name those of others.
type Links struct{ all []*followed }

// Any reports whether there are any.
func (l Links) Any() bool { return len(l.all) > 0 }

// Know finds out which names are known. It belongs to the reader's turn, and follows each take.
func (l Links) Know() {
	for _, to := range l.all {
		to.know()
	}
}

// Prepare makes queries, and finds their kinds. Nothing runs until each is connected. If a kind
// cannot be resolved, and its query is not optional, the error names the query.
func Prepare(ctx context.Context, h query.Host, queries []query.Query) ([]query.Running, Links, error) {
	all := make([]query.Running, len(queries))
	var links Links
	at, names := make(map[string]int), make(map[string]bool)
	for _, q := range queries {
		for _, ref := range q.Refs {
			names[ref.Query] = true
		}
	}
	for i, q := range queries {
		k, err := query.FindKind(ctx, q)
		if err != nil {
			return nil, links, err
		}
		at[q.Name] = i
		if q.Refs == nil {
			all[i] = query.New(h, k, wakeOf(h, names[q.Name]), false)
			continue
		}
		r := newFollowed(h, k)
		all[i], links.all = r, append(links.all, r)
	}
	for _, r := range links.all {
		if err := r.link(all, at); err != nil {
			return nil, links, err
		}
	}
	return all, links, links.order()
}

// link connects a query with those whose objects name its own.
func (r *followed) link(all []query.Running, at map[string]int) error {
	q := r.Query()
	if q.Namespace != "" || q.Namespaces != nil || q.Spaces != nil || q.AnyOf != nil {
		return q.Error(errors.New("its Refs say which objects are watched: it goes with neither namespaces nor AnyOf"))
	}
	for _, ref := range q.Refs {
		i, ok := at[ref.Query]
		if !ok {
			return q.Error(fmt.Errorf("its Refs are of %q: %w", ref.Query, query.ErrUnknownQuery))
		}
		from, ok := all[i].(*source)
		if !ok {
			from = newSource(r.host, all[i])
			all[i] = from
		}
		from.to = append(from.to, naming{to: r, names: ref.Names})
		r.from = append(r.from, from.reading)
	}
	return nil
}

// order gives each query a rank higher than those of the queries that name its objects.
func (l Links) order() error {
	for range len(l.all) + 1 {
		done := true
		for _, to := range l.all {
			for _, from := range to.from {
				if rank := Rank(from.of.Load()); to.rank <= rank {
					to.rank, done = rank+1, false
				}
			}
		}
		if done {
			return nil
		}
	}
	return errors.New("the Refs of queries go in a circle")
}
