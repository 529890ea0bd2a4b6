package query

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// Patience is how long, after the first snapshot, an object waits for the objects that it names.
const Patience = 10 * time.Second

// manyRefs is the number of references from which a log entry says that each costs a watch.
const manyRefs = 1000

// ErrRefsAtRunTime says that a query with Refs cannot change while it runs.
var ErrRefsAtRunTime = errors.New("queries with Refs are not added, removed or replaced at run time, nor are those removed whose objects name theirs: a query with Refs follows, by itself, what these objects name")

// references is a query with Refs. It has one stream for each named object.
type references struct {
	host  Host
	from  []*reading // of the queries whose objects name these
	rank  int
	known atomic.Bool // the names in all objects have been read

	mu lockorder.Mutex[lockorder.References]
	kind
	names
	serving int // how often the kind was served in another way
	warned  bool
	breaks  Breaks // of the next batch
}

func newReferences(h Host, k kind) *references {
	return &references{host: h, kind: k, names: names{named: make(map[object.Key]*reference)}}
}

func (r *references) Query() Query { return r.query }

// now returns the streams, and how the kind is served.
func (r *references) now() (all []*stream.Listener, k kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watches(), r.kind
}

func (r *references) Listeners() []*stream.Listener {
	all, _ := r.now()
	return all
}

func (r *references) Phase() Phase {
	all, k := r.now()
	switch {
	case !k.known():
		return k.phase()
	case !r.known.Load() || slices.ContainsFunc(all, func(l *stream.Listener) bool { return !r.ready(l, k.query.Optional) }):
		return phaseOf(all)
	case slices.ContainsFunc(all, func(l *stream.Listener) bool { return !k.query.Optional || l.State().First == stream.NotRefused }):
		return Complete
	}
	return Empty
}

// ready reports whether a named object is known to be present or absent. If the server refuses to
// read it, it counts as absent: for an optional query from the start, for others after the first
// snapshot.
func (r *references) ready(l *stream.Listener, optional bool) bool {
	st := l.State()
	return st.Ready() || st.Gone || (optional || r.host.Ready()) && st.First >= stream.Refused
}

func (r *references) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := r.fresh.list()
	news := func(ref *reference) bool {
		return ref.by > 0 && ref.watch != nil && ref.watch.State().News && !r.behind(ref)
	}
	return State{
		News:   len(r.dropped) > 0 || slices.ContainsFunc(fresh, news),
		AtRest: r.known.Load() && len(r.dropped) == 0 && len(fresh) == 0,
		Waits:  Waits{Named: len(r.named)},
	}
}

// Take takes the changes of named objects.
func (r *references) Take(bool) Batch {
	if !r.known.Load() {
		return Batch{}
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
	out := Batch{Extent: Some, Absent: r.life.missing(), Breaks: r.breaks}
	r.breaks = 0
	r.mu.Unlock()
	now := make(map[object.Key]object.Object, len(fresh)+len(dropped))
	for key := range dropped {
		now[key] = nil
		out.signal(key)
	}
	for key, l := range fresh {
		b := l.Take()
		if b.Extent == audience.Everything {
			now[key] = nil
			out.signal(key)
		}
		for _, c := range b.Changes {
			if c.Key != key {
				continue // the kind has namespaces by now, and this object is in another one
			}
			if now[key] = c.Object; b.Signals[key] {
				out.signal(key)
			}
		}
		out.Breaks |= when(b.NewHistory, NewHistory)
	}
	r.keepFloors(fresh)
	for key, o := range now {
		out.Changes = append(out.Changes, audience.Change{Key: key, Object: o})
	}
	return out
}

// keepFloors keeps how new the objects are that the reader has just had of some streams, where
// another stream has taken the place of one meanwhile.
func (r *references) keepFloors(had map[object.Key]*stream.Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, l := range had {
		if ref := r.named[key]; ref != nil && ref.watch != l && ref.floor.storage == l.Storage() {
			ref.floor.include(l)
		}
	}
}

func (r *references) Untake() {
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

func (r *references) Get(key object.Key) object.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ref := r.named[key]; ref != nil && ref.watch != nil {
		return ref.watch.Get(key)
	}
	return nil
}

func (r *references) Each(namespace string, f func(object.Key, object.Object)) {
	for _, l := range r.Listeners() {
		l.Each(namespace, f)
	}
}

func (r *references) Status() Status {
	all, k := r.now()
	st := k.status()
	switch {
	case k.known() && !r.known.Load():
		st.State = stream.Listing
	case k.known() && len(all) == 0:
		st.State = stream.Synced
	}
	st.Refs = len(all)
	absent := st.addAll(all)
	st.Absent = st.Absent || st.Optional && k.known() && absent && st.State != stream.Synced
	return st
}

func (r *references) connect() {
	if r.err == nil {
		r.serveAs(r.resource)
	}
}

func (r *references) Attend() (all []Task) {
	watches, k := r.now()
	misplaced := func(l *stream.Listener) bool { return l.State().Misplaced }
	if k.err != nil || slices.ContainsFunc(watches, misplaced) {
		all = append(all, unresolved{r, &r.host})
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

// resolve finds out how the kind is served now, and joins the streams.
func (r *references) resolve(ctx context.Context) {
	_, k := r.now()
	resource, err := k.query.Resolve(ctx)
	switch {
	case k.known() && (err != nil || resource.Serves(k.resource)):
	case err == nil:
		r.serveAs(resource)
	default:
		r.mu.Lock()
		r.missed(err)
		r.mu.Unlock()
		r.host.Wake()
	}
}

// serveAs watches every named object as the resource is served now.
func (r *references) serveAs(resource object.Resource) {
	r.mu.Lock()
	if r.wide() == resource.Namespaced {
		r.known.Store(false) // the names are read again
	}
	r.serve(resource, object.Resource{})
	r.life = r.life.after(served)
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
	closeAll(old)
	r.host.Follow()
	r.host.Wake()
}

func (r *references) Close() {
	r.mu.Lock()
	r.life = r.life.after(closing)
	all := r.watches()
	r.mu.Unlock()
	closeAll(all)
}

// isWide reports whether the kind has no namespaces, as far as it is known.
func (r *references) isWide() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wide()
}

// know finds out whether the names are known: all queries that name these objects have been taken.
// It belongs to the reader's turn.
func (r *references) know() {
	if r.known.Load() {
		return
	}
	all := func() bool {
		wide := r.isWide()
		return !slices.ContainsFunc(r.from, func(s *reading) bool { return !s.readFor(r, wide) && s.of.Load().Phase() != Empty })
	}
	if r.known.Store(all()); !all() { // a query was replaced meanwhile, or the kind is served in another way
		r.known.Store(false)
	}
}

// patience returns how long an object may still wait for one that it names; 0 if it need not wait.
// wide says how the name was read.
func (r *references) patience(key object.Key, wide bool) time.Duration {
	r.mu.Lock()
	ref, k := *r.named[key], r.kind
	r.mu.Unlock()
	switch {
	case ref.watch != nil && r.ready(ref.watch, k.query.Optional), ref.watch == nil && k.life.missing():
		return 0
	case ref.watch == nil && k.known() && k.wide() == wide && nowhere(key, wide):
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
