package accumulator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/snapshot"
)

// Sync returns when every stream is as new as the server was at the call, or with
// ctx's error. It costs one list of each stream's query.
func (s *Streams) Sync(ctx context.Context) error {
	s.mu.Lock()
	var all []*stream
	for _, st := range s.streams {
		all = append(all, st)
	}
	s.mu.Unlock()
	return syncAll(all, func(st *stream) error { return st.sync(ctx) })
}

// Sync is [Streams.Sync] for the streams of this accumulator, and for who must go on with what can be had: where the
// server refuses the list for lack of rights, or has no such resource, and says so again, what is shown stays as it is, and that is
// no error.
func (a *Accumulator) Sync(ctx context.Context) error {
	var all []*stream
	for _, f := range a.fieldsNow() {
		a.mu.Lock()
		subs := f.subscriptions()
		a.mu.Unlock()
		for _, sub := range subs {
			if !slices.Contains(all, sub.stream) {
				all = append(all, sub.stream)
			}
		}
	}
	return syncAll(all, func(st *stream) error {
		for refused := 1; ; refused++ {
			err := st.sync(ctx)
			if err == nil || ctx.Err() != nil || classify(err) == Retrying {
				return err
			}
			if refused == forbiddenForGood {
				return nil
			}
			sleep(ctx, reask)
		}
	})
}

// reask is how soon a server that has refused is asked again.
const reask = 100 * time.Millisecond

func syncAll(all []*stream, sync func(*stream) error) error {
	done := make(chan error, len(all))
	for _, st := range all {
		go func() { done <- sync(st) }()
	}
	var first error
	for range all {
		if err := <-done; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// relook is how often a fake, which has no versions to wait for, is asked again.
const relook = 20 * time.Millisecond

func (s *stream) sync(ctx context.Context) error {
	news := make(chan struct{}, 1)
	s.mu.Lock()
	s.waiters[news] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiters, news)
		s.mu.Unlock()
	}()
	for {
		target, err := s.current(ctx)
		if err != nil {
			return fmt.Errorf("sync %s: %w", s.key.resource, err)
		}
		for !s.reached(target) {
			var again <-chan time.Time
			if s.streams.config.ByContent {
				again = time.After(relook)
			}
			select {
			case <-news:
				continue
			case <-again:
			case <-ctx.Done():
				return fmt.Errorf("sync %s: %w", s.key.resource, ctx.Err())
			case <-s.done:
				if s.streams.ctx.Err() != nil {
					return ErrClosed
				}
				return nil // nobody reads it any more
			}
			break
		}
		if !s.streams.config.ByContent || s.reached(target) {
			return nil
		}
	}
}

// goal is the server's state at one moment.
type goal struct {
	version string
	objects map[Key]Object
}

// current lists the server's state.
func (s *stream) current(ctx context.Context) (goal, error) {
	g := goal{objects: make(map[Key]Object)}
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		o.LabelSelector, o.FieldSelector = s.key.labels, s.key.fields
		return s.feed.listPatiently(ctx, o)
	})
	list, _, err := p.List(ctx, metav1.ListOptions{})
	if err != nil {
		return g, err
	}
	g.version = versionOf(list)
	return g, meta.EachListItem(list, func(item runtime.Object) error {
		if o, ok := item.(Object); ok && s.matches(o) {
			if s.streams.config.ByContent {
				o = s.prepare(o) // contents are compared
			}
			g.objects[snapshot.KeyOf(o)] = o
		}
		return nil
	})
}

// reached reports whether the watch has delivered everything up to the goal, or what amounts to
// it: the store is the goal. Then the position follows, though no event or bookmark
// said so, and what the watch may still bring of the time before is old news.
func (s *stream) reached(g goal) bool {
	s.mu.Lock()
	if !s.synced {
		s.mu.Unlock()
		return false
	}
	if s.streams.config.ByContent {
		defer s.mu.Unlock()
		return s.equals(g)
	}
	if !coherence.Newer(g.version, s.view.Position()) {
		s.mu.Unlock()
		return true
	}
	if !s.contains(g) {
		s.mu.Unlock()
		return false
	}
	s.asOf = g.version
	wake := s.settleAll(s.view.List(g.version, func(key Key) types.UID { return uidOf(s.store[key]) }))
	s.mu.Unlock()
	run(wake)
	return true
}

// contains reports whether every object of the goal is stored, no older, and nothing else
// is stored that is not newer. Called with mu held.
func (s *stream) contains(g goal) bool {
	for key, want := range g.objects {
		have, ok := s.store[key]
		if !ok || coherence.Newer(want.GetResourceVersion(), have.GetResourceVersion()) {
			return false
		}
	}
	for key, have := range s.store {
		if _, ok := g.objects[key]; !ok && !coherence.Newer(have.GetResourceVersion(), g.version) {
			return false
		}
	}
	return true
}

// equals reports whether the store is the goal, by content. Called with mu held.
func (s *stream) equals(g goal) bool {
	if len(s.store) != len(g.objects) {
		return false
	}
	for key, want := range g.objects {
		if have, ok := s.store[key]; !ok || !sameContent(have, want) {
			return false
		}
	}
	return true
}
