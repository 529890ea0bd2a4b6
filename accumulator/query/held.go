package query

import "github.com/kates-go/kates/accumulator/stream"

// held keeps keys whose newest state may not be shown yet. There are two uses. A union waits
// until its streams have reached a version; W is how the key left them. An object that names
// others waits until those are known to be present or absent; W is the object with its names. The
// caller decides whether a key still waits. Each batch decides every key again. Meanwhile its
// shown state stays, also if a batch has all objects. A signal is not lost: it comes with the
// change.
type held[W any] struct {
	// perKey: the batch says which keys are worth a signal.
	perKey bool
	keys   map[stream.Key]W
	// signals are the keys whose change is worth a signal.
	signals map[stream.Key]bool
}

// decision is the present decision about a key.
type decision[W any] struct {
	object stream.Object // to be shown; nil: none
	kept   bool          // what is shown stays
	open   bool          // the key stays held, with w
	w      W
}

// add holds a key back, until it is decided.
func (h *held[W]) add(key stream.Key, w W) {
	if h.keys == nil {
		h.keys = make(map[stream.Key]W)
	}
	h.keys[key] = w
}

// signal notes that a change of a key is worth a signal.
func (h *held[W]) signal(key stream.Key) {
	if h.signals == nil {
		h.signals = make(map[stream.Key]bool)
	}
	h.signals[key] = true
}

// drop drops a key without a decision.
func (h *held[W]) drop(key stream.Key) {
	delete(h.keys, key)
	delete(h.signals, key)
}

// settle decides every key, and adds the changes to a batch. It reports whether one of them is
// worth a signal.
func (h *held[W]) settle(out *Batch, shown func(stream.Key) (stream.Object, bool), decide func(stream.Key, W) decision[W]) (news bool) {
	for key, w := range h.keys {
		d := decide(key, w)
		if !d.kept {
			out.OK = true
			out.Changes = append(out.Changes, stream.Change{Key: key, Object: d.object})
			if h.signals[key] {
				news = true
				h.tell(out, key)
			}
		} else if o, had := shown(key); had && out.Whole {
			out.Changes = append(out.Changes, stream.Change{Key: key, Object: o})
		}
		if !d.open {
			h.drop(key)
			continue
		}
		h.keys[key] = d.w
		if h.perKey && (out.Whole || out.Signals[key]) { // the change may come later
			h.signal(key)
		}
	}
	if len(h.keys) == 0 {
		h.keys, h.signals = nil, nil // a large map keeps its memory
	}
	return news
}

// tell adds to a batch that a key is worth a signal.
func (h *held[W]) tell(out *Batch, key stream.Key) {
	if h.perKey {
		out.signal(key)
	}
}
