package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/kates-go/kates/bench/internal/campaign"
	"github.com/kates-go/kates/bench/internal/report"
)

// shardedOptions parses the flags of sharded.
func shardedOptions(args []string, stderr io.Writer) (o campaign.ShardedOptions, out string, err error) {
	replicas := numbers{1, 2, 4}
	flags := flag.NewFlagSet("sharded", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.Pods, "pods", 50_000, "number of pods")
	flags.IntVar(&o.Namespaces, "namespaces", 400, "number of their namespaces")
	flags.IntVar(&o.Runs, "runs", 3, "how often everything is measured")
	flags.Var(&replicas, "replicas", "numbers of replicas that share the pods")
	flags.StringVar(&o.Note, "note", "", "what RESULTS.md says about the circumstances")
	flags.StringVar(&out, "out", ".", "folder of the results")
	smoke := flags.Bool("smoke", false, "tiny numbers, to see that everything works")
	if err := flags.Parse(args); err != nil {
		return o, "", err
	}
	if flags.NArg() > 0 {
		return o, "", fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.Replicas, o.Log = replicas, stderr
	if *smoke {
		o.Pods, o.Namespaces, o.Runs, o.Replicas = 200, 40, 1, []int{1, 2}
	}
	if o.Pods < 1 || o.Namespaces < 1 || o.Runs < 1 || len(o.Replicas) == 0 {
		return o, "", errors.New("pods, namespaces, runs and replicas must be above zero")
	}
	for _, n := range o.Replicas {
		if n > o.Namespaces/10 {
			return o, "", fmt.Errorf("%d replicas cannot share %d namespaces evenly: there must be 10 for each", n, o.Namespaces)
		}
	}
	return o, out, nil
}

// sharded measures replicas that share the pods of a server, and adds the results to the existing
// ones.
func sharded(ctx context.Context, args []string, _, stderr io.Writer) error {
	o, out, err := shardedOptions(args, stderr)
	if err != nil {
		return err
	}
	return add(out, "", func(r *report.Results) error {
		measured, err := campaign.Sharded(ctx, o)
		r.Put(report.Shards, measured)
		return err
	}, func(r *report.Results) error { return report.Check(r.Apart[report.Shards]) })
}
