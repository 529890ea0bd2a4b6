package refs

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// names are the objects that are named. The lock of their query guards them.
type names struct {
	named map[object.Key]*reference
	// dropped are keys that nothing names any more, and that the reader has not taken yet.
	dropped map[object.Key]bool
	fresh   fresh // the streams that the reader has not taken yet
}

// reference is an object that is named. The lock of its query guards it, but gone.
type reference struct {
	key   object.Key
	by    int              // how many objects name it: those shown, and those that wait
	ahead int              // how many objects do that nobody has yet, see coming
	watch *stream.Listener // nil if the kind is unknown, or no such object can exist
	since time.Time
	floor query.Position // the reader may have had the object as new as this, see behind
	gone  bool           // nothing names it any more. Guarded by fresh.mu
}

// watches returns the streams.
func (n *names) watches() (all []*stream.Listener) {
	for _, ref := range n.named {
		if ref.watch != nil {
			all = append(all, ref.watch)
		}
	}
	return all
}

// fate is what a change of the objects that name another means for that one.
type fate int

const (
	stays  fate = iota
	comes       // something names it: it is to be watched
	leaves      // nothing names it any more
	shows       // it was watched ahead, and is now to be shown
)

// count notes that an object names another, or, with -1, that it no longer does. ahead is of
// objects that nobody has yet: what they alone name is watched, and not shown.
func (n *names) count(key object.Key, by, ahead int) (*reference, fate) {
	ref, first := n.named[key], false
	if ref == nil {
		ref, first = &reference{key: key, since: time.Now()}, true
		n.named[key] = ref
	}
	had := ref.by > 0
	ref.by += by
	ref.ahead += ahead
	left, has := ref.by <= 0 && ref.ahead <= 0, ref.by > 0
	if left {
		delete(n.named, key)
		n.fresh.forget(ref)
	}
	if left || had && !has {
		if n.dropped == nil {
			n.dropped = make(map[object.Key]bool)
		}
		n.dropped[key] = true
	}
	switch {
	case left:
		return ref, leaves
	case first:
		return ref, comes
	case !had && has:
		return ref, shows
	}
	return ref, stays
}

// count is names.count, and does what follows from it.
func (r *followed) count(key object.Key, by, ahead int) {
	r.mu.Lock()
	ref, fate := r.names.count(key, by, ahead)
	old := ref.watch
	r.mu.Unlock()
	switch {
	case fate == comes:
		r.join(ref)
	case old == nil: // it has no stream
	case fate == leaves:
		old.Close()
	case fate == shows:
		old.Untake() // the reader may have had it before
		r.fresh.add(ref)
	}
}

// join watches an object that is named, if its kind is known and such an object can exist. It is
// called without locks, since a stream may ask for its source. If the kind is served in another
// way meanwhile, or nothing names the object any more, it does nothing.
func (r *followed) join(ref *reference) {
	r.mu.Lock()
	serving, k := r.serving, r.kind
	r.mu.Unlock()
	if !k.Known() || nowhere(ref.key, !k.Resource().Namespaced) {
		return
	}
	q := k.Query()
	l := r.host.Listen(q)
	l.From = stream.Own // there may be many
	noted := l.Noted
	l.Noted = func() {
		r.fresh.add(ref)
		noted()
	}
	l.Wake = func() {
		r.fresh.add(ref)
		if r.isBehind(ref) {
			r.host.Attend()
		}
		r.host.Follow()
		r.host.Wake()
	}
	name := object.Selection{Fields: fields.OneTermEqualSelector(metav1.ObjectNameField, ref.key.Name)}
	watch, err := r.host.Streams.Join(k.Resource(), object.Spec{
		Namespace: ref.key.Namespace, Selection: object.Selection{Labels: q.Labels, Fields: q.Fields}.And(name),
		Where: q.Where, Form: q.Form, Transform: q.Transform, Valid: q.Judge(),
	}, l)
	if err != nil {
		return // the streams have ended
	}
	r.mu.Lock()
	wanted := !r.kind.Over() && r.named[ref.key] == ref && r.serving == serving && ref.watch == nil
	if wanted {
		ref.watch = watch
	}
	warn := wanted && !r.warned && len(r.named) >= manyRefs
	r.warned = r.warned || warn
	r.mu.Unlock()
	if !wanted {
		watch.Close()
		return
	}
	r.fresh.add(ref) // it may already have objects
	if warn {
		r.host.Streams.Logger().Info("each object that is referred to has a watch of its own: a query without Refs may cost less",
			"query", q.Name, "objects", manyRefs)
	}
}

// fresh are the references whose streams may have changes. A stream notes each change here at
// once, whether it is worth a signal or not, so the reader need not ask the other streams.
type fresh struct {
	mu  lockorder.Mutex[lockorder.FreshReference] // taken with a stream's lock held, see Noted
	all map[*reference]bool
}

func (f *fresh) add(ref *reference) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ref.gone {
		return
	}
	if f.all == nil {
		f.all = make(map[*reference]bool)
	}
	f.all[ref] = true
}

// forget removes a reference for good.
func (f *fresh) forget(ref *reference) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref.gone = true
	delete(f.all, ref)
}

func (f *fresh) drain() map[*reference]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.all
	f.all = nil
	return all
}

// list returns the references, and keeps them.
func (f *fresh) list() []*reference {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.all))
}

// When a kind is served in another version, each object that is named gets another watch. Another
// reader may have had that watch for long, and it may be behind what was shown. So nothing is
// taken from it before it has passed what the former one had (G5).

// floorFor returns how new the next watch of an object has to be, that of a resource. Versions
// compare within one stored resource. Called with the lock of the query held.
func (ref *reference) floorFor(r object.Resource) query.Position {
	floor := ref.floor
	if floor.Storage != r.Storage {
		floor = query.Position{Storage: r.Storage}
	}
	if ref.watch != nil && ref.watch.Storage() == r.Storage {
		floor.Include(ref.watch)
	}
	return floor
}

// behind reports whether what watches an object may be older than what the reader has had. Called
// with mu held.
func (r *followed) behind(ref *reference) bool {
	if ref.watch == nil {
		return false
	}
	st := ref.watch.State()
	return st.Ready() && (ref.floor.Deletion > 0 || coherence.Newer(ref.floor.RV, st.PositionRV))
}

func (r *followed) isBehind(ref *reference) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.behind(ref)
}

// lateReference is an object that is named, whose watch is late.
type lateReference struct {
	of  *followed
	ref *reference
}

func (lateReference) Patience() time.Duration { return query.CatchUpAfter }

func (l lateReference) Do(ctx context.Context) (ok bool) {
	r := l.of
	r.mu.Lock()
	behind, floor, watch := r.behind(l.ref), l.ref.floor, l.ref.watch
	r.mu.Unlock()
	if behind {
		backTo, err := query.CatchUp(ctx, watch, floor)
		if err != nil {
			return false
		}
		if backTo != "" {
			watch.WentBack(backTo)
		}
		r.mu.Lock()
		if l.ref.floor == floor {
			l.ref.floor = query.Position{}
			if backTo != "" {
				r.breaks |= query.NewHistory
			}
		}
		r.mu.Unlock()
	}
	r.fresh.add(l.ref) // a bookmark may have moved it on, of which nobody is told
	return true
}
