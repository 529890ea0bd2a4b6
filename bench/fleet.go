package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/kates-go/kates/bench/internal/many"
)

// manyClusters measures a fleet of simulated clusters, which are in a process of their own, and
// prints the rows of a table.
func manyClusters(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("fleet", stderr)
	clusters := flags.Int("clusters", 200, "number of clusters")
	hung := flags.Int("hung", 20, "how many of them accept connections and never answer")
	objects := flags.Int("objects", 50, "objects of each of two kinds, per cluster")
	changes := flags.Int("changes", 200, "changes whose way into a snapshot is timed")
	deadline := flags.Duration("deadline", 5*time.Second, "how long the first snapshot waits for a cluster")
	idle := flags.Duration("idle", 30*time.Second, "time in which nothing changes")
	serve := flags.Bool("serve", false, "run the servers (the command starts itself so)")
	if err := flags.parse(args); err != nil {
		return err
	}
	if *clusters <= *hung || *hung < 0 || *objects < 1 || *changes < 1 {
		return errors.New("there must be clusters that do not hang, with objects, and changes")
	}
	if *serve {
		return many.Serve(*clusters, *hung, *objects, os.Stdin, stdout)
	}
	addresses, end, err := serveApart(ctx, stderr, *clusters, append([]string{"fleet", "-serve"}, args...)...)
	if err != nil {
		return err
	}
	defer end()
	result, err := many.Measure(ctx, addresses, *changes, *deadline, *idle)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(stdout, result)
	return err
}

// serveApart starts this program again, with other arguments, and reads a number of addresses that
// it prints. end ends it.
func serveApart(ctx context.Context, stderr io.Writer, n int, args ...string) (addresses []string, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	servers := exec.CommandContext(ctx, self, args...)
	servers.Stderr = stderr
	stdin, err := servers.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := servers.StdoutPipe()
	if err == nil {
		err = servers.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	end = func() { _ = stdin.Close(); _ = servers.Wait() }
	for lines := bufio.NewScanner(out); len(addresses) < n && lines.Scan(); {
		addresses = append(addresses, lines.Text())
	}
	if len(addresses) < n {
		end()
		return nil, nil, errors.New("the servers have not started")
	}
	return addresses, end, nil
}
