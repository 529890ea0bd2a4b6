package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module makes a module of one package with these fuzz tests, and returns its folder.
func module(t *testing.T, bodies map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	source := "package fake\n\nimport \"testing\"\n"
	for name, body := range bodies {
		source += "\nfunc " + name + "(f *testing.F) {\n\tf.Fuzz(func(t *testing.T, b []byte) {" + body + "})\n}\n"
	}
	write(t, filepath.Join(dir, "go.mod"), "module example.com/fake\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "fake_test.go"), source)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

func TestEachFuzzTestIsRunAndItsExecutionsAreCounted(t *testing.T) {
	dir := module(t, map[string]string{"FuzzA": ``, "FuzzB": ``})
	write(t, filepath.Join(dir, "other", "go.mod"), "module example.com/other\n")
	write(t, filepath.Join(dir, "other", "fake_test.go"), "func FuzzOther(f *testing.F) {}\n")
	write(t, filepath.Join(dir, "testdata", "fake_test.go"), "func FuzzData(f *testing.F) {}\n")
	var out strings.Builder
	if err := run(dir, "20x", "", nil, &out); err != nil {
		t.Fatal(err)
	}
	mustContain(t, out.String(), "FuzzA: 2", "FuzzB: 2", "fuzzing: 2 fuzz tests, 4", "0 findings")
}

func TestAFindingFailsTheRunAndTheOthersAreRunAllTheSame(t *testing.T) {
	dir := module(t, map[string]string{"FuzzA": `t.Fatal("broken")`, "FuzzB": ``})
	var out strings.Builder
	err := run(dir, "20x", "", nil, &out)
	if err == nil {
		t.Fatal(out.String())
	}
	mustContain(t, err.Error(), "FuzzA in ", "exit status 1")
	mustContain(t, out.String(), "broken", "FuzzB: 2", "1 findings")
}

func TestARunWithoutFuzzTestsFails(t *testing.T) {
	var out strings.Builder
	if err := run(module(t, nil), "20x", "", nil, &out); err == nil {
		t.Error("it passed")
	}
	if err := run(module(t, map[string]string{"FuzzA": ``}), "20x", "FuzzB", nil, &out); err == nil {
		t.Error("it passed")
	}
}

// The end of the time, as go test prints it when the machine is loaded, and what only looks so.
func TestTheEndOfTheTimeIsNoFinding(t *testing.T) {
	const begun = "fuzz: elapsed: 0s, gathering baseline coverage: 0/8 completed\n" +
		"fuzz: elapsed: 3s, execs: 14565 (4854/sec), new interesting: 4 (total: 12)\n"
	const end = "FAIL\nexit status 1\nFAIL\texample.com/fake\t10.03s\n"
	for output, want := range map[string]bool{
		begun + "--- FAIL: FuzzA (10.03s)\n    context deadline exceeded\n" + end:                                          true,
		begun + "--- FAIL: FuzzA (10.03s)\n    fake_test.go:7: context deadline exceeded\n" + end:                          false,
		begun + "--- FAIL: FuzzA (10.03s)\n    context deadline exceeded\n    Failing input written to testdata/x\n" + end: false,
		begun + "--- FAIL: FuzzA (1.03s)\n    --- FAIL: FuzzA (0.00s)\n        fake_test.go:7: broken\n" + end:             false,
		begun + "PASS\nok  \texample.com/fake\t10.03s\n":                                                                   false,
		begun: false,
		"":    false,
	} {
		o := read(output)
		if o.late != want || strings.Contains(o.text, "elapsed") {
			t.Errorf("late is %v of:\n%s", o.late, output)
		}
		if output != "" && o.execs != 14565 {
			t.Errorf("%d executions of:\n%s", o.execs, output)
		}
	}
}

func TestARunThatEndsWithItsFirstInputsHasExecutedThem(t *testing.T) {
	o := read("fuzz: elapsed: 0s, gathering baseline coverage: 0/194 completed\n" +
		"fuzz: elapsed: 9s, gathering baseline coverage: 100/194 completed\nPASS\n")
	if o.execs != 100 || o.text != "PASS\n" {
		t.Errorf("%+v", o)
	}
}
