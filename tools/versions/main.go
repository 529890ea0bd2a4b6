// Command versions runs a command for several versions of Kubernetes, one after the other, and
// prints a table at the end: what the API server said of itself, how many tests passed, and how
// many seconds it took.
//
//	versions [-variable KATES_KUBERNETES] 1.34,1.35 COMMAND [ARGUMENT...]
//
// The command finds the version in the variable of the environment. Its output is shown as it
// comes, and read: a line with "the API server says that it is v1.35.4", and testgate's summaries,
// which count tests. A version fails if the command does, if no server said its version or said
// another one, or if no test passed. The versions after it still run. The program fails if one of
// them has failed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	variable := flag.String("variable", "KATES_KUBERNETES", "the variable of the environment that has the version")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: versions [-variable NAME] VERSION,... COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	run := runner{variable: *variable, command: flag.Args()[1:], now: time.Now}
	if !run.all(strings.Split(flag.Arg(0), ","), os.Stdout, os.Stderr) {
		os.Exit(1)
	}
}

// runner runs a command for each version.
type runner struct {
	variable string
	command  []string
	now      func() time.Time
}

// outcome is what is known of the run of a version.
type outcome struct {
	version        string
	says           []string // by servers of themselves, each once
	passed, failed int
	took           time.Duration
	err            error // of the command
}

// all runs every version, prints the table, and reports whether none has failed.
func (r runner) all(versions []string, out, errs io.Writer) bool {
	var outcomes []outcome
	for _, version := range versions {
		fmt.Fprintf(out, "=== Kubernetes %s\n", version)
		outcomes = append(outcomes, r.one(version, out, errs))
	}
	return table(out, outcomes)
}

// one runs the command for a version.
func (r runner) one(version string, out, errs io.Writer) outcome {
	o := outcome{version: version}
	cmd := exec.Command(r.command[0], r.command[1:]...)
	cmd.Env = append(os.Environ(), r.variable+"="+version)
	lines := &reader{line: o.read}
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, lines), errs
	start := r.now()
	o.err = cmd.Run()
	lines.flushLastLine()
	o.took = r.now().Sub(start)
	return o
}

var (
	saying  = regexp.MustCompile(`the API server says that it is (v\S+)`)
	summary = regexp.MustCompile(`: (\d+) tests passed, (\d+) failed,`)
)

// read takes what a line of output says.
func (o *outcome) read(line string) {
	if m := saying.FindStringSubmatch(line); m != nil && !slices.Contains(o.says, m[1]) {
		o.says = append(o.says, m[1])
	}
	if m := summary.FindStringSubmatch(line); m != nil {
		passed, _ := strconv.Atoi(m[1])
		failed, _ := strconv.Atoi(m[2])
		o.passed, o.failed = o.passed+passed, o.failed+failed
	}
}

// verdict is what is wrong, or "ok".
func (o outcome) verdict() string {
	switch {
	case o.err != nil:
		return "FAILED: " + o.err.Error()
	case len(o.says) == 0:
		return "FAILED: no server said its version"
	case o.passed == 0:
		return "FAILED: no test passed"
	}
	for _, said := range o.says {
		if !strings.HasPrefix(said, "v"+o.version+".") {
			return "FAILED: a server of another version ran"
		}
	}
	return "ok"
}

// table prints the outcomes, and reports whether all are good.
func table(out io.Writer, outcomes []outcome) bool {
	good := true
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "Kubernetes\tthe server says\ttests passed\tfailed\tseconds\t")
	for _, o := range outcomes {
		says := strings.Join(o.says, " ")
		if says == "" {
			says = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.0f\t%s\n", o.version, says, o.passed, o.failed, o.took.Seconds(), o.verdict())
		good = good && o.verdict() == "ok"
	}
	_ = w.Flush() // an error of the terminal is no failure of a version
	return good
}

// reader is a writer that hands on whole lines.
type reader struct {
	line func(string)
	rest []byte
}

func (r *reader) Write(p []byte) (int, error) {
	r.rest = append(r.rest, p...)
	for {
		line, rest, found := strings.Cut(string(r.rest), "\n")
		if !found {
			return len(p), nil
		}
		r.line(line)
		r.rest = []byte(rest)
	}
}

// flushLastLine hands on a line that no newline has ended.
func (r *reader) flushLastLine() {
	if len(r.rest) > 0 {
		r.line(string(r.rest))
		r.rest = nil
	}
}
