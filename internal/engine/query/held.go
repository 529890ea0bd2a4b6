package query

import (
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/object"
)

// held keeps objects whose newest state may not be shown yet: they wait until it is known whether
// those that they name exist. Each batch decides every key again. Meanwhile its shown state stays,
// also if a batch has all objects. A signal is not lost: it comes with the change.
type held struct {
	// perKey: the batch says which keys are worth a signal.
	perKey bool
	keys   map[object.Key]nameable
	// signals are the keys whose change is worth a signal.
	signals map[object.Key]bool
}

// add holds a key back, until it is decided.
func (h *held) add(key object.Key, w nameable) {
	if h.keys == nil {
		h.keys = make(map[object.Key]nameable)
	}
	h.keys[key] = w
}

// signal notes that a change of a key is worth a signal.
func (h *held) signal(key object.Key) {
	if h.signals == nil {
		h.signals = make(map[object.Key]bool)
	}
	h.signals[key] = true
}

// drop drops a key without a decision.
func (h *held) drop(key object.Key) {
	delete(h.keys, key)
	delete(h.signals, key)
}

// settle releases each key that need not wait, and adds the change to a batch. It reports whether
// one of them is worth a signal. release returns false for a key that still waits.
func (h *held) settle(out *Batch, shown func(object.Key) (object.Object, bool), release func(object.Key, nameable) bool) (news bool) {
	for key, w := range h.keys {
		o, had := shown(key)
		if release(key, w) {
			out.Extent = max(out.Extent, Some)
			out.Changes = append(out.Changes, audience.Change{Key: key, Object: w.object})
			if h.signals[key] {
				news = true
				h.addSignal(out, key)
			}
			h.drop(key)
			continue
		}
		if had && out.Gone(key) {
			out.Changes = append(out.Changes, audience.Change{Key: key, Object: o})
		}
		if h.perKey && (out.Whole() || out.Signals[key]) { // the change may come later
			h.signal(key)
		}
	}
	if len(h.keys) == 0 {
		h.keys, h.signals = nil, nil // a large map keeps its memory
	}
	return news
}

// addSignal adds to a batch that a key is worth a signal.
func (h *held) addSignal(out *Batch, key object.Key) {
	if h.perKey {
		out.signal(key)
	}
}
