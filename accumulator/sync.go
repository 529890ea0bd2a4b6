package accumulator

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
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

func (s *stream) sync(ctx context.Context) error { return s.syncTo(ctx, "") }

// syncTo returns when the stream is as new as a version, or, for want of one, as the server was at the call.
func (s *stream) syncTo(ctx context.Context, version string) error {
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
		target, err := s.state(ctx, version)
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
	version  string
	versions map[Key]string
	objects  map[Key]Object // of a fake, where contents are compared
}

// state lists the server's state at a version, as long as it knows that still, or its newest.
func (s *stream) state(ctx context.Context, version string) (goal, error) {
	if coherence.Comparable(version) {
		g, err := s.list(ctx, metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if err == nil || ctx.Err() != nil {
			return g, err
		}
	}
	return s.list(ctx, metav1.ListOptions{})
}

// list lists in pages, starting with a list as asked for.
func (s *stream) list(ctx context.Context, first metav1.ListOptions) (goal, error) {
	g := newGoal()
	o := s.feed.options()
	o.Limit = pageSize
	o.ResourceVersion, o.ResourceVersionMatch = first.ResourceVersion, first.ResourceVersionMatch
	for {
		list, err := listPatiently(ctx, s.feed.source, o, func(item runtime.Object) error { s.note(&g, item); return nil })
		switch {
		case err != nil && o.Continue != "" && expired(err):
			g, o.Continue, o.Limit = newGoal(), "", 0
			o.ResourceVersion, o.ResourceVersionMatch = first.ResourceVersion, first.ResourceVersionMatch
			continue
		case err != nil:
			return g, err
		}
		o.ResourceVersion, o.ResourceVersionMatch = "", "" // those of the list go with its token
		if o.Continue = list.Continue; o.Continue == "" {
			g.version = list.ResourceVersion
			return g, nil
		}
	}
}

func newGoal() goal { return goal{versions: make(map[Key]string), objects: make(map[Key]Object)} }

func (s *stream) note(g *goal, item runtime.Object) {
	o, ok := item.(Object)
	if !ok || !s.matches(o) {
		return
	}
	key := object.KeyOf(o)
	g.versions[key] = o.GetResourceVersion()
	if s.streams.config.ByContent {
		g.objects[key] = s.prepare(o)
	}
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
	s.asOf, s.listed = g.version, g.version
	wake := s.settleAll(s.view.List(g.version, func(key Key) types.UID { return object.UIDOf(s.store[key]) }))
	s.mu.Unlock()
	run(wake)
	return true
}

// contains reports whether every object of the goal is stored, no older, and nothing else
// is stored that is not newer. Called with mu held.
func (s *stream) contains(g goal) bool {
	for key, want := range g.versions {
		have, ok := s.store[key]
		if !ok || coherence.Newer(want, have.GetResourceVersion()) {
			return false
		}
	}
	for key, have := range s.store {
		if _, ok := g.versions[key]; !ok && !coherence.Newer(have.GetResourceVersion(), g.version) {
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
