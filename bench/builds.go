package main

import (
	"context"
	"errors"
	"io"

	"github.com/kates-go/kates/bench/internal/campaign"
	"github.com/kates-go/kates/bench/internal/firstbuild"
	"github.com/kates-go/kates/bench/internal/report"
)

// builds measures first builds of programs, and adds the results to the existing ones. It runs in
// the folder of this module.
func builds(ctx context.Context, args []string, _, stderr io.Writer) error {
	flags := newFlags("builds", stderr)
	runs := flags.Int("runs", 1, "how often everything is built")
	var note string
	if err := flags.parseMeasuring(args, &note); err != nil {
		return err
	}
	if flags.smoke {
		*runs = 1
	}
	if *runs < 1 {
		return errors.New("runs must be above zero")
	}
	return addApart(ctx, report.Builds, flags.out, "", *runs, func(ctx context.Context, runs int) (*report.Results, error) {
		measured, err := campaign.Builds(ctx, firstbuild.Programs, runs, ".", stderr)
		measured.Note = note
		return measured, err
	})
}

// buildTitles returns the programs' names for people, in order.
func buildTitles() (all []report.Title) {
	for _, p := range firstbuild.Programs {
		all = append(all, report.Title{Consumer: p.Name, Text: p.Title})
	}
	return all
}
