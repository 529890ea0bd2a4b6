package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// union is a query that runs on streams over namespaces and names: one, or several, no two of which
// have one object. A kind that is served in another way gives it another set of streams, which
// takes over as a whole, see late.go. So there is neither a gap nor a duplicate, and nothing that
// was shown is taken back.
type union struct {
	host Host
	wake func() // says that there may be news
	heir bool   // it is to take the place of another query

	mu lockorder.Mutex[lockorder.Union]
	Kind
	lateness
	now  *streams // those that a reader sees; empty while the kind is not known
	next *streams // those of the kind as it is served now; nil: now has them
	// attends: streams wait to take over, and each event may let them. It is read without the lock.
	attends atomic.Bool

	// These belong to the reader's turn.
	within  map[string]bool  // the selected namespaces; nil: all
	batches []audience.Batch // of the streams, empty between two turns
}

// New makes a query that runs on streams. wake says that there may be news. heir: it is to take the
// place of another query. It sends no request, and nothing runs until Connect.
func New(h Host, k Kind, wake func(), heir bool) Running {
	return &union{host: h, wake: wake, heir: heir, Kind: k, now: &streams{}}
}

// unionOf returns the union that makes a query. Queries with Refs have none, and do not change.
func unionOf(q Running) *union { return q.Base().(*union) }

func (u *union) Base() Running { return u }

// to moves the query on. Called with mu held.
func (u *union) to(e event) {
	u.life = u.life.after(e)
	u.moved()
}

// moved notes whether streams wait to take over. Called with mu held.
func (u *union) moved() { u.attends.Store(u.next != nil || u.waits()) }

// waits reports whether the query waits to take the place of another one. Called with mu held.
func (u *union) waits() bool { return u.heir && u.life&^closed < shown }

// current returns the streams that a reader sees.
func (u *union) current() *streams {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.now
}

// latest returns the streams that the query wants. Called with mu held.
func (u *union) latest() *streams {
	if u.next != nil {
		return u.next
	}
	return u.now
}

func (u *union) Phase() Phase {
	u.mu.Lock()
	now, moving, k := u.now, u.next != nil, u.Kind
	u.mu.Unlock()
	if !k.Known() {
		return k.Phase()
	}
	return now.phase(k.query.Optional, moving)
}

// State: a query is at rest if no streams wait to take over, and nothing waits for one that is
// late. One that has had no batch is at rest while it has no list.
func (u *union) State() State {
	u.mu.Lock()
	now, next, mayTakeOver, late, shows := u.now, u.next, u.mayTakeOver, len(u.waiting), u.life == shown
	due := shows && !now.taken // the next batch has all objects
	rests := next == nil && late == 0 && !mayTakeOver && !due
	u.mu.Unlock()
	st := State{Waits: Waits{Late: late}}
	st.News = mayTakeOver || due || now.news() || next != nil && next.news()
	st.AtRest = rests && (shows || !now.anyReady())
	return st
}

func (u *union) Get(key object.Key) object.Object { return u.current().get(key) }

func (u *union) Each(namespace string, f func(object.Key, object.Object)) {
	u.current().each(namespace, f)
}

func (u *union) Status() Status {
	u.mu.Lock()
	s, k := u.latest(), u.Kind
	u.mu.Unlock()
	st := k.Status()
	if k.Known() && len(s.parts) == 0 {
		st.State = stream.Synced // no namespaces
	}
	absent := st.AddAll(listenersOf(s.parts))
	if s.spaces != nil {
		if ns := s.spaces.Status(); ns.State != stream.Synced {
			ns.Error = strings.TrimSpace("namespaces: " + ns.Error)
			ns.Objects, ns.Restarts, ns.Pending, ns.Unsettled = 0, 0, 0, 0
			st.add(ns, len(s.parts) == 0)
			absent = absent && s.spaces.State().Absent()
		}
	}
	st.Absent = st.Absent || st.Optional && k.Known() && absent && st.State != stream.Synced
	if k.unfit() {
		st.Error, st.Absent = k.err.Error(), false
	}
	return st
}

func (u *union) Connect() error {
	if u.err != nil {
		return nil // Resolve does it later
	}
	return u.attach(u.resource, u.spacesOf)
}

// Resolve finds out how the kind is served now, and joins its streams.
func (u *union) Resolve(ctx context.Context) {
	u.mu.Lock()
	k := u.Kind
	u.mu.Unlock()
	r, err := k.query.Resolve(ctx)
	if k.Known() {
		if err == nil && !r.Serves(k.resource) {
			err = u.attach(r, k.spacesOf)
		}
		u.mu.Lock()
		u.suits(err)
		u.mu.Unlock()
		return // the streams report other errors
	}
	var namespaces object.Resource
	if err == nil {
		namespaces, err = k.query.findSpaces(ctx)
	}
	if err == nil {
		err = u.attach(r, namespaces)
	}
	if err != nil {
		u.mu.Lock()
		u.Missed(err)
		u.mu.Unlock()
		u.host.Wake()
	}
}

// attach joins the streams that the query wants of a resource, in namespaces of another. They are
// shown at once if there are no others, and otherwise take over from these. On an error nothing has
// changed.
func (u *union) attach(r, namespaces object.Resource) error {
	fresh, err := u.join(r, namespaces)
	if err != nil {
		return err
	}
	u.mu.Lock()
	if u.life.over() {
		u.mu.Unlock()
		CloseAll(fresh.listeners())
		return stream.ErrClosed
	}
	var unneeded []*stream.Listener
	if u.next != nil {
		unneeded, u.next = u.next.listeners(), nil
	}
	switch {
	case !u.Known():
		u.now = fresh
	case r.Serves(u.now.resource): // it is served as before
		unneeded = append(unneeded, fresh.listeners()...)
	default:
		u.next = fresh
	}
	u.Serve(r, namespaces)
	u.moved()
	u.mu.Unlock()
	CloseAll(unneeded)
	u.wake() // a first list may have been in before the query was
	return nil
}

// join joins every stream of the query, and that of its namespaces.
func (u *union) join(r, namespaces object.Resource) (s *streams, err error) {
	s = &streams{resource: r}
	defer func() {
		if err != nil {
			CloseAll(s.listeners())
			err = u.query.Error(err)
		}
	}()
	if spaces := u.query.Spaces; spaces != nil {
		o := u.host.Listen(Query{})
		o.Wake = u.notify
		spec := object.Spec{Selection: object.Selection{Labels: spaces.Labels}, Form: object.Metadata}
		if s.spaces, err = u.host.Streams.Join(namespaces, spec, o); err != nil {
			return s, err
		}
	}
	o := u.host.Listen(u.query)
	o.Wake = u.notify
	for _, w := range u.query.Watches(r) {
		l, err := u.host.Streams.Join(r, w, o)
		if errors.Is(err, object.ErrUnjudged) {
			err = fmt.Errorf("%w: %w", ErrUnfit, err)
		}
		if err != nil {
			return s, err
		}
		s.parts = append(s.parts, &part{listener: l})
	}
	return s, nil
}

// notify says that a stream has news.
func (u *union) notify() {
	u.wake()
	if u.attends.Load() {
		u.host.Attend()
	}
}

func (u *union) Listeners() []*stream.Listener {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.listeners()
}

// listeners is Listeners, called with mu held.
func (u *union) listeners() []*stream.Listener {
	all := u.now.listeners()
	if u.next != nil {
		all = append(all, u.next.listeners()...)
	}
	return all
}

func (u *union) Close() {
	u.mu.Lock()
	u.to(closing)
	all := u.listeners()
	u.mu.Unlock()
	CloseAll(all)
}
