package mutants

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// mutant is the library, broken in one place. It breaks one of: a rule, a peer's habit, a
// sentence.
type mutant struct {
	name string // what is wrong with it
	rule int    // the number of the broken rule in rules, or 0
	peer peer   // the mistake of another library, or ""
	says string // the broken sentence of the public documentation, if it is about no guarantee

	file     string // from the module's root
	old, new string // source text
	in       string // the package of the test, if it is not that of the file
	caught   string // the test that fails: it is named after the guarantee
}

const root = "../.."

// rules keep the guarantees on own writes and monotony. Package coherence explains them.
var rules = []string{1: "position", "entry", "floor", "tombstone", "classifier", "settling", "coverage", "probe", "echo", "last state"}

func all() []mutant {
	return slices.Concat(position, entry, floor, tombstone, overtaking, classifier, settling, coverage,
		probe, echo, lastState, collecting, isolation, overlay, several, switches, runs, elections, partitions,
		gated, references, controllers, replicas, owned, changing, narrowing, keeping, following, statuses, connections, shares, divided,
		sourced, fleetRuns, targeted, rotations, fleets, bounds, noting, repeated, telling, contents,
		unbelievable, badLists, decoders, projecting, recorded, simulated, asserted, detecting,
		inspected, observing, called, healthy, statusPages, gateways, gatewayAPI, sideBySide,
		sharedParts, trees, warmStarts, syncs)
}

func (m mutant) breaks() string {
	if m.rule > 0 {
		return fmt.Sprintf("%d %s", m.rule, rules[m.rule])
	}
	return cmp.Or(string(m.peer), m.says)
}

// pkg is the package of the test. What package accumulator is made of is tested by its tests, but
// for partitions.
func (m mutant) pkg() string {
	if strings.HasPrefix(m.file, "accumulator/") && path.Dir(m.file) != "accumulator/partition" {
		return cmp.Or(m.in, "accumulator")
	}
	return cmp.Or(m.in, path.Dir(m.file))
}

// moduleOf is the folder of the module that a folder is in: that of the library is ".".
func moduleOf(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return dir
		}
	}
	return dir
}

// source returns the mutant's file, broken.
func (m mutant) source() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 || m.old == m.new {
		return "", fmt.Errorf("%s has the text %d times, not once: the mutant is stale", m.file, n)
	}
	return strings.Replace(string(text), m.old, m.new, 1), nil
}

var (
	outcomes sync.Map // name: outcome
	named    = regexp.MustCompile(`^Test(Model|\w+/)?(G\d+)+`)
)

// TestMain prints the table at the end, because the output of passing tests is not shown.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		n := 0
		for _, m := range all() {
			if o, ok := outcomes.Load(m.name); ok {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.name, m.breaks(), o.(outcome).how, m.caught)
				n++
			}
		}
		_ = table.Flush()
		fmt.Printf("%d of %d mutants were tried\n", n, len(all()))
		os.Exit(code)
	}))
}

// TestMutantsAreCaught tries as many at a time as there are cores, until all have been tried or
// the time for them is up. The table says how many those are.
func TestMutantsAreCaught(t *testing.T) {
	binary, chosen, end := t.TempDir(), share(t), until(t)
	next := make(chan int, len(chosen))
	for i := range chosen {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	defer workers.Wait()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				if !end.IsZero() && time.Now().After(end) {
					return
				}
				m := chosen[i]
				t.Run(m.name, func(t *testing.T) { m.check(t, filepath.Join(binary, fmt.Sprint(i))) })
			}
		})
	}
}

func (m mutant) check(t *testing.T, dir string) {
	source, err := m.source()
	require.NoError(t, err)
	o := m.try(t, dir, source)
	outcomes.Store(m.name, o)
	t.Logf("%s: %s", m.caught, o.how) // at once, where the table comes at the end
	if !o.caught {
		t.Errorf("not caught\n%s", o.output)
	}
}

