package kates

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// changes are the deltas of several snapshots in a row as one list (G7): applied to the snapshot before the first of them, they
// give the last one. There are no more of them than objects in those two.
type changes struct {
	order map[string]int // of the queries
	of    map[place]*change
}

type place struct {
	query string
	types.NamespacedName
}

// change is what became of one name.
type change struct {
	before bool   // there was an object,
	uid    string // which had that UID, and
	gone   *Delta // was deleted by that
	after  *Delta // the object that there is now, nil if there is none
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

// deltas returns the list, with deltas of its own, by query, namespace and name.
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
		return cmp.Or(cmp.Compare(c.order[a.Query], c.order[b.Query]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// as is a copy of another type.
func (d *Delta) as(t DeltaType) *Delta {
	other := *d
	other.DeltaType = t
	return &other
}
