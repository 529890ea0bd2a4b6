package rounds

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// set sets a flag until the test ends.
func set(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	require.NoError(t, flag.Set(name, value))
	t.Cleanup(func() { _ = flag.Set(name, before) })
}

// count runs Check and returns how many steps it took, and how often each case came.
func count(t *testing.T) (steps int, cases map[uint64]int) {
	t.Helper()
	cases = map[uint64]int{}
	Check(t, func(t *rapid.T, step func()) {
		cases[rapid.Uint64().Draw(t, "case")]++
		for range 3 {
			step()
			steps++
		}
	})
	return steps, cases
}

func TestRoundsGoOnUntilTheStepsAreTakenEachWithCasesOfItsOwn(t *testing.T) {
	set(t, "steps", "30000")
	steps, cases := count(t)
	assert.GreaterOrEqual(t, steps, 30_000)
	assert.Less(t, steps, 31_000)
	assert.Greater(t, len(cases), 1_000, "of 10,000; small numbers come often")
	again, same := count(t)
	assert.Equal(t, steps, again)
	assert.Equal(t, cases, same, "a series draws the same each time")
	assert.Equal(t, "0", flag.Lookup("rapid.seed").Value.String())
	set(t, "series", "2")
	_, others := count(t)
	assert.NotEqual(t, cases, others)
}

func TestSeries0DrawsOtherCasesEachTime(t *testing.T) {
	set(t, "steps", "3000")
	set(t, "series", "0")
	_, cases := count(t)
	_, others := count(t)
	assert.NotEqual(t, cases, others)
}

func TestASeedIsOneRoundTheSameEveryTime(t *testing.T) {
	set(t, "steps", "30000")
	set(t, "rapid.seed", "7")
	steps, cases := count(t)
	assert.Less(t, steps, 30_000)
	again, same := count(t)
	assert.Equal(t, steps, again)
	assert.Equal(t, cases, same)
}
