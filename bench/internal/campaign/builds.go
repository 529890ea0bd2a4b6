package campaign

import (
	"context"
	"fmt"
	"io"

	"github.com/kates-go/kates/bench/internal/firstbuild"
	"github.com/kates-go/kates/bench/internal/report"
)

// Builds measures first builds of programs in turn, in a folder of this module.
func Builds(ctx context.Context, programs []firstbuild.Program, runs int, dir string, log io.Writer) (*report.Results, error) {
	r := &report.Results{Machine: machine(ctx), Runs: runs}
	for run := 1; run <= runs; run++ {
		for _, p := range programs {
			b, err := p.Build(ctx, dir)
			if err != nil {
				return r, err
			}
			r.Add(0, run, p.Name, report.BuildTime, b.Took.Seconds())
			r.Add(0, run, p.Name, report.BuildCPU, b.CPU.Seconds())
			r.Add(0, run, p.Name, report.BuildPackages, float64(b.Packages))
			r.Add(0, run, p.Name, report.BuildSize, float64(b.Bytes)/1e6)
			fmt.Fprintf(log, "bench: build %d of %d, %-14s %.0f s, CPU %.0f s, %d packages\n", run, runs, p.Name, b.Took.Seconds(), b.CPU.Seconds(), b.Packages)
		}
	}
	r.Machine.LoadAfter = loadAverage()
	return r, nil
}
