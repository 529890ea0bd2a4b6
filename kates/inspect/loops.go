package inspect

import (
	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
)

// loopsOf are the loops of a client that run now.
func loopsOf(c *kates.Client) (all []*Loop) {
	for _, r := range doors.Client(c).Loops.Reports() {
		all = append(all, loopOf(r))
	}
	return all
}

func loopOf(r keyed.LoopReport) *Loop {
	l := &Loop{
		Name: r.Name, Workers: r.Workers, FailingAll: r.FailingAll,
		Returned: make(map[kates.CallOutcome]uint64, len(r.Ended)),
	}
	for _, c := range r.Running {
		l.Running = append(l.Running, Call{Key: c.Key, ID: c.ID, Since: c.Since, Attempt: c.Attempt})
	}
	for ended, n := range r.Ended {
		l.Returned[kates.CallOutcome(ended)] = n
	}
	for _, f := range r.Failing {
		l.Failing = append(l.Failing, Failure{
			Key: f.Key, Attempt: f.Attempt, Error: f.Error, At: f.At, Since: f.Since, ID: f.ID,
		})
	}
	return l
}
