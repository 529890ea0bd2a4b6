package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/test/suite/rounds"
)

// model is a schedule, and what the watch really shows.
type model struct {
	Schedule
	wanted map[Target]bool
	really Plan // what is shown
	// started is the newest plan that was handed to the watch and is not shown. A newer one takes
	// its place.
	started *Plan
}

var targets = rapid.Custom(func(t *rapid.T) Target {
	target := Target{Metadata: rapid.IntRange(0, 3).Draw(t, "form") == 0}
	if rapid.IntRange(0, 5).Draw(t, "all namespaces") > 0 {
		target.Namespace = fmt.Sprint("ns", rapid.IntRange(0, 5).Draw(t, "namespace"))
	}
	switch n := rapid.IntRange(0, 9).Draw(t, "name"); n {
	case 9:
	case 7, 8:
		target.Labels = fmt.Sprint("app=", n)
	default:
		target.Name = fmt.Sprint("x", n)
	}
	return target
})

// TestModelEveryTargetIsCoveredAtEveryMoment lets targets come and go, plans start, fail and be
// shown, and rights come and go, in any order.
func TestModelEveryTargetIsCoveredAtEveryMoment(t *testing.T) {
	rounds.Check(t, func(t *rapid.T, step func()) {
		m := &model{wanted: make(map[Target]bool)}
		few := rapid.SliceOfN(targets, 1, 14).Draw(t, "targets")
		some := rapid.SampledFrom(few)
		act := func(do func(*rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				known := m.known()
				do(t)
				step()
				m.check(t, known)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"want":   act(func(t *rapid.T) { m.want(some.Draw(t, "target")) }),
			"forget": act(func(t *rapid.T) { m.forget(some.Draw(t, "target")) }),
			"start":  act(m.start),
			"show":   act(func(*rapid.T) { m.show() }),
			"learn":  act(func(*rapid.T) { m.learn() }),
			"late":   act(func(*rapid.T) { m.Overdue() }),
			"refuse": act(func(t *rapid.T) {
				m.Refuse(some.Draw(t, "target").part(rapid.SampledFrom([]Level{Selections, Namespaces, Kind}).Draw(t, "level")))
			}),
			"forgive": act(func(*rapid.T) { m.Forgive() }),
			"restart": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
					m.Restart()
					m.really, m.started = Plan{}, nil
				}
				step()
			},
		})
		m.settle(t)
	})
}

func (m *model) want(target Target)   { m.Want(target); m.wanted[target] = true }
func (m *model) forget(target Target) { m.Forget(target); delete(m.wanted, target) }

// start starts the next plan. The one before may be shown before the watch learns of this one.
func (m *model) start(t *rapid.T) {
	p, ok := m.Next()
	if !ok {
		return
	}
	m.Start(p)
	outcome := rapid.SampledFrom([]string{"it starts", "it fails", "the one before is shown"}).Draw(t, "outcome")
	if outcome == "it fails" {
		m.Failed()
		return
	}
	if outcome == "the one before is shown" {
		m.show()
	}
	m.started = &p
}

// show is what the watch does by itself: the newest plan is shown, as soon as it is complete.
func (m *model) show() {
	if m.started != nil {
		m.really, m.started = *m.started, nil
	}
}

// learn tells the schedule that the newest plan is shown, if it is.
func (m *model) learn() {
	if m.started == nil && m.Waiting() && m.really.Equal(m.Latest()) {
		m.Shown()
	}
}

func (m *model) known() (known []Target) {
	for target := range m.wanted {
		if m.Known(target) {
			known = append(known, target)
		}
	}
	return known
}

func (m *model) check(t *rapid.T, before []Target) {
	known := m.known()
	for _, target := range known {
		if !m.really.Covers(target) {
			t.Fatalf("%+v counts as known, but the watch shows %+v", target, m.really)
		}
	}
	for _, target := range before {
		torn := slices.ContainsFunc(m.Latest().Parts, target.part(Selections).tears) // by a refusal
		if m.wanted[target] && !slices.Contains(known, target) && !m.Refused(target.part(Selections)) && !(torn && len(m.refused) > 0) {
			t.Fatalf("%+v was known, and is not any more: %+v, then %+v", target, m.shown, m.waiting)
		}
	}
	m.limits(t, m.Latest())
}

// limits checks the rule: no more watches than it allows.
func (m *model) limits(t *rapid.T, p Plan) {
	for i, part := range p.Parts {
		for j, other := range p.Parts {
			if i != j && part.box().Overlaps(other.box()) {
				t.Fatalf("an object may be in %v and in %v: %+v", part, other, p)
			}
		}
	}
	if len(m.refused) > 0 || p.Level == None {
		return
	}
	most := map[Level]int{Selections: MostSelections, Namespaces: MostNamespaces, Kind: 1}[p.Level]
	if m.byRule(p) && len(p.Parts) > most {
		t.Fatalf("%d watches at the level of %s: %+v", len(p.Parts), p.Level, p)
	}
}

// byRule reports whether a plan is what the rule says now: it may have been made of other targets,
// or for other rights.
func (m *model) byRule(p Plan) bool { return p.Equal(Choose(m.shown, m.list(), m.refused)) }

// settle lets everything become what it is to be: then all targets are known.
func (m *model) settle(t *rapid.T) {
	m.Forgive()
	m.Overdue()
	for range 5 {
		if p, ok := m.Next(); ok {
			m.Start(p)
			m.started = &p
		}
		m.show()
		if m.Waiting() {
			m.Shown()
		}
		m.check(t, nil)
	}
	if p, ok := m.Next(); ok {
		t.Fatalf("there is always something to start: %+v after %+v", p, m.shown)
	}
	for target := range m.wanted {
		if !m.Known(target) {
			t.Fatalf("%+v is not known when all is quiet: %+v", target, m.shown)
		}
	}
	if len(m.wanted) > 0 && !m.shown.Equal(Choose(m.shown, m.list(), nil)) {
		t.Fatalf("what is shown is not what the rule says: %+v", m.shown)
	}
}
