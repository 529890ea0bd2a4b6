package fleet

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// clusterNames is an observer that notes the names of the clusters whose clients are open.
type clusterNames struct {
	mu      sync.Mutex
	open    map[string]int
	changed chan struct{}
}

func (n *clusterNames) ObserveClient(c *kates.Client) (kates.Observer, func()) {
	n.add(c.ClusterName(), 1)
	return nil, func() { n.add(c.ClusterName(), -1) }
}

func (n *clusterNames) add(name string, by int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[name] += by; n.open[name] == 0 {
		delete(n.open, name)
	}
	n.changed <- struct{}{}
}

func (n *clusterNames) now() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[string]int{}
	for name, count := range n.open {
		all[name] = count
	}
	return all
}

func (n *clusterNames) Request(ctx context.Context, _ kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	return ctx, nil
}

func (n *clusterNames) Call(ctx context.Context, _ kates.CallInfo) (context.Context, func(kates.CallResult)) {
	return ctx, nil
}

func (n *clusterNames) Updated(kates.UpdateInfo) {}

func TestAnObserverLearnsTheNamesOfTheClustersOfAFleetAndWhoLeaves(t *testing.T) {
	names := &clusterNames{open: map[string]int{}, changed: make(chan struct{}, 100)}
	f, err := New(Options{
		Client: []kates.Option{kates.WithObserver(names)}, Probe: time.Hour, Timeout: time.Second,
	})
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Add("eu", &rest.Config{Host: "http://127.0.0.1:1"}))
	require.NoError(t, f.Add("us", &rest.Config{Host: "http://127.0.0.1:1"}))
	<-names.changed
	<-names.changed
	assert.Equal(t, map[string]int{"eu": 1, "us": 1}, names.now())
	require.True(t, f.Remove("eu"))
	<-names.changed
	assert.Equal(t, map[string]int{"us": 1}, names.now())
	f.Close()
	assert.Empty(t, names.now())
}
