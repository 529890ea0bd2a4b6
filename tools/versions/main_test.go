package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// outcomeOf runs a shell script for versions, each of which takes two seconds.
func outcomeOf(t *testing.T, script string, versions ...string) (out, errs string, good bool) {
	t.Helper()
	now := time.Unix(0, 0)
	run := runner{variable: "VERSION_OF_TEST", command: []string{"sh", "-c", script}, now: func() time.Time {
		now = now.Add(2 * time.Second)
		return now
	}}
	var stdout, stderr strings.Builder
	good = run.all(versions, &stdout, &stderr)
	return stdout.String(), stderr.String(), good
}

// row matches a line of the table.
func row(cells ...string) string {
	for i := range cells {
		cells[i] = regexp.QuoteMeta(cells[i])
	}
	return `(?m)^` + strings.Join(cells, ` +`) + `$`
}

func mustMatch(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("nothing matches %s in:\n%s", pattern, text)
		}
	}
}

const says = `echo "the API server says that it is v$VERSION_OF_TEST.7"; `

func TestEachVersionHasItsRow(t *testing.T) {
	out, errs, good := outcomeOf(t, says+says+`echo "core: 20 tests passed, 0 failed, 0 skipped (packages: 1)";
		echo to the other >&2; printf "more: 3 tests passed, 0 failed, 0 skipped"`, "1.34", "1.35")
	if !good {
		t.Error("it failed")
	}
	mustMatch(t, out, row("=== Kubernetes 1.34"), row("1.34", "v1.34.7", "23", "0", "2", "ok"), row("1.35", "v1.35.7", "23", "0", "2", "ok"))
	mustMatch(t, errs, "(?s)to the other.*to the other")
}

func TestAVersionThatFailsHidesNoOther(t *testing.T) {
	out, _, good := outcomeOf(t, says+`
		if [ $VERSION_OF_TEST = 1.34 ]; then echo "core: 5 tests passed, 2 failed, 0 skipped"; exit 3; fi
		echo "core: 7 tests passed, 0 failed, 0 skipped"`, "1.34", "1.35")
	if good {
		t.Error("it did not fail")
	}
	mustMatch(t, out, row("1.34", "v1.34.7", "5", "2", "2", "FAILED: exit status 3"), row("1.35", "v1.35.7", "7", "0", "2", "ok"))
}

func TestARunThatProvesNothingFails(t *testing.T) {
	const passed = `echo "core: 7 tests passed, 0 failed, 0 skipped"; `
	for script, want := range map[string]string{
		`exit 0`: "FAILED: no server said its version",
		says:     "FAILED: no test passed",
		says + `echo "the API server says that it is v1.3.0"; ` + passed: "FAILED: a server of another version ran",
		passed: "FAILED: no server said its version",
	} {
		out, _, good := outcomeOf(t, script, "1.34")
		if good {
			t.Errorf("%s did not fail", script)
		}
		mustMatch(t, out, "(?m)^1.34 .*"+want+"$")
	}
}

func TestACommandThatThereIsNotFails(t *testing.T) {
	run := runner{command: []string{"/no/such/command"}, now: time.Now}
	var out strings.Builder
	if run.all([]string{"1.34"}, &out, &out) {
		t.Error("it did not fail")
	}
	mustMatch(t, out.String(), "(?m)^1.34 .*FAILED: .*no such file")
}
