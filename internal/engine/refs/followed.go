package refs

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// Patience is how long, after the first snapshot, an object waits for the objects that it names.
const Patience = 10 * time.Second

// manyRefs is the number of references from which a log entry says that each costs a watch.
const manyRefs = 1000

// followed is a query with Refs: its objects are followed by name. It has one stream for each
// named object.
type followed struct {
	host  query.Host
	from  []*reading // of the queries whose objects name these
	rank  int
	known atomic.Bool // the names in all objects have been read

	mu   lockorder.Mutex[lockorder.References]
	kind query.Kind
	names
	serving int // how often the kind was served in another way
	warned  bool
	breaks  query.Breaks // of the next batch
}

func newFollowed(h query.Host, k query.Kind) *followed {
	return &followed{host: h, kind: k, names: names{named: make(map[object.Key]*reference)}}
}

func (r *followed) Query() query.Query { return r.kind.Query() }

func (r *followed) Base() query.Running { return r }

// now returns the streams, and how the kind is served.
func (r *followed) now() (all []*stream.Listener, k query.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watches(), r.kind
}

func (r *followed) Listeners() []*stream.Listener {
	all, _ := r.now()
	return all
}

func (r *followed) Phase() query.Phase {
	all, k := r.now()
	switch {
	case !k.Known():
		return k.Phase()
	case !r.known.Load() || slices.ContainsFunc(all, func(l *stream.Listener) bool { return !r.ready(l, k.Query().Optional) }):
		return query.PhaseOf(all)
	case slices.ContainsFunc(all, func(l *stream.Listener) bool { return !k.Query().Optional || l.State().First == stream.NotRefused }):
		return query.Complete
	}
	return query.Empty
}

// ready reports whether a named object is known to be present or absent. If the server refuses to
// read it, it counts as absent: for an optional query from the start, for others after the first
// snapshot.
func (r *followed) ready(l *stream.Listener, optional bool) bool {
	st := l.State()
	return st.Ready() || st.Gone || (optional || r.host.Ready()) && st.First >= stream.Refused
}

func (r *followed) State() query.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := r.fresh.list()
	news := func(ref *reference) bool {
		return ref.by > 0 && ref.watch != nil && ref.watch.State().News && !r.behind(ref)
	}
	return query.State{
		News:   len(r.dropped) > 0 || slices.ContainsFunc(fresh, news),
		AtRest: r.known.Load() && len(r.dropped) == 0 && len(fresh) == 0,
		Waits:  query.Waits{Named: len(r.named)},
	}
}

// Take takes the changes of named objects.
func (r *followed) Take(bool) query.Batch {
	if !r.known.Load() {
		return query.Batch{}
	}
	r.host.Streams.Reach(stream.AtNamed)
	r.mu.Lock()
	dropped, fresh := r.dropped, make(map[object.Key]*stream.Listener)
	r.dropped = nil
	for ref := range r.fresh.drain() {
		if ref.by == 0 || r.behind(ref) {
			r.fresh.add(ref) // it is for later
		} else if ref.watch != nil {
			fresh[ref.key] = ref.watch
		}
	}
	// one object that is not found says nothing about the kind
	out := query.Batch{Extent: query.Some, Absent: r.kind.Missing(), Breaks: r.breaks}
	r.breaks = 0
	r.mu.Unlock()
	now := make(map[object.Key]object.Object, len(fresh)+len(dropped))
	for key := range dropped {
		now[key] = nil
		out.AddSignal(key)
	}
	for key, l := range fresh {
		b := l.Take()
		if b.Extent == audience.Everything {
			now[key] = nil
			out.AddSignal(key)
		}
		for _, c := range b.Changes {
			if c.Key != key {
				continue // the kind has namespaces by now, and this object is in another one
			}
			if now[key] = c.Object; b.Signals[key] {
				out.AddSignal(key)
			}
		}
		if b.NewHistory {
			out.Breaks |= query.NewHistory
		}
	}
	r.keepFloors(fresh)
	for key, o := range now {
		out.Changes = append(out.Changes, audience.Change{Key: key, Object: o})
	}
	return out
}

// keepFloors keeps how new the objects are that the reader has just had of some streams, where
// another stream has taken the place of one meanwhile.
func (r *followed) keepFloors(had map[object.Key]*stream.Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, l := range had {
		if ref := r.named[key]; ref != nil && ref.watch != l && ref.floor.Storage == l.Storage() {
			ref.floor.Include(l)
		}
	}
}

