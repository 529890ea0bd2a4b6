package tables

import (
	"slices"

	"github.com/kates-go/kates/internal/object"
)

// Difference is a change of one object between two snapshots. Old is nil for an add, New for a
// delete. If another object of the same name has replaced an object, there are two: the delete,
// then the add.
type Difference struct {
	Query    string // its name
	Old, New Object
}

// Invalid is an object that is left out of a snapshot.
type Invalid struct {
	Query  string // its name
	Object Object
	// Err says why: the object does not decode, or a user's function panicked.
	Err error
}

// AppendDifferences turns the diffs of a query's table into differences: a replaced object is a
// delete and an add (G7).
func AppendDifferences(to []Difference, query string, diffs []Diff) []Difference {
	to = slices.Grow(to, len(diffs))
	for _, d := range diffs {
		if d.Old != nil && d.New != nil && object.UIDOf(d.Old) != object.UIDOf(d.New) {
			to = append(to, Difference{Query: query, Old: d.Old}, Difference{Query: query, New: d.New})
			continue
		}
		to = append(to, Difference{Query: query, Old: d.Old, New: d.New})
	}
	return to
}

// Changes are the changes of one table, with their rows in one piece of memory.
type Changes struct {
	All  []Change
	rows []Row
}

// NewChanges returns changes with room for n.
func NewChanges(n int) Changes {
	return Changes{make([]Change, 0, n), make([]Row, 0, n)}
}

// Delete adds that a key is gone.
func (c *Changes) Delete(key Key) { c.All = append(c.All, Change{Key: key}) }

// Put adds the row of a key.
func (c *Changes) Put(key Key, r Row) {
	c.rows = append(c.rows, r) // if it grows, the earlier rows stay valid
	c.All = append(c.All, Change{Key: key, Row: &c.rows[len(c.rows)-1]})
}
