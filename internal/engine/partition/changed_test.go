package partition

import (
	"context"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// The end may come before the goroutine of the debounce is started, which would close Changed. The
// bubble fails if it stays open.
func TestG11ChangedIsClosedThoughTheContextEndsDuringStart(t *testing.T) {
	for n := range 3000 {
		sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
			ctx, cancel := context.WithCancel(t.Context())
			q := sim.Query("B", "bs")
			q.Resolve = func(context.Context) (object.Resource, error) {
				go func() {
					for range n % 100 {
						runtime.Gosched()
					}
					cancel()
				}()
				return sim.Resource("bs"), nil
			}
			o := Options{Options: collect.Options{Pace: collect.Pace{Quiet: time.Millisecond}}}
			p, err := Start(ctx, streams, reflect.TypeFor[two](), []query.Query{keyed("A", "as"), q}, o)
			if err != nil {
				return // the end came earlier
			}
			for range p.Changed() { // until it is closed
			}
			p.Close()
		})
	}
}
