package accumulator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// unaware is a server that does not know sendInitialEvents, and ignores it.
type unaware struct{ *sim.Source }

func (u unaware) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		o.SendInitialEvents, o.ResourceVersion = nil, "100"
	}
	return u.Source.WatchWithContext(ctx, o)
}

// A kind that is busy has an event every ten seconds.
func TestG1AServerThatStreamsNoListsIsListedThoughItsWatchIsNeverSilent(t *testing.T) {
	for name, every := range map[string]time.Duration{"silent": 0, "busy": 10 * second} {
		t.Run(name, func(t *testing.T) {
			var server *sim.Server
			config := stream.Config{StreamLists: true, Source: sim.Plain(func(r object.Resource, namespace string, form object.Form) cache.ListerWatcherWithContext {
				return unaware{server.Source(r, namespace, form).(*sim.Source)}
			})}
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				server = s
				s.Create("as", sim.Thing("x"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				start := time.Now()
				for i := 0; !signalled(a); i++ {
					require.Less(t, time.Since(start), 10*time.Minute, "the first snapshot")
					sim.After(10 * second)
					if every > 0 {
						s.Touch("as", "x", i)
					}
				}
				var snap one
				update(t, a, &snap)
				assert.Equal(t, []string{"x"}, sim.Names(snap.A))
				assert.Equal(t, 1, s.Lists["as"])
			})
		})
	}
}
