package coherence

import "k8s.io/apimachinery/pkg/types"

// seenMost bounds what is remembered of one key's events while a write of it is
// under way.
const seenMost = 64

// flights are the keys of which writes are under way. Nothing is held for others.
type flights map[Key]*flight

// flight is what the watch brought for a key while writes of it were under way.
type flight struct {
	writes int
	seen   []Object   // where content stands in for versions
	gone   []deletion // where versions tell, and a DELETED event is a deletion
}

// deletion is that of an object, at a version.
type deletion struct {
	uid     types.UID
	version string
}

// deleted returns the version at which the watch has shown an object to be deleted, "" if it has not.
func (f *flight) deleted(uid types.UID) string {
	if f == nil {
		return ""
	}
	for _, d := range f.gone {
		if d.uid == uid {
			return d.version
		}
	}
	return ""
}

func (f flights) begin(key Key) {
	if f[key] == nil {
		f[key] = &flight{}
	}
	f[key].writes++
}

func (f flights) end(key Key) {
	if one := f[key]; one != nil {
		if one.writes--; one.writes == 0 {
			delete(f, key)
		}
	}
}

// remember appends the newest of what is remembered.
func remember[T any](all []T, newest T) []T {
	if len(all) == seenMost {
		all = all[1:]
	}
	return append(all, newest)
}
