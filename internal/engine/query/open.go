package query

import (
	"context"
	"errors"
	"fmt"
)

// ErrUnknownQuery says that no query has the given name.
var ErrUnknownQuery = errors.New("there is no query of that name")

// Found is a query without Refs whose kind was looked for. Nothing runs.
type Found struct{ kind kind }

// Name is the query's name.
func (f Found) Name() string { return f.kind.query.Name }

// Find looks for the kind of a query without Refs. It may ask the server. Nothing after it does.
func Find(ctx context.Context, q Query) (Found, error) {
	if q.Refs != nil {
		return Found{}, q.Error(ErrRefsAtRunTime)
	}
	k, err := resolve(ctx, q)
	return Found{k}, err
}

// FindAll is [Find] for several queries.
func FindAll(ctx context.Context, queries []Query) ([]Found, error) {
	all := make([]Found, len(queries))
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
func Open(h Host, f Found, former Running) (Running, error) {
	u := newUnion(h, f.kind)
	u.heir = former != nil
	if _, names := former.(*source); names {
		u.wake = h.Follow // the names are read before there is news
	}
	if err := u.connect(); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// Succeed returns the query that has the place of former from now on. first is the batch of next
// that was taken, if one was: took reports whether the query has it.
func Succeed(former, next Running, first Batch) (q Running, took bool) {
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

// References are the connections between queries: the objects of some name those of others.
type References struct{ all []*references }

// Any reports whether there are any.
func (r References) Any() bool { return len(r.all) > 0 }

// Rank is the length of the longest chain of names that leads to a query. Lower ranks are taken
// first.
func Rank(q Running) int {
	switch q := q.(type) {
	case *references:
		return q.rank
	case *source:
		return Rank(q.Running)
	}
	return 0
}

// Connect joins the streams of a query that Prepare has made. It is called once.
func Connect(q Running) error {
	switch q := q.(type) {
	case *references:
		q.connect()
	case *source:
		return Connect(q.Running)
	case *union:
		return q.connect()
	}
	return nil
}

// Know finds out which names are known. It belongs to the reader's turn, and follows each take.
func (r References) Know() {
	for _, to := range r.all {
		to.know()
	}
}

// Prepare makes queries, and finds their kinds. Nothing runs until [Connect]. If a kind cannot be
// resolved, and its query is not optional, the error names the query.
func Prepare(ctx context.Context, h Host, queries []Query) ([]Running, References, error) {
	all := make([]Running, len(queries))
	var links References
	at := make(map[string]int)
	for i, q := range queries {
		k, err := resolve(ctx, q)
		if err != nil {
			return nil, links, err
		}
		at[q.Name] = i
		if q.Refs == nil {
			all[i] = newUnion(h, k)
			continue
		}
		r := newReferences(h, k)
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
func (r *references) link(all []Running, at map[string]int) error {
	q := r.query
	if q.Namespace != "" || q.Namespaces != nil || q.Spaces != nil || q.AnyOf != nil {
		return q.Error(errors.New("its Refs say which objects are watched: it goes with neither namespaces nor AnyOf"))
	}
	for _, ref := range q.Refs {
		i, ok := at[ref.Query]
		if !ok {
			return q.Error(fmt.Errorf("its Refs are of %q: %w", ref.Query, ErrUnknownQuery))
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
func (r References) order() error {
	for range len(r.all) + 1 {
		done := true
		for _, to := range r.all {
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
