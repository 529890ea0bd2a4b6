package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/kates-go/kates/bench/internal/campaign"
	"github.com/kates-go/kates/bench/internal/firstbuild"
	"github.com/kates-go/kates/bench/internal/report"
)

// builds measures first builds of programs, and adds the results to the existing ones. It runs in
// the folder of this module.
func builds(ctx context.Context, args []string, _, stderr io.Writer) error {
	flags := flag.NewFlagSet("builds", flag.ContinueOnError)
	flags.SetOutput(stderr)
	runs := flags.Int("runs", 1, "how often everything is built")
	note := flags.String("note", "", "what RESULTS.md says about the circumstances")
	out := flags.String("out", ".", "folder of the results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *runs < 1 {
		return errors.New("runs must be above zero")
	}
	return add(*out, "", func(r *report.Results) error {
		measured, err := campaign.Builds(ctx, firstbuild.Programs, *runs, ".", stderr)
		measured.Note = *note
		r.Put(report.Builds, measured)
		return err
	}, func(r *report.Results) error { return report.Check(r.Apart[report.Builds]) })
}

// buildTitles returns the programs' names for people, in order.
func buildTitles() (all []report.Title) {
	for _, p := range firstbuild.Programs {
		all = append(all, report.Title{Consumer: p.Name, Text: p.Title})
	}
	return all
}
