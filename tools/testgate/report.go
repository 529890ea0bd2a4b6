package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json` and, for build
// output, `go help buildjson`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// test identifies a test, or with an empty name a package.
type test struct{ pkg, name string }

func (t test) String() string { return t.pkg + " " + t.name }

// report turns events into a readable report and a verdict.
type report struct {
	out  io.Writer
	list bool

	output  map[test][]string // of tests that have not ended
	ran     map[string]int    // tests that ended, by package
	idle    []string          // packages that passed without running a test
	skipped []test
	failed  int
	passed  int
	took    []timed // top-level tests
}

// timed is a test and how many seconds it took. Other tests may have run meanwhile.
type timed struct {
	test
	seconds float64
}

func newReport(out io.Writer, list bool) *report {
	return &report{out: out, list: list, output: map[test][]string{}, ran: map[string]int{}}
}

// read reads all events. A line that is no event is shown unchanged: go test prints such lines
// when it fails early.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				r.take(e)
			} else {
				fmt.Fprint(r.out, string(line))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}

func (r *report) take(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if e.Test != "" || strings.HasPrefix(e.Output, "-test.shuffle ") {
			r.output[t] = append(r.output[t], e.Output) // a seed is shown with what it has failed
		} else if e.Output != "PASS\n" {
			fmt.Fprint(r.out, e.Output)
		}
	case "pass", "fail", "skip":
		if e.Test != "" {
			r.endTest(t, e)
		} else {
			r.endPackage(e)
		}
	}
}

func (r *report) endTest(t test, e event) {
	r.ran[t.pkg]++
	if !strings.Contains(t.name, "/") {
		r.took = append(r.took, timed{t, e.Elapsed})
	}
	switch e.Action {
	case "pass":
		r.passed++
		if r.list && !strings.Contains(t.name, "/") {
			fmt.Fprintf(r.out, "    %s (%.2fs)\n", t.name, e.Elapsed)
		}
	case "fail":
		r.failed++
		r.show(t)
	case "skip":
		r.skipped = append(r.skipped, t)
		r.show(t)
	}
	delete(r.output, t)
}

// endPackage records the end of a package. The action is skip for a package without test files,
// which is allowed.
func (r *report) endPackage(e event) {
	defer delete(r.output, test{pkg: e.Package})
	if e.Action == "pass" && r.ran[e.Package] == 0 {
		r.idle = append(r.idle, e.Package)
	}
	if e.Action != "fail" {
		return
	}
	// After a panic or a time-out the running tests have no end event.
	for _, t := range r.unfinished(e.Package) {
		r.show(t)
		delete(r.output, t)
	}
}

func (r *report) unfinished(pkg string) []test {
	var tests []test
	for t := range r.output {
		if t.pkg == pkg {
			tests = append(tests, t)
		}
	}
	slices.SortFunc(tests, func(a, b test) int { return strings.Compare(a.name, b.name) })
	return tests
}

func (r *report) show(t test) {
	for _, line := range r.output[t] {
		fmt.Fprint(r.out, line)
	}
}

// longest prints the n tests that took longest.
func (r *report) longest(n int) {
	slices.SortStableFunc(r.took, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range r.took[:min(n, len(r.took))] {
		fmt.Fprintf(r.out, "    %7.2f s  %s\n", t.seconds, t)
	}
}

// summary counts tests, subtests and examples, each as one.
func (r *report) summary() string {
	return fmt.Sprintf("%d tests passed, %d failed, %d skipped (packages: %d)",
		r.passed, r.failed, len(r.skipped), len(r.ran))
}

// verdict returns an error for what go test accepts and testgate does not.
func (r *report) verdict() error {
	var errs []error
	for _, t := range r.skipped {
		errs = append(errs, fmt.Errorf("skipped: %v", t))
	}
	for _, pkg := range r.idle {
		errs = append(errs, fmt.Errorf("no test ran in %s", pkg))
	}
	if len(r.ran) == 0 {
		errs = append(errs, errors.New("no test ran"))
	}
	return errors.Join(errs...)
}
