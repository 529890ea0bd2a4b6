package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/kates-go/kates/bench/internal/usage"
)

// churn is a running reconciler: after a change it takes a snapshot, and then takes its time.
type churn struct {
	consumer  Consumer
	reconcile time.Duration
	start     time.Time
	cpu       float64
	allocated float64 // how often something was, before the start

	cancel context.CancelFunc
	settle chan settling
	ended  chan churned
}

type settling struct {
	marks    markSet
	deadline time.Time
}

type churned struct {
	snapshots, missing int
	last               time.Time
	err                error
}

func (s *server) startChurn(ctx context.Context, c Command) (Answer, error) {
	if s.churn != nil {
		return Answer{}, errors.New("there is one already")
	}
	if _, err := s.drain(ctx); err != nil {
		return Answer{}, err
	}
	cpu, err := usage.CPUSeconds()
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s.churn = &churn{
		consumer: s.consumer, reconcile: seconds(c.Seconds), start: time.Now(), cpu: cpu, allocated: usage.Allocations(),
		cancel: cancel, settle: make(chan settling, 1), ended: make(chan churned, 1),
	}
	go func(c *churn) { c.ended <- c.run(ctx) }(s.churn) // ends on settle
	return Answer{}, nil
}

func (s *server) settle(c Command) (Answer, error) {
	if s.churn == nil {
		return Answer{}, errors.New("there is no churn")
	}
	ch := s.churn
	s.churn = nil
	defer ch.cancel()
	ch.settle <- settling{parseMarks(c.Marks), time.Now().Add(seconds(c.Seconds))}
	end := <-ch.ended
	if end.err != nil {
		return Answer{}, end.err
	}
	cpu, err := usage.CPUSeconds()
	return Answer{
		Seconds: end.last.Sub(ch.start).Seconds(), CPU: cpu - ch.cpu, Allocations: usage.Allocations() - ch.allocated,
		UnixNano: end.last.UnixNano(), Snapshots: end.snapshots, Missing: end.missing,
	}, err
}

// run reconciles until the snapshot has all marks, or the time is over.
func (c *churn) run(ctx context.Context) churned {
	var end churned
	var want *settling
	var view View
	var deadline <-chan time.Time
	for {
		select {
		case <-c.consumer.Changed():
			if view, end.err = c.consumer.Snapshot(ctx); end.err != nil {
				return end
			}
			end.snapshots++
			end.last = time.Now()
		case w := <-c.settle:
			want = &w
			deadline = time.After(time.Until(w.deadline))
			if view.All == nil { // nothing has arrived yet
				if view, end.err = c.consumer.Snapshot(ctx); end.err != nil {
					return end
				}
				end.last = time.Now()
			}
		case <-deadline:
			return end
		case <-ctx.Done():
			end.err = context.Cause(ctx)
			return end
		}
		if want != nil {
			if end.missing = want.marks.missing(view); end.missing == 0 || time.Now().After(want.deadline) {
				return end
			}
		}
		if c.reconcile > 0 {
			time.Sleep(c.reconcile) // the time of a reconcile
		}
	}
}
