// Command testgate runs `go test` and has a stricter idea of success: a skipped test fails the
// run, and so does a package whose test binary ran no test. It prints what was run.
//
//	testgate [-name NAME] [-list] -- GO-TEST-ARGUMENTS
//
// It shows go test's closing line of each package and all output of failing and skipped tests. It
// shows nothing of passing tests; -list adds a line for each top-level one.
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
	name := flag.String("name", "go test", "what the summary calls this run")
	list := flag.Bool("list", false, "name each top-level test that passes")
	flag.Parse()
	// An interrupt from the terminal reaches go test too, which ends its tests and then itself.
	// Its output until then is still useful. The signal is caught and not ignored, because go
	// test would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := run(*name, *list, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", *name, err)
		os.Exit(1)
	}
}

// run passes args to `go test -json`, reports on out, and returns what is
// wrong with the outcome.
func run(name string, list bool, args []string, out io.Writer) error {
	start := time.Now()
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	r := newReport(out, list)
	readErr := r.read(events)
	if readErr != nil {
		_, _ = io.Copy(io.Discard, events) // otherwise go test would block
	}
	waitErr := cmd.Wait()
	fmt.Fprintf(out, "%s: %s in %s\n", name, r.summary(), time.Since(start).Round(100*time.Millisecond))
	if waitErr != nil {
		waitErr = fmt.Errorf("go test: %w", waitErr)
	}
	return errors.Join(readErr, waitErr, r.verdict())
}
