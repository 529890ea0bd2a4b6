package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kates-go/kates/bench/internal/campaign"
	"github.com/kates-go/kates/bench/internal/report"
)

// shardedOptions parses the flags of sharded.
func shardedOptions(args []string, stderr io.Writer) (o campaign.ShardedOptions, out string, err error) {
	replicas := numbers{1, 2, 4}
	flags := newFlags("sharded", stderr)
	flags.IntVar(&o.Pods, "pods", 50_000, "number of pods")
	flags.IntVar(&o.Namespaces, "namespaces", 400, "number of their namespaces")
	flags.IntVar(&o.Runs, "runs", 3, "how often everything is measured")
	flags.Var(&replicas, "replicas", "numbers of replicas that share the pods")
	if err := flags.parseMeasuring(args, &o.Note); err != nil {
		return o, "", err
	}
	o.Replicas, o.Log = replicas, stderr
	if flags.smoke {
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
	return o, flags.out, nil
}

// sharded measures replicas that share the pods of a server, and adds the results to the existing
// ones.
func sharded(ctx context.Context, args []string, _, stderr io.Writer) error {
	o, out, err := shardedOptions(args, stderr)
	if err != nil {
		return err
	}
	return addApart(ctx, report.Shards, out, "", o, campaign.Sharded)
}
