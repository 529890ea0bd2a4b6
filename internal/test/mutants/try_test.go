package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	took   time.Duration
}

// suite is a compiled package of tests, with all mutants in it.
type suite struct {
	binary, dir string
	flags       []string                 // of its random tests, if it has any
	output      string                   // without a mutant
	without     map[string]time.Duration // how long each test takes that passes without a mutant
}

// compile compiles and links the packages of tests with all mutants in them.
func compile(t *testing.T, files map[string]string, dirs []string) map[string]*suite {
	at := t.TempDir()
	overlay := map[string]string{}
	for file, text := range files {
		name, err := filepath.Abs(filepath.Join(root, file))
		require.NoError(t, err)
		overlay[name] = filepath.Join(at, fmt.Sprintf("%d.go", len(overlay)))
		require.NoError(t, os.WriteFile(overlay[name], []byte(text), 0o600))
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list := filepath.Join(at, "overlay.json")
	require.NoError(t, os.WriteFile(list, data, 0o600))

	suites := map[string]*suite{}
	for round := 0; len(dirs) > 0; round++ { // in one round no two packages have the same last name
		bin := filepath.Join(at, fmt.Sprint(round))
		args := []string{"test", "-c", "-overlay", list, "-vet=off", "-ldflags=-s -w", "-o", bin + "/"}
		var later []string
		names := map[string]bool{}
		for _, dir := range dirs {
			name := filepath.Base(dir)
			if names[name] {
				later = append(later, dir)
				continue
			}
			names[name] = true
			args = append(args, "./"+dir)
			suites[dir] = &suite{binary: filepath.Join(bin, name+".test"), dir: filepath.Join(root, dir)}
		}
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = root
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		dirs = later
	}
	return suites
}

// randomly are flags of random tests: few steps, and the counterexample is neither shrunk nor kept.
var randomly = map[string]string{"steps": "=5000", "rapid.nofailfile": "=true", "rapid.shrinktime": "=1ms"}

// measure runs the tests without a mutant. It notes which pass, and how long they take. Tests run
// in one process, but for subtests, of which a pattern names one.
func (s *suite) measure(t *testing.T, mutants []mutant) {
	usage, _ := exec.CommandContext(t.Context(), s.binary, "-help").CombinedOutput()
	s.without = map[string]time.Duration{}
	for name, value := range randomly {
		if bytes.Contains(usage, []byte("\n  -"+name+" ")) || bytes.Contains(usage, []byte("\n  -"+name+"\n")) {
			s.flags = append(s.flags, "-"+name+value)
		}
	}
	whole, patterns := []string{}, map[string]bool{}
	for _, m := range mutants {
		if strings.Contains(m.caught, "/") {
			patterns[only(m.caught)] = true
		} else {
			whole = append(whole, m.caught)
		}
	}
	if len(whole) > 0 {
		patterns["^("+strings.Join(whole, "|")+")$"] = true
	}
	for pattern := range patterns {
		output, _ := s.run(t, "", pattern, 10*limit)
		s.output += output
		for _, passed := range passes.FindAllStringSubmatch(output, -1) {
			s.without[passed[1]], _ = time.ParseDuration(passed[2])
		}
	}
}

var passes = regexp.MustCompile(`(?m)^ *--- PASS: (\S+) \((\S+)\)$`)

// try runs the mutant's test and no other, because that test must catch the mutant. A test that
// hangs catches it only if the test does not hang without the mutant, on this machine, now.
func (s *suite) try(t *testing.T, m mutant) outcome {
	without, ok := s.without[m.caught]
	if !ok {
		return outcome{how: "it does not pass without the mutant", output: s.output}
	}
	begin := time.Now()
	output, err := s.run(t, m.id(), only(m.caught), max(limit, slack*without))
	took := time.Since(begin)
	if err == nil {
		return outcome{how: survived, output: output, took: took}
	}
	o := judge(m.caught, output)
	o.took = took
	return o
}

func (s *suite) run(t *testing.T, id, tests string, timeout time.Duration) (string, error) {
	args := []string{"-test.v", "-test.timeout", timeout.String(), "-test.run", tests}
	run := exec.CommandContext(t.Context(), s.binary, append(args, s.flags...)...)
	run.Dir, run.Env = s.dir, append(os.Environ(), variable+"="+id)
	output, err := run.CombinedOutput()
	return string(output), err
}

const (
	survived = "survived"
	hung     = "hung"
	noTime   = "raise -timeout or lower -steps" // see package rounds
)

// only matches exactly one test or subtest.
func only(test string) string {
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
	if strings.Contains(output, noTime) {
		return outcome{how: "a model had no time for its steps", output: output}
	}
	if m := running.FindStringSubmatch(output); m != nil {
		return outcome{caught: strings.Contains(m[1], "\t"+test), how: hung, output: output}
	}
	started := regexp.MustCompile(`(?m)^=== RUN +` + regexp.QuoteMeta(test) + `$`).MatchString(output)
	if m := panics.FindStringSubmatch(output); m != nil {
		return outcome{caught: started, how: "panic: " + m[1], output: output}
	}
	failed := regexp.MustCompile(`(?m)^ *--- FAIL: ` + regexp.QuoteMeta(test) + ` `).MatchString(output)
	return outcome{caught: failed, how: "failed", output: output}
}

func TestOnlyTheNamedTestCatchesAMutant(t *testing.T) {
	started := "=== RUN   TestG4X\n"
	for output, want := range map[string]outcome{
		started + "--- FAIL: TestG4X (0.00s)\nFAIL\n":      {caught: true, how: "failed"},
		"=== RUN   TestG4XY\n--- FAIL: TestG4XY (0.00s)\n": {how: "failed"},
		"no such flag\n": {how: "failed"},
		started + "raise -timeout or lower -steps\n--- FAIL: TestG4X (29.0s)\n": {how: "a model had no time for its steps"},
		started + "panic: deadlock\n\ngoroutine 1\n":                            {caught: true, how: "panic: deadlock"},
		"panic: in TestMain\n": {how: "panic: in TestMain"},
		started + "panic: test timed out after 30s\n\trunning tests:\n\t\tTestG4X (30s)\n\n": {caught: true, how: hung},
		started + "panic: test timed out after 30s\n\trunning tests:\n\t\tTestG5 (30s)\n\n":  {how: hung},
	} {
		want.output = output
		assert.Equal(t, want, judge("TestG4X", output))
	}
}
