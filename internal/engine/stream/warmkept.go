package stream

import (
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// kept is what has to be written of a stream. The stream's lock guards it.
type kept struct {
	start string // how the stream has begun, for its status
	// asked is the origin that was asked for before the list under way, and origin that of the
	// list that was taken in last; zero: it is not known, and nothing is written.
	asked, origin warm.Origin
	lists         int // that were taken in, or disowned: what is written meanwhile is given up
	// base is the file that the stream's objects are, but for what has changed; nil: a new one is
	// needed.
	base *baseFile
}

// baseFile is a base, and what has changed since it was begun.
type baseFile struct {
	id        string
	changed   map[object.Key]struct{}
	witnesses []warm.Witness
}

const (
	// changedLeast is how many objects may have changed before a new base is cheaper than more and
	// more changes, and changedShare which part of all.
	changedLeast = 1000
	changedShare = 8
)

// note notes a change: that what the watch shows of a key may have changed. Called with the
// stream's lock held.
func (k *kept) note(key object.Key, objects int) {
	if k.base == nil {
		return
	}
	if k.base.changed[key] = struct{}{}; len(k.base.changed) > changedLeast+2*objects {
		k.base = nil // what has gone is bounded, too
	}
}

// needsBase reports whether a new base is cheaper than the changes since the last one.
func (k *kept) needsBase(objects int) bool {
	return k.base == nil || len(k.base.changed) > max(changedLeast, objects/changedShare)
}

// listed notes that a list was taken in, which may be that of a warm start. Called with the
// stream's lock held.
func (k *kept) listed(from *baseFile) {
	k.lists++
	k.origin, k.base = k.asked, from
	if from != nil && from.changed == nil {
		from.changed = make(map[object.Key]struct{})
	}
}

// forget drops what would be written, and is being written: nobody knows of which server it is.
// Called with the stream's lock held.
func (k *kept) forget() {
	k.lists++
	k.origin, k.base = warm.Origin{}, nil
}

// witnessesMost is how many objects a file names that the server is asked for, of each sort: the
// newest, and any others.
const witnessesMost = warm.WitnessesMost / 2

// witnesses chooses objects as witnesses: the newest prove most, and others are likelier to stay
// as they are.
type witnesses struct {
	newest []object.Object // the newest first
	others []object.Object // any
}

// add offers an object.
func (w *witnesses) add(o object.Object) {
	if !coherence.Comparable(o.GetResourceVersion()) || o.GetUID() == "" || object.Ambiguous(object.KeyOf(o)) {
		return // the server may know the object by another name
	}
	at := len(w.newest)
	for at > 0 && coherence.Newer(o.GetResourceVersion(), w.newest[at-1].GetResourceVersion()) {
		at--
	}
	if at < witnessesMost {
		w.newest = append(w.newest, nil)
		copy(w.newest[at+1:], w.newest[at:])
		w.newest[at] = o
		if len(w.newest) <= witnessesMost {
			return
		}
		o = w.newest[witnessesMost]
		w.newest = w.newest[:witnessesMost]
	}
	if len(w.others) < witnessesMost {
		w.others = append(w.others, o)
	}
}

// all returns the witnesses.
func (w *witnesses) all() (all []warm.Witness) {
	for _, o := range append(w.newest[:len(w.newest):len(w.newest)], w.others...) {
		key := object.KeyOf(o)
		all = append(all, warm.Witness{
			Namespace: key.Namespace, Name: key.Name, UID: string(o.GetUID()), Version: o.GetResourceVersion(),
		})
	}
	return all
}
