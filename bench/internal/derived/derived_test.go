package derived

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asked serves a contender, and returns its answers.
func asked(t *testing.T, name string, commands ...Command) (all []Answer) {
	t.Helper()
	var in, out strings.Builder
	for _, c := range commands {
		require.NoError(t, json.NewEncoder(&in).Encode(c))
	}
	require.NoError(t, Serve(name, strings.NewReader(in.String()), &out))
	for read := json.NewDecoder(strings.NewReader(out.String())); ; {
		var a Answer
		err := read.Decode(&a)
		if err == io.EOF {
			require.Len(t, all, len(commands))
			return all
		}
		require.NoError(t, err)
		all = append(all, a)
	}
}

var series = map[Workload][]Change{
	Routes:    {{Slice, 3, 1, 1}, {Deployment, 3, 1, 1}, {Service, 4, 1, 1}, {Slice, 0, 1, 1}, {Slice, 3, 2, 1}},
	PerPod:    {{Pod, 3, 1, 1}, {Policy, 2, 1, 10}, {Wide, 0, 1, 40}, {Policy, 3, 1, 10}, {Wide, 0, 2, 40}, {Pod, 3, 2, 1}, {Policy, 0, 3, 40}},
	PerPolicy: {{Pod, 3, 1, 1}, {Policy, 2, 1, 1}, {Wide, 0, 1, 1}, {Pod, 3, 2, 2}, {Policy, 0, 2, 1}},
}

func TestContendersHaveTheSameResultsAfterEachChange(t *testing.T) {
	for workload, changes := range series {
		begin := Command{Do: Start, Workload: workload, Objects: 40, Policies: 4}
		var sums []string
		for _, name := range Names(workload) {
			answers := asked(t, name, begin, Command{Do: Check, Changes: changes},
				Command{Do: Measure, Changes: changes, Rounds: 3}, Command{Do: Memory})
			for _, a := range answers {
				require.Empty(t, a.Error, "%s of %s", workload, name)
			}
			all := append(answers[0].Sums, answers[1].Sums...)
			require.Len(t, all, len(changes)+1)
			for i, s := range all[1:] {
				assert.NotEqual(t, all[i], s, "%s, %s: change %d changes results", workload, name, i)
			}
			assert.Equal(t, all[len(changes)], answers[2].Sums[0], "a round ends with the versions of the checked changes")
			if sums == nil {
				sums = all
			}
			assert.Equal(t, sums, all, "%s, %s", workload, name)
		}
	}
}

func TestSumsDoNotDependOnTheOrderOfResults(t *testing.T) {
	sum := func(lines ...row) string {
		return (&server{contender: &looped{rows: lines}}).sum()
	}
	assert.Equal(t, sum(row{"a"}, row{"b"}), sum(row{"b"}, row{"a"}))
	assert.NotEqual(t, sum(row{"a"}), sum(row{"a"}, row{"a"}))
}

func TestTheFunctionsOfAGraphRunAlone(t *testing.T) {
	begin := Command{Do: Start, Workload: PerPod, Objects: 400, Policies: 4}
	answers := asked(t, "derive", begin, Command{Do: Own})
	assert.Empty(t, answers[1].Error)
	assert.Contains(t, asked(t, "loop", begin, Command{Do: Own})[1].Error, "has no functions")
}

func TestAContenderSaysWhatItCannotDo(t *testing.T) {
	begin := Command{Do: Start, Workload: Routes, Objects: 4}
	for _, c := range []struct {
		says     string
		commands []Command
	}{
		{"before a start", []Command{{Do: Check}}},
		{"0 objects", []Command{{Do: Start, Workload: Routes}}},
		{"5 policies", []Command{{Do: Start, Workload: PerPod, Objects: 4, Policies: 5}}},
		{"no contender", []Command{{Do: Start, Workload: "dance", Objects: 4, Policies: 4}}},
		{"no pod", []Command{begin, {Do: Check, Changes: []Change{{Kind: Pod}}}}},
		{"no pod", []Command{begin, {Do: Measure, Changes: []Change{{Kind: Pod}}}}},
		{"no slice", []Command{{Do: Start, Workload: PerPod, Objects: 4, Policies: 4}, {Do: Check, Changes: []Change{{Kind: Slice}}}}},
		{"no command", []Command{begin, {Do: "dance"}}},
	} {
		answers := asked(t, "caches", c.commands...)
		assert.Contains(t, answers[len(answers)-1].Error, c.says)
	}
	require.Error(t, Serve("loop", strings.NewReader("no command"), io.Discard))
	_, err := ByName("nobody")
	require.ErrorContains(t, err, "caches")
}
