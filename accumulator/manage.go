package accumulator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kates-go/kates/accumulator/stream"
)

// ErrUnknownQuery says that no query has the given name.
var ErrUnknownQuery = errors.New("there is no query of that name")

var errRefsAtRunTime = errors.New("queries with Refs, and those whose objects name theirs, are not added, removed or replaced at run time")

func queryError(q Query, err error) error { return fmt.Errorf("query %q: %w", q.Name, err) }

// Add adds queries to a running accumulator. The signals and snapshots of the others go on. A new
// query is in the snapshot as soon as it has its whole first list. Add returns an error, and adds
// none of them, if a name is taken, or if a kind cannot be resolved and its query is not
// optional.
func (a *Accumulator) Add(ctx context.Context, queries ...Query) error {
	return a.edit(ctx, func() error {
		var fresh []*field
		names := make(map[string]bool)
		for _, f := range a.fieldsNow() {
			names[f.name] = true
		}
		for _, q := range queries {
			if names[q.Name] {
				return queryError(q, errors.New("there is one of that name already"))
			}
			names[q.Name] = true
			if q.Refs != nil {
				return queryError(q, errRefsAtRunTime)
			}
			f, err := a.open(ctx, q)
			if err != nil {
				a.closeFields(fresh)
				return err
			}
			fresh = append(fresh, f)
		}
		a.mu.Lock()
		err := a.err
		if err == nil {
			a.fields = slices.Concat(a.fields, fresh)
			a.generation++
		}
		a.mu.Unlock()
		if err != nil {
			a.closeFields(fresh)
			return err
		}
		return nil
	})
}

// Remove removes queries from a running accumulator. The next snapshot lacks their objects, and
// its differences have them as deletes.
func (a *Accumulator) Remove(ctx context.Context, names ...string) error {
	return a.edit(ctx, func() error {
		a.mu.Lock()
		kept := slices.Clone(a.fields)
		var gone []*field
		for _, name := range names {
			i := slices.IndexFunc(kept, func(f *field) bool { return f.name == name })
			if i < 0 {
				a.mu.Unlock()
				return queryError(Query{Name: name}, ErrUnknownQuery)
			}
			if kept[i].refers() {
				a.mu.Unlock()
				return queryError(kept[i].query, errRefsAtRunTime)
			}
			gone = append(gone, kept[i])
			kept = slices.Delete(kept, i, i+1)
		}
		a.fields, a.generation = kept, a.generation+1
		a.mu.Unlock()
		a.closeFields(gone)
		return nil
	})
}

// Replace replaces the query of the same name: other namespaces, selectors, another kind. Objects
// of both queries stay as they are. Objects of the old one alone stay until the new one is
// complete, but those in namespaces that are no longer wanted leave at once.
func (a *Accumulator) Replace(ctx context.Context, q Query) error {
	return a.edit(ctx, func() error {
		i := slices.IndexFunc(a.fieldsNow(), func(f *field) bool { return f.name == q.Name })
		if i < 0 {
			return queryError(q, ErrUnknownQuery)
		}
		f := a.fieldsNow()[i]
		if f.refs != nil || q.Refs != nil {
			return queryError(q, errRefsAtRunTime)
		}
		r, err := q.Resolve(ctx)
		if err != nil {
			return queryError(q, err)
		}
		spaces, err := a.joinSpaces(ctx, q)
		if err != nil {
			return err
		}
		if err := a.attach(f, q, r, spaces); err != nil {
			closeSpaces(spaces)
			return err
		}
		a.mu.Lock()
		f.regroup = true
		a.generation++ // its keys may have another form now
		a.mu.Unlock()
		return nil
	})
}

