// Command fuzzgate runs the fuzz tests of a module, one after the other, and fails on a finding.
//
//	fuzzgate -time 10m [-only NAME] [-- BUILD-ARGUMENTS]
//
// The time is that of each fuzz test, as `go test -fuzztime` takes it: a duration, or a number of
// executions with an x behind it, which begin with the seeds alone. Fuzzgate prints the executions
// of each fuzz test and of all. A run without any fuzz test fails, and so does one of which a fuzz
// test has executed nothing.
//
// An input that fails is written to testdata/fuzz of its package by go test, and fails the test
// from then on. Make a test of it that says what is wrong.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	limit := flag.String("time", "200x", "how long, or how often (with an x), each is run")
	only := flag.String("only", "", "run those whose name contains this")
	flag.Parse()
	// An interrupt from the terminal reaches go test too, which ends itself.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := run(".", *limit, *only, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzgate:", err)
		os.Exit(1)
	}
}

// fuzzTest is one fuzz test of the module, and the folder of its package.
type fuzzTest struct{ dir, name string }

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)

// find returns the fuzz tests below a folder, other modules not included, in order.
func find(root, only string) (all []fuzzTest, err error) {
	err = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			name := entry.Name()
			_, module := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (module == nil || name[0] == '.' || name[0] == '_' || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(text, -1) {
			if name := string(found[1]); strings.Contains(name, only) {
				all = append(all, fuzzTest{filepath.Dir(path), name})
			}
		}
		return err
	})
	slices.SortFunc(all, func(a, b fuzzTest) int {
		return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.name, b.name))
	})
	return all, err
}

// run runs all fuzz tests of the module in a folder, and reports on out. Args are those of the
// go command that builds them.
func run(root, limit, only string, args []string, out io.Writer) error {
	tests, err := find(root, only)
	if err != nil {
		return err
	}
	if len(tests) == 0 {
		return errors.New("there is no such fuzz test")
	}
	b, err := newBuilder(root, args)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.temporary) }()
	var errs []error
	var total int64
	start := time.Now()
	for _, test := range tests {
		begun := time.Now()
		var execs int64
		if err = b.build(test.dir, out); err == nil {
			execs, err = b.fuzz(test, limit, out)
		}
		total += execs
		fmt.Fprintf(out, "    %s %s: %d executions in %s\n",
			test.dir, test.name, execs, time.Since(begun).Round(100*time.Millisecond))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s in %s: %w", test.name, test.dir, err))
		}
	}
	fmt.Fprintf(out, "fuzzing: %d fuzz tests, %d executions, %d findings in %s\n",
		len(tests), total, len(errs), time.Since(start).Round(100*time.Millisecond))
	return errors.Join(errs...)
}
