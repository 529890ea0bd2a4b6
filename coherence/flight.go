package coherence

import "k8s.io/apimachinery/pkg/types"

// seenMost bounds how many events of one key are remembered while a write of it is under way.
const seenMost = 64

// flights are the keys that have writes under way.
type flights map[types.NamespacedName]*flight

// flight is what the watch brought for a key while a write of it was under way.
type flight struct {
	writes int
	gone   []moment // the deletions, if a DELETED event is one
}

// moment is an object at a version: "" if the event did not tell (rule 10), but what version was
// the object's last.
type moment struct {
	uid          types.UID
	atRV, lastRV string
}

// deleted reports whether the watch showed the deletion of an object, and when, as far as that is
// known.
func (f *flight) deleted(uid types.UID) (d moment, seen bool) {
	if f == nil {
		return moment{}, false
	}
	for _, d := range f.gone {
		if d.uid == uid {
			return d, true
		}
	}
	return moment{}, false
}

func (f flights) addWrite(key types.NamespacedName) {
	if f[key] == nil {
		f[key] = &flight{}
	}
	f[key].writes++
}

func (f flights) removeWrite(key types.NamespacedName) {
	if one := f[key]; one != nil {
		if one.writes--; one.writes == 0 {
			delete(f, key)
		}
	}
}

// remember appends the newest, and drops the oldest if there are too many.
func remember[T any](all []T, newest T) []T {
	if len(all) == seenMost {
		all = all[1:]
	}
	return append(all, newest)
}
