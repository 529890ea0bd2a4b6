package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/kates-go/kates/bench/internal/report"
)

// flagSet is the flags of a command.
type flagSet struct {
	*flag.FlagSet
	// out, smoke and note are those of a command that measures.
	out   string // the folder of the results
	smoke bool   // tiny numbers
}

func newFlags(name string, stderr io.Writer) *flagSet {
	f := &flagSet{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError)}
	f.SetOutput(stderr)
	return f
}

// parse parses the flags of a command that takes no arguments.
func (f *flagSet) parse(args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return nil
}

// parseMeasuring parses the flags of a command that measures: these, and those that all have.
func (f *flagSet) parseMeasuring(args []string, note *string) error {
	f.StringVar(note, "note", "", "what RESULTS.md says about the circumstances")
	f.StringVar(&f.out, "out", ".", "folder of the results")
	f.BoolVar(&f.smoke, "smoke", false, "tiny numbers, to see that everything works")
	return f.parse(args)
}

// addApart measures what has a section of its own, and adds it to the existing results.
func addApart[O any](
	ctx context.Context, section report.Part, out, profiles string, o O,
	measure func(context.Context, O) (*report.Results, error),
) error {
	return add(out, profiles, func(r *report.Results) error {
		measured, err := measure(ctx, o)
		r.Put(section, measured)
		return err
	}, func(r *report.Results) error { return report.Check(r.Apart[section]) })
}
