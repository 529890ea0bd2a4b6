package accumulator

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// The end comes at any moment of the start, and of what is done to the queries after it.
func TestG11NothingIsLeftThoughTheEndComesDuringStartAndChanges(t *testing.T) {
	for n := range 300 {
		sim.Bubble(t, stream.Config{StreamLists: n%2 == 0}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			s.Create("as", sim.Thing("x", "l", "yes"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end := cancel
			if n%3 == 0 {
				end = streams.Close
			}
			a, b := either("l", "r"), sim.Query("B", "bs")
			b.Refs = []query.Ref{{Query: "A", Names: func(o object.Object) ([]object.Key, error) { return []object.Key{{Name: o.GetName()}}, nil }}}
			b.Resolve = func(context.Context) (object.Resource, error) {
				go func() {
					for range n {
						runtime.Gosched()
					}
					end()
				}()
				return sim.Resource("bs"), nil
			}
			acc, err := New(ctx, streams, []query.Query{a, b}, collect.Options{})
			if err != nil {
				return // the end came earlier
			}
			// These fail if the end comes before them.
			_ = acc.Add(context.Background(), sim.Query("C", "cs"))
			a.AnyOf = a.AnyOf[:1]
			_ = acc.Replace(context.Background(), a)
			_ = acc.Remove(context.Background(), "C")
			<-acc.Done()
			acc.Close()
			synctest.Wait()
			assert.Empty(t, streams.Users())
			assert.Zero(t, streams.Len(), "a listener is left")
		})
	}
}
