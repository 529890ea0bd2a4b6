package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/bench/internal/report"
)

func TestFlagsSayWhatIsMeasured(t *testing.T) {
	o, err := settingsOf("run", []string{"-sizes", "10, 200", "-runs=3", "-consumers", "kates", "-out", "there"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, []int{10, 200}, o.Sizes)
	assert.Equal(t, 3, o.Runs)
	assert.Len(t, o.Consumers, 1)
	assert.Equal(t, "there", o.out)
	assert.False(t, o.Strict)

	o, err = settingsOf("run", []string{"-smoke"}, io.Discard)
	require.NoError(t, err)
	assert.True(t, o.Strict)
	assert.Less(t, o.Sizes[0], 100)

	for _, wrong := range [][]string{{"-sizes", "many"}, {"-sizes", "0"}, {"-sizes", ""}, {"-runs", "0"}, {"-consumers", "x"}, {"more"}} {
		_, err := settingsOf("run", wrong, io.Discard)
		require.Error(t, err, wrong)
	}
}

func TestFlagsSayWhatIsMeasuredOfOperators(t *testing.T) {
	o, out, err := operatorOptions([]string{"-roots", "300", "-operators", "kates cr", "-out", "there"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, 300, o.Roots)
	assert.Len(t, o.Operators, 2)
	assert.Equal(t, "there", out)
	o, _, err = operatorOptions([]string{"-smoke"}, io.Discard)
	require.NoError(t, err)
	assert.Less(t, o.Roots, 100)
	for _, wrong := range [][]string{{"-roots", "0"}, {"-roots", "10"}, {"-roots=10", "-changes=10", "-drift=11"}, {"-operators", "x"}, {"-quiet", "0s"}, {"-runs", "x"}, {"more"}} {
		_, _, err := operatorOptions(wrong, io.Discard)
		require.Error(t, err, wrong)
	}
}

func TestACrowdIsMeasuredOrWhatIsWrongIsSaid(t *testing.T) {
	for _, wrong := range [][]string{{"-pods", "0"}, {"-pods", "100000000"}, {"-runs", "0"}, {"-refreshes", "0"}, {"-rate", "-1"}, {"-consumers", "x"}, {"more"}} {
		require.Error(t, crowd(t.Context(), wrong, io.Discard, io.Discard), wrong)
	}
}

func TestFlagsSayWhatIsMeasuredOfGateways(t *testing.T) {
	o, out, err := gatewayOptions([]string{"-ingresses", "300", "-gateways", "kates", "-out", "there"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, 300, o.Ingresses)
	assert.Len(t, o.Gateways, 1)
	assert.Equal(t, "there", out)
	o, _, err = gatewayOptions([]string{"-smoke"}, io.Discard)
	require.NoError(t, err)
	assert.Less(t, o.Ingresses, 100)
	for _, wrong := range [][]string{{"-ingresses", "0"}, {"-ingresses", "5000"}, {"-rate=10", "-for=1s"}, {"-gateways", "x"}, {"-runs", "x"}, {"more"}} {
		_, _, err := gatewayOptions(wrong, io.Discard)
		require.Error(t, err, wrong)
	}
}

func TestFlagsSayWhatIsMeasuredOfReplicasThatShare(t *testing.T) {
	o, out, err := shardedOptions([]string{"-pods=900", "-namespaces=90", "-replicas=1,9", "-out", "there"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, []any{900, 90, []int{1, 9}, 3, "there"}, []any{o.Pods, o.Namespaces, o.Replicas, o.Runs, out})
	o, _, err = shardedOptions([]string{"-smoke"}, io.Discard)
	require.NoError(t, err)
	assert.Less(t, o.Pods, 1000)
	for _, wrong := range [][]string{{"-pods", "0"}, {"-runs", "0"}, {"-namespaces", "39"}, {"-replicas", "0"}, {"-replicas", ""}, {"-replicas", "41"}, {"more"}} {
		_, _, err := shardedOptions(wrong, io.Discard)
		require.Error(t, err, wrong)
	}
}

func TestMistakesOfTheUserAreErrors(t *testing.T) {
	for _, args := range [][]string{nil, {"dance"}, {"consume"}, {"consume", "nobody"}, {"operate"}, {"operate", "nobody"}, {"route"}, {"route", "nobody"}, {"report", "-out", t.TempDir()},
		{"load", "-rate", "0"}, {"load", "-objects", "0"}, {"load", "-for", "1ms"}, {"load", "-reconcile", "-1s"}, {"load", "more"}} {
		require.Error(t, run(t.Context(), args, io.Discard, io.Discard), args)
	}
}

func TestTheReportIsWrittenAgainFromTheRawResults(t *testing.T) {
	dir := t.TempDir()
	r := &report.Results{Runs: 1, Sizes: []report.Size{{Pods: 10}}}
	r.Add(10, 1, "kates", report.RefreshTime, 2.5)
	require.NoError(t, r.Write(filepath.Join(dir, "results.json")))
	require.NoError(t, run(t.Context(), []string{"report", "-out", dir}, io.Discard, io.Discard))
	text, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "| refresh after 1 change, ms | 2.5 |")
}

func TestRecordingsAreReplayedToTheirEnd(t *testing.T) {
	var out strings.Builder
	require.NoError(t, replayed(t.Context(), []string{"-recordings", filepath.Join("..", "testdata", "recordings"), "-runs", "1"}, &out, io.Discard))
	for _, name := range recordings {
		assert.Contains(t, out.String(), "| "+name+" | ")
	}
	require.Error(t, replayed(t.Context(), []string{"-runs", "0"}, io.Discard, io.Discard))
	require.Error(t, replayed(t.Context(), []string{"-recordings", t.TempDir()}, io.Discard, io.Discard))
}

func TestFlagsSayWhatIsMeasuredOfDerivedResults(t *testing.T) {
	o, out, err := derivedOptions([]string{"-sizes=30,40", "-pods=90", "-policies=9", "-krt=there/krt", "-out", "there"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, []any{[]int{30, 40}, 90, 9, "there/krt", "there"}, []any{o.Sizes, o.Pods, o.Policies, o.Krt, out})
	o, _, err = derivedOptions([]string{"-smoke"}, io.Discard)
	require.NoError(t, err)
	assert.Less(t, o.Pods, 1000)
	assert.Empty(t, o.Krt)
	for _, wrong := range [][]string{{"-pods", "0"}, {"-runs", "0"}, {"-policies", "1"}, {"-pods=9", "-policies=10"}, {"-sizes", ""}, {"-slow", "0"}, {"-changes", "0"}, {"-checked", "0"}, {"more"}} {
		_, _, err := derivedOptions(wrong, io.Discard)
		require.Error(t, err, wrong)
	}
	require.Error(t, contend(t.Context(), nil, io.Discard, io.Discard))
	require.Error(t, contend(t.Context(), []string{"krt"}, io.Discard, io.Discard))
}

func TestTheYardstickIsPinnedAndHasNoKates(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("krt", "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "\tistio.io/istio v0.0.0-20260827124520-eed52ebb66ad\n")
	assert.NotContains(t, string(text), "replace")
	for line := range strings.Lines(string(text)) {
		assert.False(t, strings.Contains(line, "kates-go/kates") && !strings.HasPrefix(line, "module "), line)
	}
}
