package coherence

import "k8s.io/apimachinery/pkg/types"

// Departure says how a key left the streams of a union. The zero Departure says that it has
// not left any.
type Departure struct {
	// LeftRV is the version by which the key had left: that of the event, of the own write, or
	// of the list that lacks it.
	LeftRV string
	// Last is the newest state before that, nil if none is known.
	Last Object
	// Wrote is the outcome of an own write at WroteRV which the streams do not tell, or not all
	// of them: the object as written, or nil if no stream shows it from then on. It replaces any
	// older state, and says nothing where there is none.
	Wrote   Object
	WroteRV string
	// Since is the UID of an object that was made after the outcome, whatever the versions say, ""
	// if none is known.
	Since types.UID
	// Deleted is the UID of an object that an own write has deleted, at a version that is not
	// known, and ExistedRV the newest version at which the object is known to have been there. No
	// state of this object counts any more, and no state of that version or an older one. A newer
	// state of another UID is newer than the deletion. Of several deletions the latest is enough:
	// each of these objects was gone before the next one was there.
	Deleted   types.UID
	ExistedRV string
}

// And returns what two departures of one key say together (rule U2).
func (d Departure) And(other Departure) Departure {
	d.LeftRV = Newest(d.LeftRV, other.LeftRV)
	d.Last = newerOf(d.Last, other.Last)
	if Newer(other.WroteRV, d.WroteRV) {
		d.Wrote, d.WroteRV, d.Since = other.Wrote, other.WroteRV, other.Since
	}
	if Newer(other.ExistedRV, d.ExistedRV) {
		d.Deleted, d.ExistedRV = other.Deleted, other.ExistedRV
	}
	return d
}

// Leave returns the departures of one stream with a later one: at leftRV it no longer showed last.
// What it showed since it left before is newer than that, unless it had given up own writes. Then
// it is an own write that was answered late. It replaces any older state, and brings nothing back.
func (d Departure) Leave(leftRV string, last Object) Departure {
	next := Departure{LeftRV: leftRV, Last: last}
	if last != nil && Newer(d.LeftRV, last.GetResourceVersion()) {
		next = Departure{LeftRV: leftRV, Wrote: last, WroteRV: last.GetResourceVersion()}
	}
	return d.And(next)
}

// replace returns what own writes make of a state: the state itself, if none is newer.
func (d Departure) replace(state Object) (now Object, replaced bool) {
	if state != nil && Newer(d.WroteRV, state.GetResourceVersion()) && (d.Since == "" || d.Since != state.GetUID()) {
		state, replaced = d.Wrote, true
	}
	if state != nil && d.deleted(state) {
		state, replaced = nil, true
	}
	return state, replaced
}

// deleted reports whether an own deletion is newer than a state.
func (d Departure) deleted(state Object) bool {
	if d.ExistedRV == "" {
		return false
	}
	return !Newer(state.GetResourceVersion(), d.ExistedRV) || d.Deleted != "" && state.GetUID() == d.Deleted
}

// Fate is what the answer to an own write tells about all streams of a union.
type Fate int

const (
	// Elsewhere: another stream may show the object after the write.
	Elsewhere Fate = iota
	// Gone: no stream shows the object at the write's version. It was deleted, or no selector
	// of the union selects it.
	Gone
	// GoneBefore: the object was deleted at an unknown version, and the write's version is not
	// older than that: the streams had to ask the server (rule 6).
	GoneBefore
)

// Passed returns what an own write tells about a key that a stream does not show once the write is
// recorded (rule U4). If the write has an object, the stream selects it, and yet does not show it:
// its position, or a newer own write, has superseded the object. The version of the write is
// comparable. existedRV is the newest version at which an object that was deleted at an unknown
// version is known to have been there, "" if there is none.
func Passed(w Write, fate Fate, existedRV string) Departure {
	d := Departure{LeftRV: w.Version}
	if fate == GoneBefore {
		d.LeftRV = "" // every stream that was asked has a version of its own
	}
	superseded := w.Object != nil
	switch {
	case fate == GoneBefore && existedRV != "":
		d.Deleted, d.ExistedRV = w.UID, existedRV
	case superseded || fate != Elsewhere:
		d.Wrote, d.WroteRV = w.Object, w.Version
	}
	return d
}

// GivenUp returns what an own write at wroteRV tells that a stream gives up: o is what the stream
// shows for it, nil if it does not select the object (rule U6).
func GivenUp(o Object, wroteRV string) Departure {
	d := Departure{LeftRV: wroteRV}
	if o != nil {
		d.Last, d.Wrote, d.WroteRV = o, o, wroteRV
	}
	return d
}

// Departures are departures by key. A key with the zero Departure has changed without leaving.
type Departures map[Key]Departure

// Add adds a departure to what is known of a key.
func (all Departures) Add(key Key, d Departure) {
	if old, ok := all[key]; ok {
		d = old.And(d)
	}
	all[key] = d
}
