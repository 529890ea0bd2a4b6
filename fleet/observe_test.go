package fleet

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/kates-go/kates/kates"
)

// heardCalls is an observer that writes down the calls.
type heardCalls struct {
	mu  sync.Mutex
	all []string
}

func (h *heardCalls) Request(ctx context.Context, _ kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	return ctx, nil
}

func (h *heardCalls) Updated(kates.UpdateInfo) {}

func (h *heardCalls) Call(ctx context.Context, c kates.CallInfo) (context.Context, func(kates.CallResult)) {
	return ctx, func(r kates.CallResult) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, c.Loop+" "+c.Key+" "+string(r.Outcome))
	}
}

func (h *heardCalls) expect(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.all, want) {
		t.Errorf("the observer was told %q, not %q", h.all, want)
	}
	h.all = nil
}

func TestAnObserverOfTheClustersClientsIsToldOfCallsForTheWholeFleetAndForClustersThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heardCalls{}
		f := newFleet(t, Options{Client: []kates.Option{kates.WithObserver(h)}})
		a := newCluster(t, "1", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- Run(ctx, f, func(context.Context, *allMaps) error { return nil })
		}()
		atRest()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		h.expect(t, "fleet.allMaps  success")

		o := newOutputs(t)
		end := runEach(t, f, o.call)
		atRest()
		h.expect(t) // the client of this cluster is the test's, and has no observer
		o.fails[Key{"a", "x"}] = 1
		f.Remove("a")
		atRest()
		h.expect(t, "fleet.perName x error", "fleet.perName x success")
		_ = end()
	})
}
