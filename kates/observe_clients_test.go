package kates_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// quietObserver is an observer that nothing happens to.
type quietObserver struct{}

func (quietObserver) Request(ctx context.Context, _ kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	return ctx, nil
}

func (quietObserver) Call(ctx context.Context, _ kates.CallInfo) (context.Context, func(kates.CallResult)) {
	return ctx, nil
}

func (quietObserver) Updated(kates.UpdateInfo) {}

// clientsSeen notes the clients that are open, by the names of their clusters.
type clientsSeen struct {
	quietObserver
	mu   sync.Mutex
	open map[*kates.Client]string
	ends int
}

func (s *clientsSeen) ObserveClient(c *kates.Client) (kates.Observer, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[*kates.Client]string)
	}
	s.open[c] = c.ClusterName()
	return nil, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, c)
		s.ends++
	}
}

// names are those of the clusters of the clients that are open. A failure does not print clients,
// which takes half a minute.
func (s *clientsSeen) names() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.open {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestAnObserverLearnsOfEachClientAndOfItsEndOnce(t *testing.T) {
	seen := &clientsSeen{}
	config := &rest.Config{Host: "nowhere.invalid"}
	one, err := kates.NewClientFromRESTConfig(config, kates.WithObserver(seen), kates.WithClusterName("eu"))
	require.NoError(t, err)
	two, err := kates.NewClientFromRESTConfig(config, kates.WithObserver(seen))
	require.NoError(t, err)
	assert.Equal(t, []string{"", "eu"}, seen.names())
	derived := one.With(kates.WithInterval(0))
	assert.Equal(t, "eu", derived.ClusterName())
	assert.Len(t, seen.names(), 2, "a client that shares everything is no other one")
	derived.Close()
	one.Close()
	assert.Equal(t, []string{""}, seen.names())
	assert.Equal(t, 1, seen.ends)
	two.Close()
	assert.Empty(t, seen.names())
}

func TestAClientThatCannotBeMadeIsNotToldToAnObserver(t *testing.T) {
	seen := &clientsSeen{}
	_, err := kates.NewClientFromRESTConfig(&rest.Config{Host: "nowhere.invalid"},
		kates.WithObserver(seen), kates.WithClusterName(""))
	require.ErrorContains(t, err, "WithClusterName: the name is empty")
	assert.Empty(t, seen.names())
}

// panicsOfClients is an observer that panics when a client begins, or when it ends.
type panicsOfClients struct {
	quietObserver
	begin bool
}

func (p panicsOfClients) ObserveClient(*kates.Client) (kates.Observer, func()) {
	if p.begin {
		panic("at the beginning")
	}
	return nil, func() { panic("at the end") }
}

func TestAPanicOfAnObserverOfClientsIsLoggedAndEndsNothing(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	seen := &clientsSeen{}
	c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: "nowhere.invalid"}, kates.WithLogger(slog.New(logr.ToSlogHandler(log))),
		kates.WithObserver(panicsOfClients{begin: true}), kates.WithObserver(panicsOfClients{}), kates.WithObserver(seen))
	require.NoError(t, err)
	assert.Len(t, seen.names(), 1)
	c.Close()
	assert.Empty(t, seen.names())
	text := strings.Join(lines, "\n")
	assert.Contains(t, text, "ClientObserver.ObserveClient: at the beginning")
	assert.Contains(t, text, "what ClientObserver.ObserveClient has returned: at the end")
}

// eachNotes is an observer that has another one for each client.
type eachNotes struct {
	quietObserver
	of map[*kates.Client]*noting
}

func (e *eachNotes) Request(context.Context, kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	panic("the client has an observer of its own")
}

func (e *eachNotes) ObserveClient(c *kates.Client) (kates.Observer, func()) {
	e.of[c] = &noting{}
	return e.of[c], nil
}

func TestWhatObserveClientReturnsIsToldInPlaceOfTheObserverAfterAReconnectToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, each := katestest.NewServer(t), &eachNotes{of: map[*kates.Client]*noting{}}
		one := server.Client(t, kates.WithObserver(each))
		two := server.Client(t, kates.WithObserver(each))
		count := func(c *kates.Client) (n int) {
			requests, _ := each.of[c].noted()
			for _, r := range requests {
				if strings.HasPrefix(r, "get /v1/configmaps") {
					n++
				}
			}
			return n
		}
		cm := &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Name: "a", Namespace: "default"}}
		require.Error(t, one.Get(t.Context(), cm, nil))
		assert.Equal(t, []int{1, 0}, []int{count(one), count(two)})
		require.NoError(t, one.Reconnect(t.Context(), server.Config))
		require.Error(t, one.Get(t.Context(), cm, nil))
		require.Error(t, two.Get(t.Context(), cm, nil))
		assert.Equal(t, []int{2, 1}, []int{count(one), count(two)})
	})
}
