package accumulator

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// speechless is a source that never answers.
type speechless struct{}

func (speechless) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (speechless) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestWhatOnlyTakesLongIsNoErrorInTheLog(t *testing.T) {
	var out bytes.Buffer
	config := stream.Config{
		Source: sim.Plain(func(object.Resource, string, object.Form) cache.ListerWatcherWithContext { return speechless{} }),
		Logger: logr.FromSlogHandler(slog.NewTextHandler(&out, nil)),
	}
	sim.Bubble(t, config, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		sim.After(time.Minute)
		synctest.Wait()
		a.Close()
		assert.Contains(t, out.String(), `level=INFO msg="still no complete snapshot" after=10s waiting="incomplete: query \"A\"`)
		assert.NotContains(t, out.String(), "level=ERROR")
	})
}
