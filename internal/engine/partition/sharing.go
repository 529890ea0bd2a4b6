package partition

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/object"
)

// Sharing says how replicas divide the keys, so that the streams of each bring its part alone.
type Sharing struct {
	// Field returns by what the objects of a query are divided: all objects of a key have to be in
	// the same share. It is empty for a query that every replica watches whole.
	Field func(query.Query) shardrange.Field
	// Place returns the text that is hashed for a key. If Place is nil, the text is the UID of the
	// key's object in the query that is divided by [shardrange.UID], also after the object is gone.
	// Before such an object was there, the text is the UID of the controller of the key's objects
	// in queries that are divided by [shardrange.Controller].
	Place func(key string) string
}

// sharing is what partitions know of the share that their queries bring.
type sharing struct {
	Sharing
	// changing holds a value while queries are changed: a query brings the share that is wanted
	// when the change has been made, and not when it began.
	changing chan struct{}

	mu      lockorder.Mutex[lockorder.Sharing]
	wanted  shardrange.Ranges
	changed chan struct{} // closed when the queries have changed
}

// Share has the queries that replicas divide bring the keys of some hashes alone, and returns when
// they do: all of them at once, so that no turn has more of one query than of another. Objects
// that leave by that are gone for the partitions. Who calls Share sees to it that no turn of such
// a key is taken for one of a key that is gone.
func (p *Partitions) Share(ctx context.Context, ranges shardrange.Ranges) (err error) {
	s := p.sharing
	if s == nil {
		return nil
	}
	defer func() {
		if err != nil {
			p.scheduler.agenda.WakeWorker() // a worker may wait for a signal that came here
		}
	}()
	s.mu.Lock()
	s.wanted = ranges
	s.mu.Unlock()
	for {
		changed := s.next()
		if err := s.oneByOne(ctx, func() error {
			if other := p.unlike(wantedNow(p)); len(other) > 0 {
				return p.collector.Replace(ctx, other...)
			}
			return nil
		}); err != nil {
			return err
		}
		// The switch happens in the reader's turn, and all workers may be busy.
		if _, err := p.take(ctx, p.releaseDue); err != nil {
			return err
		}
		if len(p.unlike(shownNow(p))) == 0 {
			return nil
		}
		select {
		case <-p.Changed():
			if err := p.Err(); err != nil {
				return err
			}
			p.release()
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// oneByOne makes a change of the queries when no other one is being made.
func (s *sharing) oneByOne(ctx context.Context, change func() error) error {
	if s == nil {
		return change()
	}
	select {
	case s.changing <- struct{}{}:
		defer func() { <-s.changing }()
		return change()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wantedNow are the queries that the user wants, shownNow those that turns are made from.
func wantedNow(p *Partitions) []query.Query { return p.collector.Queries() }

func shownNow(p *Partitions) (all []query.Query) {
	for _, f := range p.collector.Fields() {
		all = append(all, f.Query.Query())
	}
	return all
}

// unlike returns those of the queries that bring another share than is wanted, as they have to be.
func (p *Partitions) unlike(queries []query.Query) (other []query.Query) {
	for i, q := range p.shared(queries, queries) {
		if !q.Shard.Covers(queries[i].Shard) || !queries[i].Shard.Covers(q.Shard) || q.Apart != queries[i].Apart {
			other = append(other, q)
		}
	}
	return other
}

// marked returns queries that the user wants, with what they are divided by, and their shares.
func (p *Partitions) marked(queries, all []query.Query) []query.Query {
	if p.sharing == nil {
		return queries
	}
	queries = slices.Clone(queries)
	for i := range queries {
		if q := &queries[i]; q.Key != nil && q.Refs == nil {
			q.ShardBy = p.sharing.Field(*q)
		}
	}
	return p.shared(queries, all)
}

// shared returns queries with the share that each is to bring. Those that name objects of others,
// or that others name, stay whole: what a name stands for may be in another share.
func (p *Partitions) shared(queries, all []query.Query) []query.Query {
	s := p.sharing
	if s == nil {
		return queries
	}
	s.mu.Lock()
	ranges := s.wanted
	s.mu.Unlock()
	queries = slices.Clone(queries)
	for i := range queries {
		q := &queries[i]
		named := slices.ContainsFunc(all, func(by query.Query) bool {
			return slices.ContainsFunc(by.Refs, func(r query.Ref) bool { return r.Query == q.Name })
		})
		if q.ShardBy != "" && !named {
			q.Shard, q.Apart = shardrange.Shard{Field: q.ShardBy, Ranges: ranges}, true
		}
	}
	return queries
}

// next returns a channel that is closed when the queries have changed.
func (s *sharing) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// adapted notes that the queries have changed.
func (s *sharing) adapted() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Hash is the place of a key among the hashes by which replicas divide keys. It is 0 for a key of
// which nothing is known.
func (p *Partitions) Hash(key string) uint64 {
	if p.sharing == nil {
		return 0
	}
	if place := p.sharing.Place; place != nil {
		return shardrange.Hash(place(key))
	}
	p.scheduler.mu.Lock()
	defer p.scheduler.mu.Unlock()
	if part := p.scheduler.parts[key]; part != nil {
		return part.hash
	}
	return 0
}

// Loads are how many objects the keys of each hash have, in order.
func (p *Partitions) Loads() []shardrange.Load {
	s := p.scheduler
	s.mu.Lock()
	loads := make([]shardrange.Load, 0, len(s.parts))
	for key, part := range s.parts {
		l := shardrange.Load{Hash: part.hash, Objects: part.objects}
		if p.sharing != nil && p.sharing.Place != nil {
			l.Hash = shardrange.Hash(p.sharing.Place(key))
		}
		if l.Objects > 0 {
			loads = append(loads, l)
		}
	}
	s.mu.Unlock()
	return shardrange.Merge(loads)
}

// locate notes where the partitions of an object are among the hashes. Called with the scheduler's
// lock held.
func (s *scheduler) locate(by shardrange.Field, m moved) {
	if m.now == nil {
		return
	}
	for _, key := range m.now.keys {
		part := s.parts[key]
		switch {
		case by == shardrange.UID:
			part.hash, part.rooted = shardrange.Hash(string(object.UIDOf(m.now.row.Source))), true
		case by == shardrange.Controller && !part.rooted:
			if owner := controllerOf(m.now.row.Source); owner != nil {
				part.hash = shardrange.Hash(string(owner.UID))
			}
		}
	}
}

func controllerOf(o object.Object) *metav1.OwnerReference { return metav1.GetControllerOfNoCopy(o) }
