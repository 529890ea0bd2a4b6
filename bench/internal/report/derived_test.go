package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDerivedResultsHaveTargetsBySize(t *testing.T) {
	of := &Results{Runs: 1}
	of.Add(10_000, 1, "derive", RoutesChange, 9)
	of.Add(100_000, 1, "derive", RoutesChange, 61)
	of.Add(100_000, 1, "derive", RoutesFirst, 3)
	of.Add(100_000, 1, "loop", RoutesFirst, 2)
	of.Add(10_000, 1, "krt", PerPodPod, 116)
	r := &Results{}
	r.Put(Derived, of)
	text := Markdown(r, Titles{Derived: []Title{{Consumer: "derive", Text: "package derive"}, {Consumer: "krt", Text: "krt"}}}, nil, "")
	assert.Contains(t, text, "| Routing table, an object changes: 10 µs of CPU | 10,000 | ≤ 10 | 9 | 1 of 1 | hit |\n"+
		"| Routing table, an object changes: 60 µs of CPU | 100,000 | ≤ 60 | 61 | 0 of 1 | **missed**, 1.02× over |\n"+
		"| Routing table, first: 1.5× a plain loop | 100,000 | ≤ 1.5× | 1.5× | 1 of 1 | hit |\n")
	assert.Contains(t, text, "## Results that are kept up to date\n")
	assert.Contains(t, text, "10,000 objects of each kind:\n\n| | package derive | krt |\n|---|--:|--:|\n| routing table, an object changes, µs | 9 |  |\n| a result per pod, a pod changes, µs |  | 116 |\n")
}
