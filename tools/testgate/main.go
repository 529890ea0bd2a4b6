// Command testgate runs `go test` and has a stricter idea of success: a skipped test fails the
// run, and so does a package whose test binary ran no test. It prints what was run.
//
//	testgate [-name NAME] [-list] [-slowest N] [-split N] -- GO-TEST-ARGUMENTS
//
// It shows go test's closing line of each package and all output of failing and skipped tests. It
// shows nothing of passing tests; -list adds a line for each top-level one, and -slowest the N
// that took longest. With -split, the tests of a package that has more than N of them run in
// several processes at a time.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

func main() {
	if os.Getenv(slotsVariable) != "" {
		code, err := runSplit(os.Args[1], os.Args[2:], os.Stdout)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
	name := flag.String("name", "go test", "what the summary calls this run")
	list := flag.Bool("list", false, "name each top-level test that passes")
	slowest := flag.Int("slowest", 0, "name so many of the top-level tests that took longest")
	most := flag.Int("split", 0, "a package with more tests runs in several processes; 0: none does")
	flag.Parse()
	// An interrupt from the terminal reaches go test too, which ends its tests and then itself.
	// Its output until then is still useful. The signal is caught and not ignored, because go
	// test would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	o := options{name: *name, list: *list, slowest: *slowest, split: *most}
	if err := o.run(flag.Args(), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", o.name, err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	name           string
	list           bool
	slowest, split int
}

// run passes args to `go test -json`, reports on out, and returns what is
// wrong with the outcome.
func (o options) run(args []string, out io.Writer) error {
	start := time.Now()
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	if o.split > 0 {
		end, err := split(cmd, o.split)
		if err != nil {
			return err
		}
		defer end()
	}
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	r := newReport(out, o.list)
	readErr := r.read(events)
	if readErr != nil {
		_, _ = io.Copy(io.Discard, events) // otherwise go test would block
	}
	waitErr := cmd.Wait()
	r.longest(o.slowest)
	fmt.Fprintf(out, "%s: %s in %s\n", o.name, r.summary(), time.Since(start).Round(100*time.Millisecond))
	if waitErr != nil {
		waitErr = fmt.Errorf("go test: %w", waitErr)
	}
	return errors.Join(readErr, waitErr, r.verdict())
}