func (r *followed) Untake() {
	r.mu.Lock()
	for _, ref := range r.named {
		r.fresh.add(ref)
	}
	all := r.watches()
	r.mu.Unlock()
	for _, l := range all {
		l.Untake()
	}
	r.host.Attend()
}

func (r *followed) Get(key object.Key) object.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ref := r.named[key]; ref != nil && ref.watch != nil {
		return ref.watch.Get(key)
	}
	return nil
}

func (r *followed) Each(namespace string, f func(object.Key, object.Object)) {
	for _, l := range r.Listeners() {
		l.Each(namespace, f)
	}
}

func (r *followed) Status() query.Status {
	all, k := r.now()
	st := k.Status()
	switch {
	case k.Known() && !r.known.Load():
		st.State = stream.Listing
	case k.Known() && len(all) == 0:
		st.State = stream.Synced
	}
	st.Refs = len(all)
	absent := st.AddAll(all)
	st.Absent = st.Absent || st.Optional && k.Known() && absent && st.State != stream.Synced
	return st
}

func (r *followed) Connect() error {
	if r.kind.Err() == nil {
		r.serveAs(r.kind.Resource())
	}
	return nil
}

func (r *followed) Attend() (all []query.Task) {
	watches, k := r.now()
	misplaced := func(l *stream.Listener) bool { return l.State().Misplaced }
	if k.Err() != nil || slices.ContainsFunc(watches, misplaced) {
		all = append(all, query.Unresolved{Kind: r, Host: &r.host})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range r.named {
		if r.behind(ref) {
			all = append(all, lateReference{r, ref})
		}
	}
	return all
}

// Resolve finds out how the kind is served now, and joins the streams.
func (r *followed) Resolve(ctx context.Context) {
	_, k := r.now()
	resource, err := k.Query().Resolve(ctx)
	switch {
	case k.Known() && (err != nil || resource.Serves(k.Resource())):
	case err == nil:
		r.serveAs(resource)
	default:
		r.mu.Lock()
		r.kind.Missed(err)
		r.mu.Unlock()
		r.host.Wake()
	}
}

// serveAs watches every named object as the resource is served now.
func (r *followed) serveAs(resource object.Resource) {
	r.mu.Lock()
	if r.kind.Wide() == resource.Namespaced {
		r.known.Store(false) // the names are read again
	}
	r.kind.Serve(resource, object.Resource{})
	r.serving++
	refs, old := make([]*reference, 0, len(r.named)), r.watches()
	for _, ref := range r.named {
		ref.floor = ref.floorFor(resource)
		ref.since, ref.watch = time.Now(), nil
		refs = append(refs, ref)
	}
	r.mu.Unlock()
	for _, ref := range refs {
		r.join(ref)
	}
	query.CloseAll(old)
	r.host.Follow()
	r.host.Wake()
}

func (r *followed) Close() {
	r.mu.Lock()
	r.kind.End()
	all := r.watches()
	r.mu.Unlock()
	query.CloseAll(all)
}

// isWide reports whether the kind has no namespaces, as far as it is known.
func (r *followed) isWide() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kind.Wide()
}

// know finds out whether the names are known: all queries that name these objects have been taken.
// It belongs to the reader's turn.
func (r *followed) know() {
	if r.known.Load() {
		return
	}
	all := func() bool {
		wide := r.isWide()
		return !slices.ContainsFunc(r.from, func(s *reading) bool { return !s.readFor(r, wide) && s.of.Load().Phase() != query.Empty })
	}
	if r.known.Store(all()); !all() { // a query was replaced meanwhile, or the kind is served in another way
		r.known.Store(false)
	}
}

// patience returns how long an object may still wait for one that it names; 0 if it need not wait.
// wide says how the name was read.
func (r *followed) patience(key object.Key, wide bool) time.Duration {
	r.mu.Lock()
	ref, k := *r.named[key], r.kind
	r.mu.Unlock()
	switch {
	case ref.watch != nil && r.ready(ref.watch, k.Query().Optional), ref.watch == nil && k.Missing():
		return 0
	case ref.watch == nil && k.Known() && k.Wide() == wide && nowhere(key, wide):
		return 0
	case !r.host.Ready():
		return Patience // however long it takes
	}
	return max(0, Patience-time.Since(ref.since))
}

// nowhere reports whether no object can have that name: it is invalid, or lacks the namespace
// that the kind requires. The path of such a name would be the path of another object.
func nowhere(key object.Key, wide bool) bool {
	return wide != (key.Namespace == "") || !utf8.ValidString(key.Name) || len(content.IsPathSegmentName(key.Name)) > 0 ||
		!wide && len(content.IsPathSegmentName(key.Namespace)) > 0
}
