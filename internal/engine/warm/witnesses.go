package warm

import (
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
)

// witnessesMost is how many objects a file names that the server is asked for, of each sort: the
// newest, and any others.
const witnessesMost = files.WitnessesMost / 2

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
func (w *witnesses) all() (all []files.Witness) {
	for _, o := range append(w.newest[:len(w.newest):len(w.newest)], w.others...) {
		key := object.KeyOf(o)
		all = append(all, files.Witness{
			Namespace: key.Namespace, Name: key.Name, UID: string(o.GetUID()), Version: o.GetResourceVersion(),
		})
	}
	return all
}
