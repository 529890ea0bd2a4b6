package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// union is a query that runs on streams over namespaces and names: one, or several, no two of which
// have one object. A kind that is served in another way has two sets of streams for a while, so one
// stream is a case of this type and not another type; see Take.
type union struct {
	host Host
	wake func() // says that there may be news

	mu lockorder.Mutex[lockorder.Union]
	kind
	members
	lateness
	closed bool

	// awaited: it is a successor that waits.
	awaited atomic.Bool
	// taken: a reader takes batches, so parts change in its turn. Guarded by mu.
	taken bool

	// These belong to the reader's turn.
	within  map[string]bool  // the selected namespaces; nil: all
	batches []audience.Batch // of the streams, empty between two turns
}

func newUnion(h Host, k kind) *union { return &union{host: h, wake: h.Wake, kind: k} }

func (u *union) Query() Query {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.query
}

// now returns the streams of the query, and how its kind is served.
func (u *union) now() (parts []*part, spaces *stream.Listener, k kind) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.parts, u.spaces, u.kind
}

// current returns the streams that count now.
func (u *union) current() (parts []*part, spaces *stream.Listener) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counting(), u.spaces
}

func (u *union) Phase() Phase {
	u.mu.Lock()
	parts, moving, spaces, k := u.counting(), u.moving.Load(), u.spaces, u.kind
	u.mu.Unlock()
	if !k.known() {
		return k.phase()
	}
	optional := k.query.Optional
	unsettled := func(p *part) bool { return !p.settled(optional) }
	switch {
	case moving, spaces != nil && !spaces.State().Settled(optional), slices.ContainsFunc(parts, unsettled):
		return phaseOf(listenersOf(parts))
	case optional && spaces != nil && spaces.State().First >= stream.Refused:
		return Empty // the selected namespaces cannot be known
	case slices.ContainsFunc(parts, func(p *part) bool { return !optional || p.listener.State().First == stream.NotRefused }):
		return Complete
	}
	return Empty
}

// phaseOf returns the phase of streams some of which are incomplete.
func phaseOf(all []*stream.Listener) Phase {
	phase := Incomplete
	for _, l := range all {
		switch st := l.State(); {
		case st.Ready():
			phase = Replaced
		case st.Phase == audience.Dropped:
			return Incomplete
		}
	}
	return phase
}

// lacks reports whether the server refuses, for not very long yet, to list what another union of
// the kind has.
func (u *union) lacks(other *union) bool {
	parts, spaces := u.current()
	theirs, theirSpaces := other.current()
	pending := func(l *stream.Listener) bool { st := l.State(); return st.First == stream.Refused }
	if spaces != nil && theirSpaces != nil && pending(spaces) && theirSpaces.State().Ready() {
		return true
	}
	return slices.ContainsFunc(parts, func(p *part) bool {
		return pending(p.listener) && slices.ContainsFunc(theirs, func(had *part) bool {
			ns := had.listener.Namespace()
			return (ns == "" || ns == p.listener.Namespace()) && had.ready()
		})
	})
}

func (u *union) News() bool {
	u.mu.Lock()
	parts, spaces, regroup := u.parts, u.spaces, u.regroup || u.caughtUp
	u.mu.Unlock()
	if regroup || spaces != nil && spaces.State().News {
		return true
	}
	return slices.ContainsFunc(parts, func(p *part) bool { return p.listener.State().News })
}

// AtRest: no part comes or leaves, and nothing waits for a stream that is late.
func (u *union) AtRest() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.regroup && !u.caughtUp && !u.moving.Load() && u.waiting == nil
}

func (u *union) Get(key object.Key) object.Object {
	parts, spaces := u.current()
	p := covering(parts, key)
	if p == nil || !within(spaces, key.Namespace) {
		return nil
	}
	return p.listener.Get(key)
}

func (u *union) Each(namespace string, f func(object.Key, object.Object)) {
	parts, spaces := u.current()
	namespaces := make(map[string]bool)
	for _, p := range parts {
		if ns := p.listener.Namespace(); ns != "" && namespace != "" && ns != namespace {
			continue
		}
		p.listener.Each(namespace, func(key object.Key, o object.Object) {
			in, known := namespaces[key.Namespace]
			if !known {
				in = within(spaces, key.Namespace)
				namespaces[key.Namespace] = in
			}
			if in {
				f(key, o)
			}
		})
	}
}

// within reports whether a namespace is selected; nil selects all.
func within(spaces *stream.Listener, namespace string) bool {
	return spaces == nil || spaces.Get(object.Key{Name: namespace}) != nil
}

