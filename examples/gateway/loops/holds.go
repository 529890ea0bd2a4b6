package loops

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
)

// holds are the namespaces of which nginx refuses many objects. It names one at a time, and others
// must not wait for so many. So what is new in such a namespace is held as a whole, and is tried
// apart, a few runs of nginx between two configurations, until each object at fault is known.
// refusals has the lock.
type holds struct {
	all  map[string]*hold // by namespace
	last string           // the namespace that was tried last
	over bool             // one has ended, and objects are not told yet
}

type hold struct {
	message string // of nginx, about one object
	empty   bool   // what was served before is refused, too: nothing of the namespace is served
}

func (h *holds) init() { h.all = map[string]*hold{} }

func (h *holds) has(namespace string) bool { return h.all[namespace] != nil }

// add holds a namespace. It reports whether that is new.
func (h *holds) add(one nginx.Hold) bool {
	if h.has(one.Namespace) {
		return false
	}
	h.all[one.Namespace] = &hold{message: one.Message}
	return true
}

// empty leaves out a namespace that is held. It reports whether that is new.
func (h *holds) empty(namespace string) bool {
	was := h.all[namespace].empty
	h.all[namespace].empty = true
	return !was
}

// ended reports whether a hold has ended since it was asked last.
func (h *holds) ended() bool {
	over := h.over
	h.over = false
	return over
}

// of returns a refusal of each object that is new in a namespace that is held. served returns what
// nginx serves of an object.
func (h *holds) of(snap *translate.Snapshot, try string, served func(types.UID) kates.Object) map[types.UID]translate.Refusal {
	all := map[types.UID]translate.Refusal{}
	if len(h.all) == 0 {
		return all
	}
	for o := range objects(snap) {
		one := h.all[o.GetNamespace()]
		if one == nil || o.GetNamespace() == try {
			continue
		}
		before := served(o.GetUID())
		if before != nil && same(o, before) && !one.empty {
			continue
		}
		r := translate.Refusal{Version: o.GetResourceVersion(), Message: one.message, Held: true}
		if !one.empty {
			r.LastGood = before
		}
		all[o.GetUID()] = r
	}
	return all
}

// turn returns the namespace to try next. Each one that is held has its turn. Empty: none is held.
func (r *refusals) turn() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Sorted(maps.Keys(r.holds.all))
	if len(all) == 0 {
		return ""
	}
	next, _ := slices.BinarySearch(all, r.holds.last+"\x00")
	r.holds.last = all[next%len(all)]
	return r.holds.last
}

// tried notes which objects of a namespace that is held are at fault. If nginx takes the rest, the
// namespace is held no longer. It reports whether objects are to be told.
func (r *refusals) tried(snap *translate.Snapshot, namespace string, refused []nginx.Refusal, takesRest bool) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range refused {
		o := find(snap, one.Object.UID)
		if o == nil || o.GetNamespace() != namespace {
			takesRest = false // it is found when nginx is to serve it
			continue
		}
		before, again := r.refused[o.GetUID()]
		lastGood := r.served(o.GetUID())
		if again && same(o, before.object) {
			lastGood = nil // the last good version is refused, too
		}
		r.refused[o.GetUID()] = refusal{o, one.Message, lastGood}
		news = true
	}
	if takesRest {
		delete(r.holds.all, namespace)
		r.holds.over = true
	}
	return news
}
