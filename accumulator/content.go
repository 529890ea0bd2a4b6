package accumulator

import (
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// content is what the snapshot has of a query. It belongs to the reader's turn; others read the
// table with the lock of the tables held.
type content struct {
	table  *tables.Table
	spans  bool // the table's keys have the namespace
	judged judgements
}

// Keys calls yield with every key of the table.
func (c *content) Keys(yield func(object.Key) bool) {
	if c.table == nil {
		return
	}
	for row := range c.table.All() {
		if !yield(object.KeyOf(row.Source)) {
			return
		}
	}
}

// invalidIn returns the number of objects that the snapshot leaves out.
func (a *Accumulator) invalidIn(c *content) int {
	a.tables.Lock()
	defer a.tables.Unlock()
	if c.table == nil {
		return 0
	}
	return len(c.table.Invalid())
}
