package campaign

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/bench/internal/operator"
)

func TestTheServersCPUTimeIsReadFromItsMetrics(t *testing.T) {
	cpu, err := cpuIn([]byte("# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 12.5\nother 3\n"))
	require.NoError(t, err)
	assert.InDelta(t, 12.5, cpu, 0)
	_, err = cpuIn([]byte("other 3\n"))
	require.Error(t, err)
	_, err = cpuIn([]byte("process_cpu_seconds_total much\n"))
	require.Error(t, err)
}

func TestVerbsOfAPhaseAreThoseThatWereUsedInOrder(t *testing.T) {
	c := operator.Counts{Requests: map[string]int{operator.VerbDelete: 1, operator.VerbList: 2, operator.VerbGet: 0}}
	assert.Equal(t, []string{operator.VerbList, operator.VerbDelete}, verbsOf(c))
	assert.Len(t, operator.Verbs, 10)
}