func (u *union) Status() Status {
	u.mu.Lock()
	parts, spaces, k := u.wanted(), u.spaces, u.kind
	u.mu.Unlock()
	st := k.status()
	if k.known() && len(parts) == 0 {
		st.State = stream.Synced // no namespaces
	}
	absent := st.addAll(listenersOf(parts))
	if spaces != nil {
		if s := spaces.Status(); s.State != stream.Synced {
			s.Error = strings.TrimSpace("namespaces: " + s.Error)
			s.Objects, s.Restarts, s.Pending, s.Unsettled = 0, 0, 0, 0
			st.add(s, len(parts) == 0)
			absent = absent && spaces.State().Absent()
		}
	}
	st.Absent = st.Absent || st.Optional && k.known() && absent && st.State != stream.Synced
	if k.unfit() {
		st.Error, st.Absent = k.err.Error(), false
	}
	return st
}

func (u *union) Connect(context.Context) error {
	_, _, k := u.now()
	if k.err != nil {
		return nil // Resolve does it later
	}
	return u.connect(k.query, k.resource, k.spacesOf)
}

// connect joins the streams of a query, and that of its namespaces.
func (u *union) connect(q Query, r, namespaces object.Resource) error {
	spaces, err := u.joinSpaces(q, namespaces)
	if err != nil {
		return err
	}
	if err := u.attach(q, r, spaces); err != nil {
		if spaces != nil {
			spaces.Close()
		}
		return err
	}
	return nil
}

func (u *union) Unresolved() bool {
	u.mu.Lock()
	wanted, err := u.wanted(), u.err
	u.mu.Unlock()
	return err != nil || slices.ContainsFunc(wanted, func(p *part) bool {
		return p.listener.State().Misplaced
	})
}

func (u *union) Resolve(ctx context.Context) {
	_, spaces, k := u.now()
	r, err := k.query.Resolve(ctx)
	switch {
	case k.known():
		if err == nil && !r.Serves(k.resource) {
			err = u.attach(k.query, r, spaces)
		}
		u.mu.Lock()
		u.suits(err)
		u.mu.Unlock()
		return // the streams report other errors
	case err == nil:
		var namespaces object.Resource
		if namespaces, err = k.query.findSpaces(ctx); err == nil {
			err = u.connect(k.query, r, namespaces)
		}
	}
	if err != nil {
		u.mu.Lock()
		u.missed(err)
		u.mu.Unlock()
		u.host.Wake()
	}
}

// joinSpaces joins the stream that lists the selected namespaces, if the query selects any.
func (u *union) joinSpaces(q Query, r object.Resource) (*stream.Listener, error) {
	if q.Spaces == nil {
		return nil, nil
	}
	spec := object.Spec{Selection: object.Selection{Labels: q.Spaces.Labels}, Form: object.Metadata}
	o := u.host.listen(Query{})
	o.Wake = u.wake
	l, err := u.host.Streams.Join(r, spec, o)
	if err != nil {
		return nil, q.Error(err)
	}
	return l, nil
}

// attach joins the streams that a query wants of a resource, in the selected namespaces. Streams
// that it already has stay. It closes the former listener of namespaces if there is another. On an
// error nothing has changed, and the caller closes spaces.
func (u *union) attach(q Query, r object.Resource, spaces *stream.Listener) error {
	parts, err := u.join(q, r)
	if err != nil {
		return err
	}
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		closeAll(listenersOf(parts))
		return stream.ErrClosed
	}
	unneeded := u.swap(parts)
	if old := u.spaces; old != nil && old != spaces {
		unneeded = append(unneeded, old)
	}
	u.serve(q, r)
	u.spaces = spaces // at once: the parts would show too much without it
	u.mu.Unlock()
	closeAll(unneeded)
	u.wake() // a first list may have been in before the query was
	return nil
}

// join joins every stream of a query.
func (u *union) join(q Query, r object.Resource) (parts []*part, err error) {
	l := u.host.listen(q)
	l.Wake = func() {
		u.wake()
		if u.moving.Load() {
			u.host.Attend()
		}
	}
	for _, w := range q.Watches(r) {
		listener, err := u.host.Streams.Join(r, w, l)
		if err != nil {
			closeAll(listenersOf(parts))
			if errors.Is(err, object.ErrUnjudged) {
				err = fmt.Errorf("%w: %w", ErrUnfit, err)
			}
			return nil, q.Error(err)
		}
		parts = append(parts, &part{listener: listener})
	}
	return parts, nil
}

func (u *union) Listeners() []*stream.Listener {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.listeners()
}

func (u *union) Waits() Waits {
	u.mu.Lock()
	defer u.mu.Unlock()
	return Waits{Late: len(u.waiting)}
}

func (u *union) Close() {
	u.mu.Lock()
	u.closed = true
	all := u.listeners()
	u.mu.Unlock()
	closeAll(all)
}
