package loops

import (
	"fmt"
	"iter"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
)

// refusals remembers which objects nginx has refused, and which versions it accepted before. The
// loop of the configuration writes it, and others read it. Each loop has snapshots of its own, so a
// refusal counts while the object of a snapshot asks for what was refused.
type refusals struct {
	mu      sync.Mutex
	refused map[types.UID]refusal
	holds   holds
	// accepted is the newest snapshot that nginx serves, but for what is in instead.
	accepted *translate.Snapshot
	instead  map[types.UID]translate.Refusal
	byUID    map[types.UID]kates.Object // of accepted; nil until somebody asks
}

// refusal is one object that nginx has refused.
type refusal struct {
	object   kates.Object // as it was refused
	message  string       // of nginx
	lastGood kates.Object // what is served in its place; nil: nothing
}

func (r *refusals) init() {
	r.refused, r.accepted = map[types.UID]refusal{}, &translate.Snapshot{}
	r.holds.init()
}

// refuse notes what nginx has refused of a snapshot. It is an error if nothing of it is new: the
// next configuration would be the same.
func (r *refusals) refuse(snap *translate.Snapshot, outcome nginx.Outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	news, refused := false, outcome.Refused
	for _, one := range refused {
		if at := one.Object.Namespace; r.holds.has(at) { // what it had before is refused, too
			news = r.holds.empty(at) || news
			continue
		}
		o := find(snap, one.Object.UID)
		before, again := r.refused[one.Object.UID]
		switch {
		case o == nil: // nginx blames what this snapshot has not: a last good Secret, say
		case !again: // the first time
			r.refused[o.GetUID()] = refusal{o, one.Message, r.served(o.GetUID())}
			news = true
		case !same(o, before.object): // another version of it
			r.refused[o.GetUID()] = refusal{o, one.Message, before.lastGood}
			news = true
		case before.lastGood != nil: // the last good version is refused, too
			r.refused[o.GetUID()] = refusal{o, one.Message, nil}
			news = true
		}
	}
	for _, one := range outcome.Held {
		news = r.holds.add(one) || news
	}
	if !news {
		return fmt.Errorf("nginx still refuses the configuration, which has nothing of %s %s/%s any more: %s",
			refused[0].Object.Kind, refused[0].Object.Namespace, refused[0].Object.Name, refused[0].Message)
	}
	return nil
}

// accept notes that nginx serves a snapshot, without what it has refused of it. It reports whether
// an object that was refused is served now, or gone.
func (r *refusals) accept(snap *translate.Snapshot) (healed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instead = r.of(snap, "")
	r.accepted, r.byUID = snap, nil
	healed = r.holds.ended()
	for uid, one := range r.refused {
		if o := find(snap, uid); o == nil || !same(o, one.object) {
			delete(r.refused, uid) // it is gone, or well
			healed = true
		}
	}
	return healed
}

// served returns the version of an object that nginx serves. nil: nothing of it.
func (r *refusals) served(uid types.UID) kates.Object {
	if one, ok := r.instead[uid]; ok {
		return one.LastGood
	}
	if r.byUID == nil {
		r.byUID = map[types.UID]kates.Object{}
		for o := range objects(r.accepted) {
			r.byUID[o.GetUID()] = o
		}
	}
	return r.byUID[uid]
}

// inForce returns the refusals that count for a snapshot: its objects ask for what was refused, or
// are new in a namespace that is held. The namespace to try, if not empty, is not held.
func (r *refusals) inForce(snap *translate.Snapshot, try string) map[types.UID]translate.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(snap, try)
}

func (r *refusals) of(snap *translate.Snapshot, try string) map[types.UID]translate.Refusal {
	all := r.holds.of(snap, try, r.served)
	for uid, one := range r.refused {
		if o := find(snap, uid); o != nil && same(o, one.object) {
			now := translate.Refusal{Version: o.GetResourceVersion(), Message: one.message, LastGood: one.lastGood}
			if held := r.holds.all[o.GetNamespace()]; held != nil && held.empty && o.GetNamespace() != try {
				now.LastGood = nil
			}
			all[uid] = now
		}
	}
	return all
}

// pending returns the objects that were refused, and ask for something else in this snapshot:
// whether nginx accepts that is not known yet.
func (r *refusals) pending(snap *translate.Snapshot) map[types.UID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[types.UID]bool{}
	for uid, one := range r.refused {
		if o := find(snap, uid); o != nil && !same(o, one.object) {
			all[uid] = true
		}
	}
	return all
}

// same reports whether two versions of an object ask for the same. A status, which the reports
// write, does not count.
func same(a, b kates.Object) bool {
	if a.GetGeneration() == 0 { // a kind without generations, such as Secret
		return a.GetResourceVersion() == b.GetResourceVersion()
	}
	return a.GetGeneration() == b.GetGeneration() && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) && maps.Equal(a.GetLabels(), b.GetLabels())
}

// find returns an object that a configuration may come from, and nil if there is none.
func find(snap *translate.Snapshot, uid types.UID) kates.Object {
	for o := range objects(snap) {
		if o.GetUID() == uid {
			return o
		}
	}
	return nil
}

// objects are those that a part of a configuration may come from.
func objects(snap *translate.Snapshot) iter.Seq[kates.Object] {
	return func(yield func(kates.Object) bool) {
		if each(snap.Ingresses, yield) && each(snap.Gateways, yield) && each(snap.Routes, yield) {
			each(snap.Secrets, yield)
		}
	}
}

func each[T kates.Object](all []T, yield func(kates.Object) bool) bool {
	for _, o := range all {
		if !yield(o) {
			return false
		}
	}
	return true
}
