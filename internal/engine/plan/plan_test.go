package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// named returns targets of some names in each of some namespaces.
func named(namespaces, names int) (all []Target) {
	for ns := range namespaces {
		for n := range names {
			all = append(all, Target{Namespace: fmt.Sprint("ns", ns), Name: fmt.Sprint("x", n)})
		}
	}
	return all
}

func TestThePlanIsThatOfTheTable(t *testing.T) {
	all := func(ns string) Target { return Target{Namespace: ns} }
	for _, c := range []struct {
		name    string
		now     Level
		targets []Target
		level   Level
		parts   int
	}{
		{"none", Kind, nil, None, 0},
		{"a name", None, named(1, 1), Selections, 1},
		{"eight names", None, named(2, 4), Selections, 8},
		{"nine names", None, named(3, 3), Namespaces, 3},
		{"names in five namespaces, nine in all", None, append(named(4, 2), all("other")), Kind, 1},
		{"five names, back from namespaces", Namespaces, named(1, 5), Namespaces, 1},
		{"four names, back from namespaces", Namespaces, named(1, 4), Selections, 4},
		{"four names, back from the kind", Kind, named(2, 2), Selections, 4},
		{"three namespaces, back from the kind", Kind, named(3, 3), Kind, 1},
		{"two namespaces, back from the kind", Kind, named(2, 5), Namespaces, 2},
		{"all of a namespace", None, []Target{all("a")}, Namespaces, 1},
		{"all of a namespace, and a name in another", None, append(named(1, 1), all("a")), Namespaces, 2},
		{"everything, and a name", None, append(named(1, 1), Target{}), Kind, 1},
		{"labels in two namespaces", None, []Target{{Labels: "a", Namespace: "y"}, {Labels: "b", Namespace: "x"}}, Selections, 2},
		{"labels, and others in a namespace", None, []Target{{Labels: "a"}, {Labels: "b", Namespace: "x"}}, Kind, 1},
		{"labels, and others, in one namespace", None, []Target{{Labels: "a", Namespace: "x"}, {Labels: "b", Namespace: "x"}}, Namespaces, 1},
		{"a name, and labels in its namespace", None, append(named(1, 1), Target{Labels: "a", Namespace: "ns0"}), Namespaces, 1},
		{"the same labels, also in a namespace", None, []Target{{Labels: "a"}, {Labels: "a", Namespace: "x"}}, Selections, 1},
		{"many labels in all namespaces", None, append(named(2, 4), Target{Labels: "a"}), Kind, 1},
		{"one name, whole and as metadata", None, []Target{{Name: "a"}, {Name: "a", Metadata: true}}, Selections, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Choose(Plan{Level: c.now}, c.targets, nil)
			assert.Equal(t, c.level, p.Level)
			assert.Len(t, p.Parts, c.parts)
			for _, target := range c.targets {
				assert.True(t, p.Covers(target), "%v", target)
			}
		})
	}
}

func TestWhatIsRefusedIsWatchedMoreNarrowly(t *testing.T) {
	targets := append(named(3, 3), Target{Namespace: "ns9"}, Target{Labels: "app"}) // the kind
	kind, ns0, ns9 := Part{}, Part{Namespace: "ns0"}, Part{Namespace: "ns9"}
	refused := map[Part]bool{}
	choose := func(now Plan, also ...Part) Plan {
		for _, p := range also {
			refused[p] = true
		}
		return Choose(now, targets, refused)
	}
	p := choose(Plan{})
	assert.Equal(t, []Part{{}}, p.Parts)

	p = choose(Plan{}, kind)
	assert.Equal(t, []Part{ns0, {Namespace: "ns1"}, {Namespace: "ns2"}, ns9}, p.Parts, "labels in all namespaces would overlap")
	labelled := Plan{Level: Selections, Parts: []Part{{Labels: "app"}}, Whole: true}
	assert.Equal(t, []Part{{Labels: "app"}}, choose(labelled).Parts, "what is shown stays, and others would overlap")

	p = choose(Plan{}, ns0, ns9, Part{Labels: "app"}, Part{Namespace: "ns0", Name: "x1"})
	assert.Equal(t, []Part{{"ns0", "x0", ""}, {"ns0", "x2", ""}, {Namespace: "ns1"}, {Namespace: "ns2"}}, p.Parts)
	assert.False(t, p.Covers(Target{Namespace: "ns9"}), "it is left out, and the others are not")

	shown := Plan{Level: Kind, Parts: []Part{ns0, ns9}, Whole: true}
	p = choose(shown)
	assert.Contains(t, p.Parts, ns9, "what is shown stays")

	for _, target := range targets {
		choose(Plan{}, target.part(Selections), target.part(Namespaces))
	}
	assert.Empty(t, choose(Plan{}).Parts)
}

func TestMetadataIsEnoughIfItIsForAll(t *testing.T) {
	meta := Target{Name: "a", Metadata: true}
	p := Choose(Plan{}, []Target{meta}, nil)
	assert.False(t, p.Whole)
	assert.True(t, p.Covers(meta))
	assert.False(t, p.Covers(Target{Name: "a"}), "a whole object is not known by its metadata")
	p = Choose(p, []Target{meta, {Name: "b"}}, nil)
	assert.True(t, p.Whole)
	assert.True(t, p.Covers(meta))
}

func TestATargetThatComesAndGoesDoesNotChangeTheLevelEachTime(t *testing.T) {
	var s Schedule
	for _, target := range named(2, 4) {
		s.Want(target)
	}
	extra, changes := Target{Namespace: "ns0", Name: "extra"}, 0
	for range 10 {
		s.Want(extra)
		for range 2 {
			before := s.Present().Level
			if p, ok := s.Next(); ok {
				s.Start(p)
				s.Shown()
			}
			if s.Present().Level != before {
				changes++
			}
			s.Forget(extra)
		}
	}
	assert.Equal(t, 1, changes)
}

func TestATargetThatAWaitingPlanLacksIsNotKnown(t *testing.T) {
	var s Schedule
	start := func() {
		t.Helper()
		p, ok := s.Next()
		assert.True(t, ok)
		s.Start(p)
	}
	all, a, b := Target{}, Target{Name: "a"}, Target{Name: "b"}
	s.Want(all)
	s.Want(a)
	start()
	assert.False(t, s.Known(a), "nothing is shown yet")
	s.Shown()
	assert.True(t, s.Known(a))
	assert.True(t, s.Known(b))

	s.Forget(all)
	start() // only a
	assert.True(t, s.Known(a))
	s.Want(b)
	assert.False(t, s.Known(b), "it is shown now, and may be gone in a moment")
	_, ok := s.Next()
	assert.False(t, ok, "one plan waits at a time")
	s.Overdue()
	start()
	assert.False(t, s.Known(b), "the plan before may be shown already")
	s.Shown()
	assert.True(t, s.Known(a))
	assert.True(t, s.Known(b))
}

func TestAPlanThatCannotBeStartedChangesNothing(t *testing.T) {
	var s Schedule
	a := Target{Name: "a"}
	s.Want(a)
	p, _ := s.Next()
	s.Start(p)
	s.Failed()
	assert.Zero(t, s.Latest())
	again, ok := s.Next()
	assert.True(t, ok)
	assert.Equal(t, p, again)
	s.Start(p)
	s.Shown()
	s.Restart()
	assert.False(t, s.Known(a))
	_, ok = s.Next()
	assert.True(t, ok)
}
