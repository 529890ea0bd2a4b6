package fleet

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestG1TheFirstSnapshotOfAFleetIsCompleteAtTheDeadlineOfItsClusters: begin decides it. Were it to
// ask again for a time that has passed, the watch would never rest.
func TestG1TheFirstSnapshotOfAFleetIsCompleteAtTheDeadlineOfItsClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		early, late := &part{cluster: &Cluster{}, began: began}, &part{cluster: &Cluster{}, began: began.Add(time.Second)}
		w := &watching{
			fleet: &Fleet{options: Options{Deadline: 5 * time.Second}}, parts: []*part{late, early}, known: true,
		}
		for _, c := range []struct {
			after, next time.Duration // since the first cluster came
			complete    bool
		}{
			{0, 5 * time.Second, false},
			{5*time.Second - 1, 5 * time.Second, false},
			{5 * time.Second, 6 * time.Second, false},
			{6*time.Second - 1, 6 * time.Second, false},
			{6 * time.Second, 0, true},
			{0, 0, true}, // it never turns back
		} {
			next, complete := w.begin(began.Add(c.after))
			if complete != c.complete || next.IsZero() != (c.next == 0) || !next.IsZero() && !next.Equal(began.Add(c.next)) {
				t.Fatalf("after %s: complete %t, next %s", c.after, complete, next)
			}
		}
	})
}