// until returns when no other mutant is begun, if the environment says how long they may take: a
// machine with other work on it tries fewer.
func until(t *testing.T) (end time.Time) {
	limit, err := time.ParseDuration(cmp.Or(os.Getenv("MUTANTS_TIME"), "0s"))
	require.NoError(t, err, "MUTANTS_TIME")
	if limit > 0 {
		end = time.Now().Add(limit)
	}
	return end
}

// share returns all mutants, or one part of them if the environment says how many parts there
// are. Another commit gets another part, in another order.
func share(t *testing.T) []mutant {
	parts, err := strconv.Atoi(cmp.Or(os.Getenv("MUTANTS_PARTS"), "1"))
	require.NoError(t, err, "MUTANTS_PARTS")
	require.Positive(t, parts, "MUTANTS_PARTS")
	if parts == 1 {
		return all()
	}
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		commit = nil // no checkout: always the same part
	}
	drawn := func(m mutant) uint32 {
		h := fnv.New32a()
		_, _ = h.Write(append(commit, m.name...))
		return h.Sum32()
	}
	part := slices.DeleteFunc(all(), func(m mutant) bool { return drawn(m)%uint32(parts) != 0 })
	slices.SortFunc(part, func(a, b mutant) int { return cmp.Compare(drawn(a), drawn(b)) })
	return part
}

func TestTheTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range all() {
		assert.False(t, seen[m.name], "two mutants %q", m.name)
		seen[m.name], seen[m.breaks()] = true, true
		if m.says == "" {
			assert.True(t, (m.rule > 0) != (m.peer != ""), "%s breaks a rule, or does as a peer does", m.name)
			assert.Regexp(t, named, m.caught, "%s: a test that names a guarantee", m.name)
		} else {
			assert.True(t, m.rule == 0 && m.peer == "", "%s breaks a sentence, and no rule", m.name)
		}
		_, err := m.source()
		assert.NoError(t, err, m.name)
		_, catcher, err := m.clauses()
		assert.NoError(t, err, m.name)
		assert.NotEmpty(t, catcher, "%s: %s has no %s", m.name, m.pkg(), m.caught)
	}
	for rule, name := range rules {
		assert.True(t, rule == 0 || seen[fmt.Sprintf("%d %s", rule, name)], "rule %d, %s, is not broken", rule, name)
	}
	for _, p := range peers {
		assert.True(t, seen[string(p)], "no mutant does as a peer does: %s", p)
	}
}

// overlay makes go read the mutant's source in place of the file. It leaves out the package's
// tests that are not in the same Go package as the test that must catch the mutant.
func (m mutant) overlay(dir, source string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	broken, list := filepath.Join(dir, "source.go"), filepath.Join(dir, "overlay.json")
	replace := map[string]string{filepath.Join(root, m.file): broken}
	clauses, clause, err := m.clauses()
	if err != nil {
		return "", err
	}
	for file, c := range clauses {
		if c != clause {
			replace[file] = ""
		}
	}
	absolute := map[string]string{}
	for file, by := range replace {
		name, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		absolute[name] = by
	}
	data, err := json.Marshal(map[string]any{"Replace": absolute})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(broken, []byte(source), 0o600); err != nil {
		return "", err
	}
	return list, os.WriteFile(list, data, 0o600)
}

// clauses returns the package clauses of the test files, and which one the test that must catch
// the mutant is under. That one is empty if there is no such test.
func (m mutant) clauses() (of map[string]string, catcher string, err error) {
	tests, err := filepath.Glob(filepath.Join(root, m.pkg(), "*_test.go"))
	if err != nil {
		return nil, "", err
	}
	declared := regexp.MustCompile(`(?m)^func ` + strings.Split(m.caught, "/")[0] + `\(`)
	of = map[string]string{}
	for _, file := range tests {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, "", err
		}
		of[file] = packageClause.FindString(string(text))
		if declared.Match(text) {
			catcher = of[file]
		}
	}
	return of, catcher, nil
}

var packageClause = regexp.MustCompile(`(?m)^package \w+$`)
