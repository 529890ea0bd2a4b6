package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kates-go/kates/bench/internal/campaign"
	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/replay"
	"github.com/kates-go/kates/bench/internal/report"
)

// crowd measures consumers of a million pods, which a server in a process of its own makes as they
// are asked for, and adds the results to the existing ones.
func crowd(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := campaign.CrowdOptions{Log: stderr}
	flags := newFlags("crowd", stderr)
	flags.IntVar(&o.Pods, "pods", 1_000_000, "number of pods")
	flags.IntVar(&o.Runs, "runs", 3, "how often everything is measured")
	flags.IntVar(&o.Refreshes, "refreshes", 21, "refreshes after one change, per run")
	flags.IntVar(&o.Rate, "rate", 5000, "events per second")
	flags.DurationVar(&o.Lasts, "for", 20*time.Second, "how long events come")
	flags.DurationVar(&o.Settle, "settle", 200*time.Millisecond, "time that a change has to reach a consumer before a refresh is timed")
	flags.IntVar(&o.Cores, "cores", 0, "cores of a consumer (default: all)")
	flags.StringVar(&o.ProfileTo, "profile-to", "", "folder for profiles of the first snapshots and of the events (default: none)")
	consumers := flags.String("consumers", "kates,kates-lite,informers", "which consumers: of typed objects, in protobuf")
	serve := flags.Bool("serve", false, "run the server (the command starts itself so)")
	if err := flags.parseMeasuring(args, &o.Note); err != nil {
		return err
	}
	if flags.smoke {
		o.Pods, o.Runs, o.Refreshes, o.Rate, o.Lasts, o.Settle = 3000, 1, 2, 500, time.Second, time.Second
	}
	if o.Pods < 1 || o.Pods >= 100_000_000 || o.Runs < 1 || o.Refreshes < 1 || o.Rate < 0 || o.Lasts < 0 || o.Cores < 0 {
		return errors.New("pods, runs and refreshes must be above zero, and pods have eight digits")
	}
	if *serve {
		return replay.ServeCrowd(o.Pods, os.Stdin, stdout)
	}
	var err error
	if o.Consumers, err = consumer.Select(*consumers); err != nil {
		return err
	}
	o.Serve = func(ctx context.Context) (string, func(), error) {
		addresses, end, err := serveApart(ctx, stderr, 1, "crowd", "-serve", "-pods", fmt.Sprint(o.Pods))
		if err != nil {
			return "", nil, err
		}
		return addresses[0], end, nil
	}
	return addApart(ctx, report.Crowd, flags.out, o.ProfileTo, o, campaign.Crowd)
}
