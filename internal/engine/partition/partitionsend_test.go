package partition

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// atWork returns the stacks of goroutines that run a method of partitions, or of the work queue
// that held the keys before the agenda.
func atWork() (stacks []string) {
	all := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if strings.Contains(stack, "(*Partitions).") || strings.Contains(stack, "/workqueue.") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

func TestG11CloseWaitsForEveryGoroutineOfPartitionsAlsoWhereKeysRestAndAreDebounced(t *testing.T) {
	for range 100 { // a goroutine that nobody waits for is late some times
		s := sim.New()
		s.Create("as", sim.Thing("x", "k", "a"))
		streams := streamset.New(stream.Config{Source: sim.Plain(s.Source), StreamLists: true})
		o := Options{Options: collect.Options{Pace: collect.Pace{Quiet: time.Hour}}}
		p, err := Start(context.Background(), streams, reflect.TypeFor[one](), []query.Query{keyed("A", "as")}, o)
		require.NoError(t, err)
		next, err := p.Next(t.Context())
		require.NoError(t, err)
		next.Done(errors.New("it rests"))
		p.Close()
		stacks := atWork()
		streams.Close()
		require.Empty(t, stacks)
	}
}
