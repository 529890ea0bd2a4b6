package accumulator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// unopened is a source whose watches are not opened before their context ends.
type unopened struct{ source.Source }

func (unopened) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestG11CloseDoesNotWaitForAWatchThatIsBeingOpened: the server does not answer.
func TestG11CloseDoesNotWaitForAWatchThatIsBeingOpened(t *testing.T) {
	for list, streamed := range map[string]bool{"streamed": true, "in pages": false} {
		for what, end := range map[string]func(*Accumulator, *streamset.Set){
			"watch":  func(a *Accumulator, _ *streamset.Set) { a.Close() },
			"client": func(_ *Accumulator, s *streamset.Set) { s.Close() },
		} {
			t.Run(what+", "+list, func(t *testing.T) {
				open := false
				sim.Bubble(t, stream.Config{StreamLists: streamed}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
					sources := streams.Config().Source
					streams.Config().Source = func(r object.Resource, ns string, form object.Form) source.Source {
						return unopened{sources(r, ns, form)}
					}
					s.Create("as", sim.Thing("x"))
					a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
					synctest.Wait()
					started := time.Now()
					end(a, streams)
					streams.Close()
					assert.Zero(t, time.Since(started))
					open = true
				})
				assert.True(t, open, "the bubble has run")
			})
		}
	}
}
