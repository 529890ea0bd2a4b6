package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/kates-go/kates/bench/internal/campaign"
	"github.com/kates-go/kates/bench/internal/operator"
	"github.com/kates-go/kates/bench/internal/report"
)

// operatorOptions parses the flags of operator.
func operatorOptions(args []string, stderr io.Writer) (o campaign.OperatorOptions, out string, err error) {
	flags := newFlags("operator", stderr)
	flags.IntVar(&o.Roots, "roots", 5000, "number of roots, each of which owns five objects")
	flags.IntVar(&o.Runs, "runs", 3, "how often everything is measured")
	flags.IntVar(&o.Workers, "workers", 16, "reconciles at a time")
	flags.IntVar(&o.Changes, "changes", 200, "specs that are changed at once")
	flags.IntVar(&o.Paced, "paced", 100, "specs that are changed one after the other")
	flags.IntVar(&o.Drift, "drift", 200, "owned objects that others change or delete, at once")
	flags.DurationVar(&o.Quiet, "quiet", 2*time.Second, "how long an operator does nothing before it counts as idle")
	flags.DurationVar(&o.Patience, "patience", 5*time.Minute, "how long anything may take")
	flags.StringVar(&o.ProfileTo, "profiles", "", "folder for CPU and heap profiles of each phase (default: none)")
	names := flags.String("operators", "", "which operators (default: all)")
	if err := flags.parseMeasuring(args, &o.Note); err != nil {
		return o, "", err
	}
	if o.Log = stderr; flags.smoke {
		o.Roots, o.Runs, o.Changes, o.Paced, o.Drift = 30, 1, 10, 4, 12
		o.Quiet, o.Patience = 500*time.Millisecond, time.Minute
	}
	if o.Roots < 1 || o.Runs < 1 || o.Workers < 1 || o.Changes < 1 || o.Paced < 1 || o.Drift < 1 || o.Quiet <= 0 || o.Patience <= 0 {
		return o, "", errors.New("roots, runs, workers, changes, paced, drift, quiet and patience must be above zero")
	}
	if o.Changes > o.Roots || o.Drift > o.Roots {
		return o, "", fmt.Errorf("there are %d roots: not so many can be changed, or drift", o.Roots)
	}
	o.Operators, err = operator.Select(*names)
	return o, flags.out, err
}

// operators measures operators, and adds the results to the existing ones.
func operators(ctx context.Context, args []string, _, stderr io.Writer) error {
	o, out, err := operatorOptions(args, stderr)
	if err != nil {
		return err
	}
	return add(out, o.ProfileTo, func(r *report.Results) (err error) { r.Operators, err = campaign.Operators(ctx, o); return err },
		func(r *report.Results) error { return r.Operators.Check() })
}

// add makes the folders, measures, and adds the results to the existing ones. What was measured
// before an error goes to another file.
func add(out, profiles string, measure, check func(*report.Results) error) error {
	for _, dir := range []string{out, profiles} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	r, err := report.ReadFrom(out)
	if errors.Is(err, os.ErrNotExist) {
		r, err = &report.Results{}, nil
	}
	if err != nil {
		return err
	}
	if err := measure(r); err != nil {
		return errors.Join(err, r.Write(filepath.Join(out, "incomplete.json")))
	}
	if err := report.WriteAll(r, titles(), out); err != nil {
		return err
	}
	return check(r)
}

// operatorTitles returns the operators' names for people, in order, and their lines of code.
func operatorTitles() []report.Title {
	var all []report.Title
	for _, v := range operator.Variants {
		all = append(all, report.Title{Consumer: v.Name, Text: v.Title, Lines: v.Lines()})
	}
	return all
}

// operate is the process of an operator.
func operate(ctx context.Context, args []string, stdout, _ io.Writer) error {
	return serve(ctx, "operate: name one operator", args, operator.ByName, operator.Serve, stdout)
}
