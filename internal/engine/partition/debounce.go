package partition

import (
	"time"

	"github.com/kates-go/kates/internal/engine/collect"
)

// debounce delays keys that changes have made due. A key waits until it has had no change for a
// while, or has waited for the maximum time. The agenda keeps these times. The goroutine of
// attend takes changes as they arrive, even while all workers are busy, so that the agenda knows
// when they arrived. It ends with the collector.
//
//	the collector's Changed ──▶ attend: take, release ──▶ Partitions.Changed
//	agenda.ripe ─────────────────▲
type debounce struct {
	quiet, most time.Duration
	changed     chan struct{} // replaces the collector's
}

// newDebounce moves the quiet times from the pace to a debounce, since they apply to each key. It
// returns nil if there are none.
func newDebounce(pace *collect.Pace) *debounce {
	quiet, most := pace.Quiet, pace.QuietMax
	pace.Quiet, pace.QuietMax = 0, 0
	if quiet <= 0 {
		return nil
	}
	if most <= 0 {
		most = 10 * quiet
	}
	return &debounce{quiet: quiet, most: most, changed: make(chan struct{}, 1)}
}
