package partition

import (
	"context"
	"time"

	"github.com/kates-go/kates/internal/engine/agenda"
	"github.com/kates-go/kates/internal/engine/collect"
)

// debounceOf moves the quiet times from the pace to a debounce, since they apply to each key.
func debounceOf(pace *collect.Pace) agenda.Debounce {
	d := agenda.Debounce{Quiet: pace.Quiet, Most: pace.QuietMax}
	pace.Quiet, pace.QuietMax = 0, 0
	return d
}

// startDebounce starts the goroutine of the debounce, if there is one.
func (p *Partitions) startDebounce(ctx context.Context) {
	if p.changed == nil {
		return
	}
	life := context.WithoutCancel(ctx) // it ends with the collector
	if !p.collector.Go(func() { p.attend(life) }) {
		close(p.changed) // the end came first
	}
}

// attend is the goroutine of the debounce. Keys that changes have made due wait on the agenda
// until they are quiet. So attend takes changes as they arrive, even while all workers are busy:
// the agenda then knows when they arrived. It ends with the collector.
//
//	the collector's Changed ──▶ attend: take, release ──▶ Partitions.Changed
//	Agenda.KeyQuiet ─────────────▲
func (p *Partitions) attend(ctx context.Context) {
	defer close(p.changed)
	for {
		signal := false
		select {
		case _, open := <-p.collector.Changed():
			if !open {
				return
			}
			signal = true
		case <-p.scheduler.agenda.KeyQuiet():
		}
		_, err := p.take(ctx, func() *Turn {
			p.scheduler.release(time.Now())
			return nil
		})
		if err != nil {
			return
		}
		if signal {
			select {
			case p.changed <- struct{}{}:
			default: // one waits already
			}
		}
	}
}
