package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kates-go/kates/bench/internal/replay"
	"github.com/kates-go/kates/bench/internal/steady"
)

// steadyLoad measures one client under a steady load from a server in a process of its own, and
// prints the rows of a table. It fails if a snapshot is wrong or stale, if memory grows, or if the
// server has not sent the events at their rate.
func steadyLoad(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("load", stderr)
	var load steady.Load
	flags.IntVar(&load.Objects, "objects", 1000, "objects of each of three kinds")
	flags.IntVar(&load.Rate, "rate", 5000, "events per second, of all kinds")
	flags.DurationVar(&load.Lasts, "for", 10*time.Minute, "how long events come")
	flags.DurationVar(&load.Reconcile, "reconcile", time.Second, "how long a reconcile takes")
	flags.DurationVar(&load.Interval, "interval", time.Second, "least time between signals; the library's default is the default")
	flags.DurationVar(&load.Stale, "stale", time.Second, "a snapshot is stale if it lacks an event that has been due for longer")
	serve := flags.Bool("serve", false, "run the server (the command starts itself so)")
	if err := flags.parse(args); err != nil {
		return err
	}
	if load.Objects < 1 || load.Rate < 1 || load.Lasts < time.Second || load.Reconcile < 0 || load.Interval < 0 || load.Stale < 0 {
		return errors.New("there must be objects, events for a second at least, and no time below zero")
	}
	if *serve {
		return replay.ServeSteady(load.Schedule, os.Stdin, stdout)
	}
	addresses, end, err := serveApart(ctx, stderr, 1, append([]string{"load", "-serve"}, args...)...)
	if err != nil {
		return err
	}
	defer end()
	result, err := steady.Measure(ctx, addresses[0], load)
	if result.Snapshots > 0 {
		err = errors.Join(err, result.Err(load))
	}
	_, err2 := fmt.Fprint(stdout, result) // what there is, also of a load that fails
	return errors.Join(err, err2)
}
