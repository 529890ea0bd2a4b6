package kates

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// changes joins the deltas of several successive snapshots into one list (G7). Applied to the
// snapshot before the first, they give the last one. The list is bounded by the objects of those
// two snapshots.
type changes struct {
	order map[string]int // of the queries, by name
	of    map[place]*change
}

type place struct {
	query string
	types.NamespacedName
}

// change is what happened to the objects of one name.
type change struct {
	before bool   // an object existed before the first snapshot
	uid    string // its UID
	gone   *Delta // its deletion
	after  *Delta // the latest delta of the object that exists now, nil if there is none
}

func newChanges(s Status) *changes {
	c := &changes{order: map[string]int{}, of: map[place]*change{}}
	for i, q := range s.Queries {
		c.order[q.Name] = i
	}
	return c
}

func (c *changes) clear() { clear(c.of) }

// add adds the deltas of one Update.
func (c *changes) add(deltas []*Delta) {
	for _, d := range deltas {
		at := place{d.Query, types.NamespacedName{Namespace: d.Namespace, Name: d.Name}}
		now := c.of[at]
		if now == nil {
			now = &change{}
			if d.DeltaType != ObjectAdd {
				now.before, now.uid = true, string(d.UID)
			}
			c.of[at] = now
		}
		if d.DeltaType != ObjectDelete {
			now.after = d
			continue
		}
		now.after = nil
		if now.before && string(d.UID) == now.uid {
			now.gone = d
		}
		if !now.before {
			delete(c.of, at)
		}
	}
}

// deltas returns the list in copies, ordered by query, namespace and name.
func (c *changes) deltas() (all []*Delta) {
	for _, now := range c.of {
		switch {
		case now.after == nil:
			all = append(all, now.gone.as(ObjectDelete))
		case !now.before:
			all = append(all, now.after.as(ObjectAdd))
		case string(now.after.UID) == now.uid:
			all = append(all, now.after.as(ObjectUpdate))
		default:
			all = append(all, now.gone.as(ObjectDelete), now.after.as(ObjectAdd))
		}
	}
	slices.SortStableFunc(all, func(a, b *Delta) int {
		return cmp.Or(cmp.Compare(c.order[a.Query], c.order[b.Query]),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// as returns a copy with another type.
func (d *Delta) as(t DeltaType) *Delta {
	other := *d
	other.DeltaType = t
	return &other
}
