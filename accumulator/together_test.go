package accumulator

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG2QueriesOfOneChangeAreHelpedSideBySide: each of them is late, because a reader has seen a
// deletion without a version. The server is asked for all of them at once, not for one after each
// Update. The model has found this script. One run in two failed.
func TestG2QueriesOfOneChangeAreHelpedSideBySide(t *testing.T) {
	s := sim.Script{Stream: true, Page: 2, First: []int{0, 0, 17}, LastStates: true}
	for _, step := range [][4]int{
		{2, 1, 12, 4}, {10, 35, 9, 1}, {56, 0, 1, 50}, {102, 0, 31, 12}, {102, 25, 5, 29}, {102, 3, 32, 46}, {57, 4, 13, 35},
	} {
		s.Steps = append(s.Steps, sim.Step{Op: step[0], A: step[1], B: step[2], C: step[3]})
	}
	for range 40 {
		synctest.Test(t, func(t *testing.T) { require.NoError(t, runSaved(s)) })
	}
}
