package sim

import (
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
)

// Bubble runs a test on a simulated server, in synctest's time. The bubble fails if a goroutine
// is left when f has returned and the streams are closed.
func Bubble(t *testing.T, config stream.Config, f func(t *testing.T, s *Server, streams *streamset.Set)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		if config.Source == nil {
			config.Source = Plain(s.Source)
		}
		streams := streamset.New(config)
		defer streams.Close()
		f(t, s, streams)
	})
}

// Names returns the names of objects, in their order.
func Names(objects []*unstructured.Unstructured) (all []string) {
	for _, o := range objects {
		all = append(all, o.GetName())
	}
	return all
}

// Ways are the two ways to fetch a first list.
var Ways = map[string]stream.Config{
	"streamed": {StreamLists: true},
	"paged":    {PageSize: 3},
}
