package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A test that hangs because of a mutant is stopped after limit. A slow machine is not taken for a
// mutant: without the mutant the same test must end at least slack times sooner.
const (
	limit = 30 * time.Second
	slack = 5
)

// outcome is what happened to a mutant.
type outcome struct {
	caught bool
	how    string
	output string
}

// try runs the mutant's test and no other, because that test must catch the mutant. A test that
// hangs catches it only if the test does not hang without the mutant, on this machine, now.
func (m mutant) try(t *testing.T, dir, source string) outcome {
	binary, o := m.build(t, filepath.Join(dir, "broken"), source)
	if binary == "" {
		return o
	}
	o = m.run(t, binary, limit)
	if o.how != hung || !o.caught {
		return o
	}
	whole, err := os.ReadFile(filepath.Join(root, m.file))
	require.NoError(t, err)
	unbroken, without := m.build(t, filepath.Join(dir, "unbroken"), string(whole))
	if unbroken == "" {
		return without
	}
	begin := time.Now()
	if without = m.run(t, unbroken, slack*limit); without.how != survived {
		return outcome{how: "it does not pass without the mutant: " + without.how, output: without.output}
	}
	if took := time.Since(begin); slack*took > limit {
		return m.run(t, binary, slack*took) // the machine is slow, or the test is
	}
	return o
}

// build compiles the test with the source in place of the mutant's file. Most of the time goes
// into that, so it compiles without optimization, the race detector and vet.
func (m mutant) build(t *testing.T, dir, source string) (binary string, failed outcome) {
	list, err := m.overlay(dir, source)
	require.NoError(t, err)
	binary = filepath.Join(dir, "tests")
	module := moduleOf(m.pkg())
	pkg, err := filepath.Rel(module, m.pkg())
	require.NoError(t, err)
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-gcflags=-N -l", "-ldflags=-s -w", "-p=1", "-o", binary, "./"+pkg)
	build.Dir = filepath.Join(root, module)
	if output, err := build.CombinedOutput(); err != nil {
		return "", outcome{how: "it does not compile", output: string(output)}
	}
	return binary, outcome{}
}

// run runs the mutant's test, for no longer than the timeout.
func (m mutant) run(t *testing.T, binary string, timeout time.Duration) outcome {
	args := []string{"-test.v", "-test.timeout", timeout.String(), "-test.run", pattern(m.caught)}
	// random tests: neither shrink nor keep the counterexample
	if strings.HasPrefix(m.caught, model) || slices.Contains([]string{deltas, naive, refsModel}, m.caught) {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	}
	run := exec.CommandContext(t.Context(), binary, args...)
	run.Dir = filepath.Join(root, m.pkg())
	output, err := run.CombinedOutput()
	if err == nil {
		return outcome{how: survived, output: string(output)}
	}
	return judge(m.caught, string(output))
}

const (
	survived = "survived"
	hung     = "hung"
)

// model is the beginning of model tests' names.
const (
	model     = "TestModel"
	refsModel = "TestModelG1G4G5G6WhatIsShownNamesWhatIsKnown"
)

// pattern matches exactly one test or subtest.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

var (
	running = regexp.MustCompile(`(?s)panic: test timed out.*?running tests:\n(.*?)\n\n`)
	panics  = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)$`)
)

// judge reads the output of a failed run. Only the test that must catch the mutant counts.
func judge(test, output string) outcome {
	if m := running.FindStringSubmatch(output); m != nil {
		return outcome{strings.Contains(m[1], "\t"+test), hung, output}
	}
	started := regexp.MustCompile(`(?m)^=== RUN +` + regexp.QuoteMeta(test) + `$`).MatchString(output)
	if m := panics.FindStringSubmatch(output); m != nil {
		return outcome{started, "panic: " + m[1], output}
	}
	failed := regexp.MustCompile(`(?m)^ *--- FAIL: ` + regexp.QuoteMeta(test) + ` `).MatchString(output)
	return outcome{failed, "failed", output}
}

func TestOnlyTheNamedTestCatchesAMutant(t *testing.T) {
	started := "=== RUN   TestG4X\n"
	for output, want := range map[string]outcome{
		started + "--- FAIL: TestG4X (0.00s)\nFAIL\n":      {caught: true, how: "failed"},
		"=== RUN   TestG4XY\n--- FAIL: TestG4XY (0.00s)\n": {how: "failed"},
		"no such flag\n": {how: "failed"},
		started + "panic: deadlock\n\ngoroutine 1\n": {caught: true, how: "panic: deadlock"},
		"panic: in TestMain\n":                       {how: "panic: in TestMain"},
		started + "panic: test timed out after 30s\n\trunning tests:\n\t\tTestG4X (30s)\n\n": {caught: true, how: hung},
		started + "panic: test timed out after 30s\n\trunning tests:\n\t\tTestG5 (30s)\n\n":  {how: hung},
	} {
		want.output = output
		assert.Equal(t, want, judge("TestG4X", output))
	}
}
