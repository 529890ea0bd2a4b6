package stream

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/object"
)

// Sync returns when each stream is as new as the server was at the call, or with ctx's error. It
// costs a list of each stream's query, or, of many objects, a list of one and a short watch.
func Sync(ctx context.Context, streams []*Stream) error {
	return syncAll(streams, func(s *Stream) error { return syncing{s}.to(ctx, "") })
}

// SyncAll is [Sync] for the streams of some listeners, for a caller that must go on with what
// can be had: where the server refuses the list for lack of rights, has no such resource or no list
// of it, and says so again, what is shown stays as it is, and that is no error. Where something is
// shown, it has to say so for some seconds: the right may come back.
func SyncAll(ctx context.Context, listeners []*Listener) error {
	var all []*Stream
	for _, l := range listeners {
		if !slices.Contains(all, l.stream) {
			all = append(all, l.stream)
		}
	}
	return syncAll(all, func(st *Stream) error {
		most, pause := forbiddenForGood, askAgain
		if st.hasList() {
			most = forbiddenForLong
		}
		for refused := 1; ; refused++ {
			err := syncing{st}.to(ctx, "")
			if err == nil || ctx.Err() != nil || classify(err) == Retrying && !final(err) {
				return err
			}
			if refused == most {
				return nil
			}
			source.Sleep(ctx, pause)
			pause *= 2
		}
	})
}

// CatchUp returns when the listener's stream is as new as a version, or with an error. It asks the
// server for the list at that very version, as long as the server knows it, for source.OpenTimeout
// at most. It returns the version of the list, "" if the stream has ended. If that version is
// older than the one that was asked for, the server's history went back.
func (l *Listener) CatchUp(ctx context.Context, rv string) (listRV string, err error) {
	ctx, cancel := context.WithTimeout(ctx, source.OpenTimeout)
	defer cancel()
	return syncing{l.stream}.upTo(ctx, rv)
}

// askAgain is how soon a server that has refused is asked again. Each pause is twice as long as the
// one before.
const askAgain = 100 * time.Millisecond

// hasList reports whether the stream has its whole list.
func (s *Stream) hasList() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress.phase.listed()
}

func syncAll(all []*Stream, sync func(*Stream) error) error {
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

// syncing brings a stream up to a version, or to the present.
type syncing struct{ *Stream }

// to returns when the stream is as new as a version, or, with "", as the server was at the
// call.
func (s syncing) to(ctx context.Context, rv string) error {
	_, err := s.upTo(ctx, rv)
	return err
}

// upTo is to, with the version of the list that the stream has come up to.
func (s syncing) upTo(ctx context.Context, rv string) (listRV string, err error) {
	news := make(chan struct{}, 1)
	s.mu.Lock()
	s.waiters[news] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiters, news)
		s.mu.Unlock()
	}()
	target, err := s.goalAt(ctx, rv, news)
	if err != nil {
		return "", fmt.Errorf("sync %s: %w", s.Key.Resource, err)
	}
	for !s.reached(target) {
		select {
		case <-news:
		case <-ctx.Done():
			return "", fmt.Errorf("sync %s: %w", s.Key.Resource, ctx.Err())
		case <-s.done:
			if s.shared.Closed() {
				return "", ErrClosed
			}
			return "", nil // nobody reads it any more
		}
	}
	return target.rv, nil
}

// goal is the server's state at one moment.
type goal struct {
	rv       string
	versions map[object.Key]string // by a name that no other object has
	// recent: nothing has happened after afterRV up to rv. There are no versions.
	recent  bool
	afterRV string
}

// goalAt asks for the server's state at a version, as long as the server knows it, or its newest.
func (s syncing) goalAt(ctx context.Context, rv string, news <-chan struct{}) (goal, error) {
	if rv == "" {
		if g, ok := s.recentGoal(ctx, news); ok {
			return g, nil
		}
	}
	o := s.requests.Options()
	if coherence.Comparable(rv) {
		o.ResourceVersion, o.ResourceVersionMatch = rv, metav1.ResourceVersionMatchExact
		g, err := s.listGoal(ctx, o)
		if err == nil || ctx.Err() != nil {
			return g, err
		}
		o = s.requests.Options()
	}
	return s.listGoal(ctx, o)
}

func (s syncing) listGoal(ctx context.Context, o metav1.ListOptions) (g goal, err error) {
	o.Limit = s.config.firstPage()
	g.rv, err = s.requests.ListPatiently(ctx, o, func() func(runtime.Object) error {
		g.versions = make(map[object.Key]string)
		return func(item runtime.Object) error {
			s.note(&g, item)
			if s.shared.Room.Exceeds(len(g.versions)) {
				return s.shared.Room.Full()
			}
			return nil
		}
	})
	if err == nil {
		err = source.CheckListVersion(g.rv, s.Position())
	}
	return g, err
}

// note adds an item of the server's list to a goal.
func (s syncing) note(g *goal, item runtime.Object) {
	o, err := s.Checked(item)
	if err != nil || !s.Matches(o) || s.LeavesOut(o) {
		return
	}
	key := object.KeyOf(o)
	g.versions[store.Name(key, o.GetUID())] = o.GetResourceVersion()
}

// reached reports whether the watch has delivered everything up to the goal, or the same state:
// the store is the goal, or nothing has happened since. Then the position follows, though no event
// or bookmark said so, and what the watch may still bring of the time before is old news.
func (s syncing) reached(g goal) bool {
	s.mu.Lock()
	if !s.progress.phase.listed() {
		s.mu.Unlock()
		return false
	}
	if !coherence.Newer(g.rv, s.store.View.Position()) {
		s.mu.Unlock()
		return true
	}
	var ended []coherence.Ended
	switch {
	case g.recent && !coherence.Newer(g.afterRV, s.store.View.Position()):
		ended = s.store.View.Advance(g.rv) // as with a bookmark
	case !g.recent && s.store.HasVersions(g.rv, g.versions):
		ended = s.store.List(g.rv)
	default:
		s.mu.Unlock()
		return false
	}
	wake := s.showStored(nil, ended, object.Key{})
	s.waiters.wake() // the position has moved: another Sync may wait for that
	s.mu.Unlock()
	run(wake)
	return true
}

// recentGoal is the server's state now, as a short watch tells it: a Sync of many objects does not
// list them. ok is false where a list has to tell. news says that the stream itself has got on.
func (s syncing) recentGoal(ctx context.Context, news <-chan struct{}) (g goal, ok bool) {
	r, ok := s.requests.Recent(ctx, s.many(), s.Position, news)
	return goal{rv: r.RV, afterRV: r.LastRV, recent: true}, ok
}

// many returns the stream's position, if a list of its objects takes more than one page. Otherwise
// it returns "".
func (s syncing) many() (positionRV string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.progress.phase.listed() || int64(len(s.store.Objects)) <= s.config.firstPage() {
		return ""
	}
	return s.store.View.Position()
}
