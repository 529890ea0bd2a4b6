package keyed

import (
	"context"
	"maps"
	"slices"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/loops/lease/shards"
)

// Shard is this replica's part of the keys of a loop. It implements [Shards] by the protocol of
// package shards. Set Config and Watch before use.
type Shard struct {
	Config shards.Config
	// Whole says why the watches bring everything; empty: they bring this replica's part, where
	// that is possible.
	Whole string
	// Watch starts the watch of the group's Leases.
	Watch func(ctx context.Context) (LeaseWatch, error)

	mu      lockorder.Mutex[lockorder.Shard]
	replica *shards.Replica // nil while there is none
	keys    Keys
	owed    map[string]bool // keys that want a turn once they are this replica's
	tidy    int             // the size of owed at which gone keys are removed from it
}

// LeaseWatch is a watch of Leases that may end.
type LeaseWatch interface {
	shards.Watch
	Done() <-chan struct{}
	Err() error
	Close()
}

// tidyOwed is the least value of tidy.
const tidyOwed = 64

var _ Shards = (*Shard)(nil)

// Run implements [Shards].
func (s *Shard) Run(ctx context.Context, keys Keys, failed func(error)) error {
	watch, err := s.Watch(ctx)
	if err != nil {
		return err
	}
	defer watch.Close()
	config := s.Config
	config.Watch, config.Moved = watch, s.moved
	config.CatchUp = keys.Sync
	config.Keys, config.Streams = keys.Keys, func() string { return s.Whole }
	if divided, ok := keys.(Divided); ok && config.By != "" {
		s.divide(&config, divided)
	}
	s.mu.Lock()
	s.keys, s.owed, s.tidy = keys, make(map[string]bool), tidyOwed
	s.replica, err = shards.Join(ctx, config)
	replica := s.replica
	s.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-watch.Done():
		failed(watch.Err())
		<-ctx.Done() // until then work has keys
	}
	replica.Leave()
	s.mu.Lock()
	s.replica = nil
	s.mu.Unlock()
	return nil
}

// Gains implements [Shards].
func (s *Shard) Gains() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replica == nil {
		return 0
	}
	return s.replica.Gains()
}

// Enter implements [Shards].
func (s *Shard) Enter(ctx context.Context, key string, since uint64) (inner context.Context, leave func(), whose Whose) {
	s.mu.Lock()
	defer s.mu.Unlock()
	replica := s.replica
	switch {
	case replica == nil:
		s.owe(key)
		return ctx, func() {}, Theirs
	case replica.Take(key, since):
	case replica.Mine(key) && replica.Gains() != since:
		return ctx, func() {}, Stale
	default:
		s.owe(key)
		return ctx, func() {}, Theirs
	}
	delete(s.owed, key) // this is the turn that it was owed
	inner, cancel := replica.Context(ctx, key)
	return inner, func() {
		cancel()
		replica.Give(key)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.owed[key] && replica.Mine(key) {
			delete(s.owed, key)
			s.keys.Trigger(key)
		}
	}, Ours
}

// owe notes that a key is owed a turn. Whenever there are twice as many, it forgets those that are
// gone: there is no turn to give them.
func (s *Shard) owe(key string) {
	if s.owed == nil {
		return
	}
	if s.owed[key] = true; len(s.owed) < s.tidy {
		return
	}
	s.forgetGone(s.keys.Keys())
	s.tidy = max(tidyOwed, 2*len(s.owed))
}

func (s *Shard) forgetGone(existing []string) {
	maps.DeleteFunc(s.owed, func(key string, _ bool) bool {
		_, found := slices.BinarySearch(existing, key)
		return !found
	})
}

// moved gives a turn to the keys that have become this replica's, and notes those that have to
// wait for one.
func (s *Shard) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replica == nil {
		return
	}
	existing := s.keys.Keys()
	s.forgetGone(existing)
	for _, key := range existing {
		if !s.replica.Mine(key) {
			s.owed[key] = true
		}
	}
	var due []string
	for key := range s.owed {
		if s.replica.Mine(key) {
			due = append(due, key)
			delete(s.owed, key)
		}
	}
	if len(due) > 0 {
		s.keys.Trigger(due...)
	}
}

// divide has the watches bring what the replica needs.
func (s *Shard) divide(config *shards.Config, keys Divided) {
	config.Hash, config.Loads = keys.Hash, keys.Loads
	config.Streams = func() string { return s.streams(keys) }
	config.Bring = keys.Share
}

// streams says in words what the watches bring.
func (s *Shard) streams(keys Divided) string {
	s.mu.Lock()
	replica := s.replica
	s.mu.Unlock()
	if replica == nil {
		return ""
	}
	if ok, why := replica.ByRanges(); !ok {
		return why
	}
	return keys.Streams()
}
