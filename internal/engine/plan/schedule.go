package plan

import "slices"

// Schedule says which plan to start when, and which targets are known meanwhile. The zero value
// has no targets and shows nothing. It is not safe for concurrent use.
//
//	Next ──▶ Start ──▶ Shown
//	  ▲        │ └───▶ Failed ──▶ (the plans before go on)
//	  └─Overdue┘
type Schedule struct {
	targets map[Target]bool
	shown   Plan
	// waiting are the plans that were started after the one that is shown. Any of them may be shown
	// already: the caller learns of it later. The last one is the newest.
	waiting []Plan
	overdue bool // the newest one may be replaced before it is shown
	refused map[Part]bool
}

// Want adds a target.
func (s *Schedule) Want(t Target) {
	if s.targets == nil {
		s.targets = make(map[Target]bool)
	}
	s.targets[t] = true
}

// Forget removes a target.
func (s *Schedule) Forget(t Target) { delete(s.targets, t) }

// Known reports whether the objects of a target are known: they are in what is shown, and will be.
func (s *Schedule) Known(t Target) bool {
	return s.shown.Covers(t) && !slices.ContainsFunc(s.waiting, func(p Plan) bool { return !p.Covers(t) })
}

// Chosen returns the plan for the present targets. It leaves those out for which the server
// refuses all parts.
func (s *Schedule) Chosen() Plan { return Choose(s.shown, s.list(), s.refused) }

// Next returns the plan that has to be started now, if there is one.
func (s *Schedule) Next() (p Plan, ok bool) {
	p = s.Chosen()
	latest := s.Latest()
	switch {
	case len(p.Parts) == 0: // what there is goes on
		return Plan{}, false
	case len(s.waiting) > 0 && !s.overdue:
		return Plan{}, false
	}
	return p, !p.Equal(latest)
}

// Start notes that a plan is about to be started.
func (s *Schedule) Start(p Plan) { s.waiting, s.overdue = append(s.waiting, p), false }

// Failed notes that the newest plan could not be started.
func (s *Schedule) Failed() {
	s.waiting, s.overdue = s.waiting[:len(s.waiting)-1], true
}

// Shown notes that the newest plan is shown.
func (s *Schedule) Shown() {
	if n := len(s.waiting); n > 0 {
		s.shown, s.waiting, s.overdue = s.waiting[n-1], nil, false
	}
}

// Overdue lets another plan replace the one that waits: it cannot be completed, or not soon.
func (s *Schedule) Overdue() { s.overdue = true }

// Restart notes that nothing is watched any more. Targets and refusals stay.
func (s *Schedule) Restart() { s.shown, s.waiting, s.overdue = Plan{}, nil, false }

// Refuse notes that the server refuses a part. It reports whether that is news.
func (s *Schedule) Refuse(p Part) bool {
	if s.refused[p] {
		return false
	}
	if s.refused == nil {
		s.refused = make(map[Part]bool)
	}
	s.refused[p], s.overdue = true, true
	return true
}

// Refused reports whether the server refuses a part.
func (s *Schedule) Refused(p Part) bool { return s.refused[p] }

// Forgive forgets what the server refuses: it may be asked again. It reports whether there was
// anything.
func (s *Schedule) Forgive() bool {
	had := len(s.refused) > 0
	s.refused = nil
	return had
}

// Waiting reports whether a plan waits to be shown.
func (s *Schedule) Waiting() bool { return len(s.waiting) > 0 }

// Present returns the plan that is shown.
func (s *Schedule) Present() Plan { return s.shown }

// Latest returns the newest plan: that which waits, or else the one that is shown.
func (s *Schedule) Latest() Plan {
	if n := len(s.waiting); n > 0 {
		return s.waiting[n-1]
	}
	return s.shown
}

func (s *Schedule) list() []Target {
	all := make([]Target, 0, len(s.targets))
	for t := range s.targets {
		all = append(all, t)
	}
	return all
}
