package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// outcome runs testgate on a module of one package with the given test bodies
// and returns what it printed and its error as text.
func outcome(t *testing.T, tests map[string]string, args ...string) (string, string) {
	t.Helper()
	return options{name: "fake", list: true, slowest: 1}.outcome(t, tests, args...)
}

func (o options) outcome(t *testing.T, tests map[string]string, args ...string) (string, string) {
	t.Helper()
	dir := t.TempDir()
	var source strings.Builder
	source.WriteString("package fake\n\nimport (\n\t\"os\"\n\t\"strconv\"\n\t\"testing\"\n\t\"time\"\n)\n\nvar _, _, _ = os.Exit, strconv.Itoa, time.Now\n")
	for name, body := range maps.All(tests) {
		source.WriteString("\nfunc " + name + " {\n" + body + "\n}\n")
	}
	files := map[string]string{
		"go.mod":       "module example.com/fake\n\ngo 1.26\n",
		"fake_test.go": source.String(),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var out strings.Builder
	err := o.run(append(args, "./..."), &out)
	if err == nil {
		return out.String(), ""
	}
	return out.String(), err.Error()
}

func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

func TestPassingTestsAreCountedAndListed(t *testing.T) {
	out, err := outcome(t, map[string]string{
		"TestA(t *testing.T)": `t.Run("sub", func(t *testing.T) { t.Log("quiet") })`,
		"TestB(t *testing.T)": ``,
	})
	if err != "" {
		t.Fatal(err)
	}
	mustContain(t, out, "ok  \texample.com/fake", "    TestA (", "    TestB (",
		"fake: 3 tests passed, 0 failed, 0 skipped (packages: 1) in ")
	if strings.Contains(out, "quiet") || strings.Contains(out, "PASS") {
		t.Errorf("noise of a passing test in:\n%s", out)
	}
}

// The text of a package with a skipped test is written to a temporary folder, and run there. No
// test of kates is skipped: this one shows that the gate refuses such a test.
func TestASkippedTestFailsTheRunAndSaysWhy(t *testing.T) {
	out, err := outcome(t, map[string]string{
		"TestA(t *testing.T)": ``,
		"TestB(t *testing.T)": `t.Run("sub", func(t *testing.T) { t.Skip("to be refused by the gate") })`,
	})
	mustContain(t, err, "skipped: example.com/fake TestB/sub")
	mustContain(t, out, "to be refused by the gate", "1 skipped")
}

func TestARunWithoutTestsFails(t *testing.T) {
	_, err := outcome(t, map[string]string{"TestA(t *testing.T)": ``}, "-run", "NoSuchTest")
	mustContain(t, err, "no test ran in example.com/fake")
	_, err = outcome(t, nil)
	mustContain(t, err, "no test ran")
}

func TestAFailureShowsItsOutput(t *testing.T) {
	out, err := outcome(t, map[string]string{
		"TestA(t *testing.T)": `t.Log("said before"); t.Fatal("broken")`,
		"TestB(t *testing.T)": `t.Log("quiet")`,
	})
	mustContain(t, err, "go test: exit status 1")
	mustContain(t, out, "said before", "broken", "FAIL\texample.com/fake", "1 failed")
}

func TestAPanicShowsItsTrace(t *testing.T) {
	out, err := outcome(t, map[string]string{"TestA(t *testing.T)": `panic("at the disco")`})
	mustContain(t, err, "go test: exit status 1")
	mustContain(t, out, "at the disco", "goroutine ")
}

func TestABinaryThatDiesInATestFails(t *testing.T) {
	out, err := outcome(t, map[string]string{
		"TestA(t *testing.T)": `println("last words"); os.Exit(3)`,
	})
	mustContain(t, err, "go test: exit status 1")
	mustContain(t, out, "last words")
}

func TestATestThatDoesNotCompileShowsTheCompilersMessage(t *testing.T) {
	out, err := outcome(t, map[string]string{"TestA(t *testing.T)": `undefinedName()`})
	mustContain(t, err, "go test: exit status 1")
	mustContain(t, out, "undefinedName", "[build failed]")
}

func TestAFailureOutsideOfTestsFails(t *testing.T) {
	out, err := outcome(t, map[string]string{
		"TestA(t *testing.T)":    ``,
		"TestMain(m *testing.M)": `m.Run(); println("leaked"); os.Exit(1)`,
	})
	mustContain(t, err, "go test: exit status 1")
	mustContain(t, out, "leaked")
}

// TestMain is main where go test runs a binary through this one.
func TestMain(m *testing.M) {
	if os.Getenv(slotsVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// many are tests whose outcome tells in which process they ran.
func many(n int, body string) map[string]string {
	tests := map[string]string{}
	for i := range n {
		tests[fmt.Sprintf("Test%d(t *testing.T)", i)] = body
	}
	return tests
}

var splitting = options{name: "fake", list: true, split: 10}

func TestManyTestsRunInSeveralProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	t.Setenv("PIDS", file)
	out, err := splitting.outcome(t, many(40, `f, err := os.OpenFile(os.Getenv("PIDS"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
			t.Fatal(err)
		}`))
	if err != "" {
		t.Fatal(err, out)
	}
	mustContain(t, out, "fake: 40 tests passed, 0 failed, 0 skipped (packages: 1) in ")
	pids, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	lines := strings.Fields(string(pids))
	slices.Sort(lines)
	if n := len(slices.Compact(lines)); n != 2*runtime.NumCPU() {
		t.Errorf("%d processes, want %d", n, 2*runtime.NumCPU())
	}
}

func TestFewTestsRunInOneProcess(t *testing.T) {
	out, err := splitting.outcome(t, many(10, `if v, ok := os.LookupEnv("SEEN"); ok { t.Error(v) }; os.Setenv("SEEN", t.Name())`))
	mustContain(t, err, "go test: exit status 1")
	mustContain(t, out, "1 tests passed, 9 failed")
}

func TestAFailureInOneProcessFailsTheRun(t *testing.T) {
	tests := many(40, ``)
	tests["TestBroken(t *testing.T)"] = `t.Log("said before"); t.Fatal("broken")`
	out, err := splitting.outcome(t, tests)
	mustContain(t, err, "go test: exit status 1")
	mustContain(t, out, "said before", "40 tests passed, 1 failed")
}

func TestAProcessThatDiesFailsTheRun(t *testing.T) {
	tests := many(40, ``)
	tests["TestBroken(t *testing.T)"] = `println("last words"); os.Exit(3)`
	out, err := splitting.outcome(t, tests)
	mustContain(t, err, "go test: exit status 1")
	mustContain(t, out, "last words")
}

func TestAChosenTestRunsAloneThoughThereAreMany(t *testing.T) {
	out, err := splitting.outcome(t, many(40, `t.Run("a", func(t *testing.T) {}); t.Run("b", func(t *testing.T) {})`), "-run", "^Test1$/a")
	if err != "" {
		t.Fatal(err)
	}
	mustContain(t, out, "fake: 2 tests passed")
}

func TestTheSlowestTestIsNamed(t *testing.T) {
	out, err := outcome(t, map[string]string{"TestA(t *testing.T)": ``, "TestB(t *testing.T)": `for start := time.Now(); time.Since(start) < 20*time.Millisecond; {}`})
	if err != "" {
		t.Fatal(err)
	}
	mustContain(t, out, "s  example.com/fake TestB\n")
}