// edit makes one change of the queries at a time.
func (a *Accumulator) edit(ctx context.Context, change func() error) error {
	select {
	case a.editing <- struct{}{}:
		defer func() { <-a.editing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := errors.Join(a.Err(), ctx.Err()); err != nil {
		return err
	}
	err := change()
	a.kick()
	a.pacer.poke()
	return err
}

// open makes a field of a query.
func (a *Accumulator) open(ctx context.Context, q Query) (*field, error) {
	f := &field{name: q.Name, query: q, since: time.Now()}
	r, err := q.Resolve(ctx)
	switch {
	case err == nil:
	case q.Optional && ctx.Err() == nil:
		f.missed(err)
		return f, nil
	default:
		return nil, queryError(q, err)
	}
	if err := a.connect(ctx, f, r); err != nil {
		return nil, err
	}
	return f, nil
}

// connect joins all streams of a field.
func (a *Accumulator) connect(ctx context.Context, f *field, r Resource) error {
	spaces, err := a.joinSpaces(ctx, f.query)
	if err != nil {
		return err
	}
	if err := a.attach(f, f.query, r, spaces); err != nil {
		closeSpaces(spaces)
		return err
	}
	return nil
}

// joinSpaces joins the stream that lists the selected namespaces.
func (a *Accumulator) joinSpaces(ctx context.Context, q Query) (*stream.Listener, error) {
	if q.Spaces == nil {
		return nil, nil
	}
	r, err := q.Spaces.Resolve(ctx)
	if err != nil {
		return nil, queryError(q, fmt.Errorf("find namespaces: %w", err))
	}
	sub, err := a.streams.Join(r, stream.Spec{Selection: Selection{Labels: q.Spaces.Labels}, Form: Metadata}, a.hears())
	if err != nil {
		return nil, queryError(q, err)
	}
	return sub, nil
}

func (a *Accumulator) closeFields(fields []*field) {
	a.mu.Lock()
	var subs []*stream.Listener
	for _, f := range fields {
		subs = append(subs, f.subscriptions()...)
	}
	a.mu.Unlock()
	for _, sub := range subs {
		sub.Close()
	}
}

func (a *Accumulator) fieldsNow() []*field {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fields
}

// kick wakes the manager.
func (a *Accumulator) kick() {
	select {
	case a.kicked <- struct{}{}:
	default:
	}
}

// manage helps late streams, and looks for kinds that are unknown or no longer served as before.
// It runs until the accumulator ends.
func (a *Accumulator) manage(ctx context.Context) {
	for {
		aligned := a.alignAll()
		a.catchUp(ctx)
		stuck := len(a.waiting(nil)) > 0
		if !aligned && !stuck {
			continue
		}
		if len(a.homeless()) == 0 && !stuck {
			select {
			case <-ctx.Done():
				return
			case <-a.kicked:
				continue
			}
		}
		if stream.Sleep(ctx, a.streams.Config().KindPoll); ctx.Err() != nil {
			return
		}
		_ = a.edit(ctx, func() error {
			for _, f := range a.homeless() {
				a.rehome(ctx, f)
			}
			return nil
		})
	}
}

// alignAll reports whether every union has been aligned, see field.aligned.
func (a *Accumulator) alignAll() bool {
	all := true
	for _, f := range a.fieldsNow() {
		if f.aligned.Load() || !a.queryOf(f).union() {
			continue
		}
		if a.align(f) {
			a.pacer.poke()
		} else {
			all = false
		}
	}
	return all
}

// catchUpAfter is how long a late stream may take by itself. Most are late for a moment only.
const catchUpAfter = 100 * time.Millisecond

// catchUp asks the server on behalf of late streams, if a shown object waits for them.
func (a *Accumulator) catchUp(ctx context.Context) {
	if len(a.waiting(nil)) == 0 {
		return
	}
	stream.Sleep(ctx, catchUpAfter)
	var tasks sync.WaitGroup
	for sub, until := range a.waiting(nil) {
		tasks.Go(func() {
			if sub.CatchUp(ctx, until) == nil {
				a.waiting(sub)
			}
		})
	}
	tasks.Wait()
	a.pacer.poke()
}

// waiting returns the late streams with the versions that they have to reach, without caughtUp,
// which has reached its version.
func (a *Accumulator) waiting(caughtUp *stream.Listener) map[*stream.Listener]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[*stream.Listener]string)
	for _, f := range a.fields {
		if i := slices.Index(f.waiting, caughtUp); i >= 0 {
			f.waiting = slices.Delete(slices.Clone(f.waiting), i, i+1)
			f.caughtUp = true
		}
		for _, sub := range f.waiting {
			all[sub] = f.until
		}
	}
	return all
}

// homeless returns the fields whose kind is unknown, or no longer served as before.
func (a *Accumulator) homeless() (found []*field) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.fields {
		if f.err != nil || f.unserved() {
			found = append(found, f)
		}
	}
	return found
}

// rehome finds out how the kind of a field is served now.
func (a *Accumulator) rehome(ctx context.Context, f *field) {
	a.mu.Lock()
	q, r, spaces, known := f.query, f.resource, f.spaces, f.err == nil
	a.mu.Unlock()
	now, err := q.Resolve(ctx)
	switch {
	case known && (err != nil || now.Serves(r)):
		return // the streams report the error
	case known:
		_ = a.attach(f, q, now, spaces) // it fails only after the end
		return
	case err == nil:
		err = a.connect(ctx, f, now)
	}
	if err != nil {
		a.mu.Lock()
		f.missed(err)
		a.mu.Unlock()
		a.pacer.poke()
	}
}
