package accumulator

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// two is a snapshot of two resources.
type two struct {
	A, B []*unstructured.Unstructured
}

type one struct {
	A []*unstructured.Unstructured
}

func watching(t *testing.T, streams *streamset.Set, o collect.Options, queries ...query.Query) *Accumulator {
	t.Helper()
	n := &notes{}
	o.Noted = &n.flag
	a, err := New(t.Context(), streams, queries, o)
	require.NoError(t, err)
	noted.Store(a, n)
	t.Cleanup(func() { noted.Delete(a) })
	return a
}

func update(t *testing.T, a *Accumulator, into any) Result {
	t.Helper()
	n, last := notesOf(a), reflect.TypeOf(into)
	n.begin()
	r, err := a.Update(context.Background(), into, nil)
	require.NoError(t, err)
	if n.target == nil || n.target == last {
		require.NoError(t, n.check(r))
	}
	n.target = last
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

const second = time.Second

// listener returns that of the i-th stream of an accumulator's first query.
func listener(a *Accumulator, i int) *stream.Listener {
	return a.collector.Fields()[0].Query.Listeners()[i]
}
