// Snapwatch shows live, coherent snapshots of many kinds at once: in a full screen, as lines, or
// as JSON, YAML, tables and templates. It waits for conditions that all objects of all kinds
// satisfy at the same time, and it records and replays what it sees. README.md has more.
//
//	go run -C examples/snapwatch . services,deployments,pods -n prod
//	go run -C examples/snapwatch . -replay ../../testdata/recordings/drain.recording
//
// As kubectl-snapwatch in the PATH it is a plugin: kubectl snapwatch.
//
// How it is cut:
//
//	command.go          flags, help, exit codes
//	connect.go          a client from the flags; recording and replay
//	kinds.go            arguments into queries
//	watch.go            the loop: a frame with each snapshot, and each second
//	lines.go, wait.go, screen/   what is made of frames
//	model/, output/, until/      rates and states, printers, conditions: pure
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		sig := <-signals
		signal.Stop(signals) // a second one ends the program at once
		if s, ok := sig.(syscall.Signal); ok {
			cancel(signalled(s))
		}
	}()
	return Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
}

// signalled is the signal that has ended the program.
type signalled syscall.Signal

func (s signalled) Error() string { return syscall.Signal(s).String() }
