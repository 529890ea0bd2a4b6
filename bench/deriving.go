package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/kates-go/kates/bench/internal/campaign"
	"github.com/kates-go/kates/bench/internal/derived"
	"github.com/kates-go/kates/bench/internal/report"
)

// derivedOptions parses the flags of derive.
func derivedOptions(args []string, stderr io.Writer) (o campaign.DerivedOptions, out string, err error) {
	sizes := numbers{10_000, 100_000}
	flags := newFlags("derive", stderr)
	flags.Var(&sizes, "sizes", "numbers of objects of each kind in a routing table")
	flags.IntVar(&o.Pods, "pods", 10_000, "number of pods that policies select")
	flags.IntVar(&o.Policies, "policies", 500, "number of policies")
	flags.IntVar(&o.Runs, "runs", 5, "how often everything is measured")
	flags.IntVar(&o.Checked, "checked", 12, "changes of each kind whose results are compared, one by one")
	flags.IntVar(&o.Changes, "changes", 1000, "changes of each kind that are measured then")
	flags.IntVar(&o.Slow, "slow", 6, "how many of those that take long: of a plain loop, and of a policy of all pods")
	flags.StringVar(&o.Krt, "krt", "", "program of the module krt (default: it is not measured)")
	if err := flags.parseMeasuring(args, &o.Note); err != nil {
		return o, "", err
	}
	if flags.smoke {
		sizes, o.Pods, o.Policies, o.Runs, o.Checked, o.Changes, o.Slow = numbers{200}, 600, 30, 1, 6, 30, 2
	}
	o.Sizes, o.Log = sizes, stderr
	if len(o.Sizes) == 0 || o.Policies < 2 || o.Pods < o.Policies || o.Runs < 1 || o.Checked < 1 || o.Changes < 1 || o.Slow < 1 {
		return o, "", errors.New("sizes, runs and changes must be above zero, and there are two policies at least, and no more than pods")
	}
	return o, flags.out, nil
}

// deriving measures programs that keep results up to date, and adds the results to the existing
// ones.
func deriving(ctx context.Context, args []string, _, stderr io.Writer) error {
	o, out, err := derivedOptions(args, stderr)
	if err != nil {
		return err
	}
	return addApart(ctx, report.Derived, out, "", o, campaign.Derived)
}

// contend is the process of one of them.
func contend(_ context.Context, args []string, stdout, _ io.Writer) error {
	name, err := named("derived: name one contender", args, derived.ByName)
	if err != nil {
		return err
	}
	return derived.Serve(name, os.Stdin, stdout)
}

// derivedTitles are the contenders' names for people, in order.
var derivedTitles = []report.Title{
	{Consumer: "derive", Text: "package derive"},
	{Consumer: "loop", Text: "a plain loop"},
	{Consumer: "caches", Text: "caches by hand"},
	{Consumer: "krt", Text: "Istio's krt"},
	{Consumer: "krt-index", Text: "krt with an index by hand"},
}
