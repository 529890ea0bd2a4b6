package coherence

import "k8s.io/apimachinery/pkg/types"

// Sight is what one stream of a union says about a key at one moment.
type Sight struct {
	// Object is what the stream shows ([View.Read]), nil for nothing.
	Object Object
	// KnownRV is the version at which that is the truth ([View.Known]). Gone is the UID of an object
	// that was deleted at an unknown version after that ([View.Gone]), "" if there is none.
	KnownRV string
	Gone    types.UID
	// SkippedRV is a version before which the key may have come and gone unnoticed: that of the
	// latest list, or that up to which departures were forgotten.
	SkippedRV string
	// ListedRV is the version of the latest list of the stream. A later list may show one version of
	// an object otherwise.
	ListedRV string
	// Left is how the key has left the stream since the reader took its departures. It is taken
	// with the sight: no departure is handed out twice.
	Left Departure
	// Lost: the stream has given up own writes, and shows nothing until its next list.
	Lost bool
}

// Behind reports whether the stream has not reached a version. One whose object is gone has
// reached every version, as far as that object goes.
func (s *Sight) Behind(atRV string) bool { return s.Gone == "" && Newer(atRV, s.KnownRV) }

// meets takes into account what else is known of the key. A newer state of another UID is newer
// than the deletion (U4), so the deletion does not tell whether the stream shows that one.
func (s *Sight) meets(state Object) {
	if s.Gone != "" && state != nil && state.GetUID() != s.Gone && Newer(state.GetResourceVersion(), s.KnownRV) {
		s.Gone = ""
	}
}

// Decision is what a union shows for a key.
type Decision struct {
	// Object is to be shown now, nil for none.
	Object Object
	// Kept: Object is what was shown before.
	Kept bool
	// Open: the decision is not final. The key is to be decided again, with Left, when a stream
	// has something new.
	Open bool
	Left Departure
	// UntilRV is the version that every stream has to reach before the decision is final. It is
	// empty where a lost stream has to list first.
	UntilRV string
}

// Decide decides what a union shows for a key: rules U1 to U6. Shown is what was shown last,
// nil if nothing. Left is how the key left the streams, as far as that was taken from them, or
// held by the decision before. Sights are those of the streams that cover the key.
//
// It allocates nothing, and takes time in the number of sights. It may change Gone of a sight, so
// that [Sight.Behind] holds for the decision.
func Decide(shown Object, left Departure, sights []Sight) Decision {
	best, lost := newestOf(sights) // U1
	for i := range sights {
		left = left.And(sights[i].Left)
	}
	if lost {
		return Decision{Object: shown, Kept: true, Open: true, Left: left} // U6
	}
	newest := newerOf(newerOf(best, left.Last), shown)
	for i := range sights {
		sights[i].meets(newest)
	}
	left.LeftRV = Newest(left.LeftRV, versionOf(shown)) // U3
	if best == nil {
		for i := range sights {
			left.LeftRV = Newest(left.LeftRV, sights[i].SkippedRV) // U5
		}
	}
	if final(best, left.LeftRV, sights) {
		if best != nil && isNewer(shown, best) {
			return Decision{Object: shown, Kept: true} // nothing shown is taken back
		}
		return Decision{Object: best}
	}
	d := Decision{Object: newerOf(best, left.Last), Open: true, Left: left, UntilRV: left.LeftRV}
	if shown != nil && !isNewer(d.Object, shown) { // at one version, too: its content may be an older one
		d.Object, d.Kept = shown, true
	}
	if o, replaced := left.replace(d.Object); replaced { // U4
		d.Object, d.Kept = o, false
	}
	return d
}

// DecideAnew decides what a union shows for a key in a new history, or in streams of another
// resource: rule U7. Shown is kept where a stream is lost.
func DecideAnew(shown Object, sights []Sight) Decision {
	best, lost := newestOf(sights)
	if lost {
		return Decision{Object: shown, Kept: true}
	}
	return Decision{Object: best}
}

// newestOf returns the newest object that streams show, and whether a stream is lost. Of one
// version it is that of the stream that has listed last.
func newestOf(sights []Sight) (best Object, lost bool) {
	listedRV := ""
	for i := range sights {
		s := &sights[i]
		lost = lost || s.Lost
		later := best != nil && s.Object != nil && !isNewer(best, s.Object) && Newer(s.ListedRV, listedRV)
		if isNewer(s.Object, best) || later {
			best, listedRV = s.Object, s.ListedRV
		}
	}
	return best, lost
}

// final reports whether the newest object that streams show is the truth (rule U2): it is no
// older than the departure, or every stream has reached the departure.
func final(best Object, leftRV string, sights []Sight) bool {
	if best != nil && !Newer(leftRV, best.GetResourceVersion()) {
		return true
	}
	for i := range sights {
		if sights[i].Behind(leftRV) {
			return false
		}
	}
	return true
}

// newerOf returns the newer of two objects, either of which may be nil, a where neither is newer.
func newerOf(a, b Object) Object {
	if isNewer(b, a) {
		return b
	}
	return a
}

// isNewer reports whether a is newer than b. An object is newer than nil.
func isNewer(a, b Object) bool {
	return a != nil && (b == nil || Newer(a.GetResourceVersion(), b.GetResourceVersion()))
}

func versionOf(o Object) string {
	if o == nil {
		return ""
	}
	return o.GetResourceVersion()
}
