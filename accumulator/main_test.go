package accumulator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/accumulator/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// two is a snapshot of two resources.
type two struct {
	A, B []*unstructured.Unstructured
}

type one struct {
	A []*unstructured.Unstructured
}

// bubble runs a test on a simulated server, in synctest's time. The bubble fails if a goroutine
// is left when f has returned and the streams are closed.
func bubble(t *testing.T, config stream.Config, f func(t *testing.T, s *sim, streams *stream.Set)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSim()
		if config.Source == nil {
			config.Source = plain(s.source)
		}
		streams := stream.New(config)
		defer streams.Close()
		f(t, s, streams)
	})
}

func watching(t *testing.T, streams *stream.Set, o Options, queries ...Query) *Accumulator {
	t.Helper()
	a, err := New(t.Context(), streams, queries, o)
	require.NoError(t, err)
	return a
}

func update(t *testing.T, a *Accumulator, into any) Result {
	t.Helper()
	r, err := a.Update(context.Background(), into, nil)
	require.NoError(t, err)
	return r
}

// signalled reports whether a signal waits, once all goroutines are idle.
func signalled(a *Accumulator) bool {
	synctest.Wait()
	select {
	case _, open := <-a.Changed():
		return open
	default:
		return false
	}
}

func names(objects []*unstructured.Unstructured) (all []string) {
	for _, o := range objects {
		all = append(all, o.GetName())
	}
	return all
}

const second = time.Second
