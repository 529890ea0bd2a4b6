package mutants

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// mutant is the library, broken in one place. It breaks one of: a rule, a peer's habit, a promise,
// or no more than the guarantees that the name of the test has.
type mutant struct {
	name string // what is wrong with it
	rule string // the broken rule, one of rules
	peer peer   // the mistake of another library
	says string // the broken promise, one of those in doc.go

	in       string // the function: its name, after its receiver and its package if others have it
	old, new string // source text: see replaced
	caught   string // the test that fails
	pkg      string // the folder of the test's package, if several have a test of that name
}

const root = "../../.."

func (m mutant) breaks() string {
	return cmp.Or(m.rule, string(m.peer), m.says, strings.Join(m.guarantees(), " "))
}

var (
	named     = regexp.MustCompile(`^Test(Model|\w+/)?((?:G\d+)+)`)
	guarantee = regexp.MustCompile(`G\d+`)
)

// guarantees are those that the name of the test has.
func (m mutant) guarantees() []string {
	if of := named.FindStringSubmatch(m.caught); of != nil {
		return guarantee.FindAllString(of[2], -1)
	}
	return nil
}

func readSource(file string) ([]byte, error) { return os.ReadFile(filepath.Join(root, file)) }

func woven(t *testing.T) (sources, map[string]string) {
	s, err := tree()
	require.NoError(t, err)
	files, err := weave(s, all(), readSource)
	require.NoError(t, err, "mutants whose place is gone: find the code that does its job now")
	return s, files
}

var outcomes sync.Map // name: outcome

// TestMain prints the table at the end, because the output of passing tests is not shown.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		n := 0
		for _, m := range all() {
			if o, ok := outcomes.Load(m.name); ok {
				o := o.(outcome)
				fmt.Fprintf(table, "%s\t%.1fs\t%s\t%s\t%s\n", o.how, o.took.Seconds(), m.name, m.caught, m.breaks())
				n++
			}
		}
		_ = table.Flush()
		fmt.Printf("%d of %d mutants were tried\n", n, len(all()))
		os.Exit(code)
	}))
}

// TestMutantsAreCaught tries all, as many at a time as there are cores.
func TestMutantsAreCaught(t *testing.T) {
	s, files := woven(t)
	catchers := map[string][]mutant{} // the mutants by the folder of the test that catches them
	for _, m := range all() {
		dir, err := s.test(m.caught, m.pkg)
		require.NoError(t, err, m.name)
		if wanted(m.name) {
			catchers[dir] = append(catchers[dir], m)
		}
	}
	dirs := slices.Sorted(maps.Keys(catchers))
	suites := compile(t, files, dirs)
	atATime(func(do chan<- func()) {
		for _, dir := range dirs {
			do <- func() { suites[dir].measure(t, catchers[dir]) }
		}
	})
	atATime(func(do chan<- func()) {
		for _, dir := range dirs {
			for _, m := range catchers[dir] {
				do <- func() { t.Run(m.name, func(t *testing.T) { m.check(t, suites[dir]) }) }
			}
		}
	})
}

// wanted is whether -run asks for the subtest of that name. Only what its tests need is compiled.
func wanted(name string) bool {
	_, subtest, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	matches, err := regexp.MatchString(subtest, strings.ReplaceAll(name, " ", "_"))
	return matches || err != nil
}

// atATime does what is sent, as much at a time as there are cores.
func atATime(send func(do chan<- func())) {
	all := make(chan func())
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for do := range all {
				do()
			}
		})
	}
	send(all)
	close(all)
	workers.Wait()
}

func (m mutant) check(t *testing.T, s *suite) {
	o := s.try(t, m)
	outcomes.Store(m.name, o)
	t.Logf("%s after %.1f s", o.how, o.took.Seconds()) // at once, where the table comes at the end
	if !o.caught {
		t.Errorf("not caught\n%s", o.output)
	}
}
