package accumulator

import (
	"fmt"
	"time"

	"github.com/kates-go/kates/internal/test/suite/sim"
)

// reschemed has all streams list once more, and compares the content of what is shown with what
// the server shows now. Before, the versions alone say what is true: a version may look otherwise
// than when it came.
func (m *model) reschemed() error {
	m.Mu.Lock()
	schema := m.Schema
	m.Mu.Unlock()
	if schema == 0 {
		return nil
	}
	m.Relist()
	sim.After(time.Minute)
	for i, r := range m.readers {
		m.rest()
		if err := r.update(); err != nil {
			return err
		}
		if err := r.atRest(); err != nil {
			return fmt.Errorf("reader %d: %w", i, err)
		}
		for f := range r.slots {
			for _, o := range r.snap.field(f) {
				if n := sim.SchemaOf(o); n != schema {
					return fmt.Errorf("reader %d: %s is shown with schema %d, and the server shows %d", i, sim.Describe(o), n, schema)
				}
			}
		}
	}
	return nil
}
