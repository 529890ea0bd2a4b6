package partition

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// reads are the look-ups of a turn in one field. They are the turn's [tables.Recorder] until it
// ends, and do not change after that.
type reads struct {
	mu       lockorder.Mutex[lockorder.Reads]
	over     bool
	names    map[object.Key]bool
	selected map[selected]labels.Selector
}

// selected identifies a look-up by selector: equal values select the same objects.
type selected struct{ namespace, selector string }

func (r *reads) Named(key object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if r.names == nil {
		r.names = make(map[object.Key]bool)
	}
	r.names[key] = true
}

func (r *reads) Selected(namespace string, selector labels.Selector) {
	if selector == nil {
		selector = labels.Everything()
	}
	requirements, selects := selector.Requirements()
	if !selects {
		return // it never selects anything
	}
	// the caller's type is unknown, and would run under a lock
	kept := labels.NewSelector().Add(requirements...)
	what := selected{namespace, kept.String()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if r.selected == nil {
		r.selected = make(map[selected]labels.Selector)
	}
	r.selected[what] = kept
}

// end ends the recording.
func (r *reads) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// of returns the object if the turn has read it, else nil. Nil reads have read nothing. Called
// after the end.
func (r *reads) of(key object.Key, o object.Object) object.Object {
	switch {
	case r == nil || o == nil:
		return nil
	case r.names[key]:
		return o
	}
	for what, selector := range r.selected {
		if (what.namespace == "" || what.namespace == key.Namespace) && selector.Matches(labels.Set(o.GetLabels())) {
			return o
		}
	}
	return nil
}

// readers are the partitions that have read one field, by what they have read. An event costs
// something only for partitions that have read its object. Guarded by the scheduler's lock.
type readers struct {
	names    map[object.Key]map[*partition]bool
	selected map[string]map[string]*sought // by namespace and selector
}

// sought is a selection that partitions have read.
type sought struct {
	labels.Selector
	by map[*partition]bool
}

func newReaders() *readers {
	return &readers{names: make(map[object.Key]map[*partition]bool), selected: make(map[string]map[string]*sought)}
}

// enter notes what a partition has read.
func (rs *readers) enter(p *partition, r *reads) {
	if r == nil {
		return
	}
	for key := range r.names {
		if rs.names[key] == nil {
			rs.names[key] = make(map[*partition]bool)
		}
		rs.names[key][p] = true
	}
	for what, selector := range r.selected {
		in := rs.selected[what.namespace]
		if in == nil {
			in = make(map[string]*sought)
			rs.selected[what.namespace] = in
		}
		if in[what.selector] == nil {
			in[what.selector] = &sought{selector, make(map[*partition]bool)}
		}
		in[what.selector].by[p] = true
	}
}

// leave removes what enter has noted.
func (rs *readers) leave(p *partition, r *reads) {
	if r == nil {
		return
	}
	for key := range r.names {
		if delete(rs.names[key], p); len(rs.names[key]) == 0 {
			delete(rs.names, key)
		}
	}
	for what := range r.selected {
		in := rs.selected[what.namespace]
		if delete(in[what.selector].by, p); len(in[what.selector].by) > 0 {
			continue
		}
		if delete(in, what.selector); len(in) == 0 {
			delete(rs.selected, what.namespace)
		}
	}
}

// concerned returns the partitions that have read the object of a move. The caller must not write
// to it.
func (rs *readers) concerned(s moved) map[*partition]bool {
	found, own := rs.names[s.key], false
	for _, in := range rs.selecting(s) {
		if len(found) > 0 && !own { // the map of a name belongs to rs
			found = maps.Clone(found)
		}
		if own = true; found == nil {
			found = make(map[*partition]bool, len(in.by))
		}
		maps.Copy(found, in.by)
	}
	return found
}

// selecting returns the selections that selected the object before the move, or select it now.
func (rs *readers) selecting(s moved) (found []*sought) {
	old, now := s.old.seen(), s.now.seen()
	matches := func(selector labels.Selector, o object.Object) bool {
		return o != nil && selector.Matches(labels.Set(o.GetLabels()))
	}
	namespaces := []string{"", s.key.Namespace}
	if s.key.Namespace == "" {
		namespaces = namespaces[:1]
	}
	for _, namespace := range namespaces {
		for _, in := range rs.selected[namespace] {
			if matches(in, old) || matches(in, now) {
				found = append(found, in)
			}
		}
	}
	return found
}
