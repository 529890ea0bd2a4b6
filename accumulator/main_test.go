package accumulator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// two is a snapshot of two resources.
type two struct {
	A, B []*unstructured.Unstructured
}

type one struct {
	A []*unstructured.Unstructured
}

// bubble runs a test on a simulated server, in synctest's time. Everything must have ended when
// f returns and the streams are closed, or the bubble fails.
func bubble(t *testing.T, config Config, f func(t *testing.T, s *sim, streams *Streams)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSim()
		if config.Source == nil {
			config.Source = s.source
		}
		streams := NewStreams(config)
		defer streams.Close()
		f(t, s, streams)
	})
}

func watching(t *testing.T, streams *Streams, o Options, queries ...Query) *Accumulator {
	t.Helper()
	a, err := streams.New(t.Context(), queries, o)
	require.NoError(t, err)
	return a
}

func update(t *testing.T, a *Accumulator, into any) Result {
	t.Helper()
	r, err := a.Update(context.Background(), into, nil)
	require.NoError(t, err)
	return r
}

// signalled reports whether a signal is waiting, once all is quiet.
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
