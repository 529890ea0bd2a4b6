package kates_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// noting is an observer that notes what it is told.
type noting struct {
	mu       sync.Mutex
	requests []string
	updates  []string
}

// noted returns what it was told until now. More may come at any time.
func (n *noting) noted() (requests, updates []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.requests), slices.Clone(n.updates)
}

type notingKey struct{}

func (n *noting) Request(ctx context.Context, r kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	text := fmt.Sprintf("%s %s/%s/%s", r.Verb, r.Group, r.Version, r.Resource)
	return context.WithValue(ctx, notingKey{}, text), func(got kates.RequestResult) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.requests = append(n.requests, fmt.Sprintf("%s %s %s: %d %v", text, r.Namespace, r.Name, got.Code, got.Err))
	}
}

func (n *noting) Call(ctx context.Context, _ kates.CallInfo) (context.Context, func(kates.CallResult)) {
	return ctx, nil
}

func (n *noting) Updated(u kates.UpdateInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := fmt.Sprintf("%s %q %t %d:", u.Watch, u.Key, u.First, u.Changes)
	u.Each(func(query, namespace, name string, t kates.DeltaType) bool {
		text += fmt.Sprintf(" %s %s/%s %s", query, namespace, name, t)
		return true
	})
	n.updates = append(n.updates, text)
}

func TestAnObserverIsToldOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t)
		n, config := &noting{}, rest.CopyConfig(server.Config)
		var contexts []any
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if strings.Contains(r.URL.Path, "configmaps") {
					contexts = append(contexts, r.Context().Value(notingKey{}))
				}
				return next.RoundTrip(r)
			})
		})
		c, err := kates.NewClientFromRESTConfig(config, kates.WithObserver(n))
		require.NoError(t, err)
		defer c.Close()
		cm := &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Name: "a", Namespace: "default"}}
		require.NoError(t, c.Create(t.Context(), cm, nil))
		require.Error(t, c.Create(t.Context(), cm, nil))
		var all []string
		requests, _ := n.noted()
		for _, r := range requests {
			if strings.Contains(r, "configmaps") {
				all = append(all, r)
			}
		}
		require.Equal(t, []string{
			"create /v1/configmaps default : 201 <nil>",
			"create /v1/configmaps default : 409 <nil>",
		}, all)
		require.Equal(t, []any{"create /v1/configmaps", "create /v1/configmaps"}, contexts)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAnObserverIsToldOfSnapshotsThatDiffer(t *testing.T) {
	type observed struct{ ConfigMaps []*kates.ConfigMap }
	synctest.Test(t, func(t *testing.T) {
		server, n, second := katestest.NewServer(t), &noting{}, &noting{}
		c := server.Client(t, kates.WithObserver(n), kates.WithObserver(second), kates.WithName("maps"), kates.WithInterval(0))
		watch, err := kates.Watch[observed](t.Context(), c, kates.Query{Name: "ConfigMaps", Namespace: "default"})
		require.NoError(t, err)
		update := func() {
			var snap observed
			_, err := watch.Update(t.Context(), &snap)
			require.NoError(t, err)
		}
		update() // there is none yet
		<-watch.Changed()
		time.Sleep(time.Second)
		update()
		update() // nothing has changed
		cm := &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Name: "a", Namespace: "default"}}
		require.NoError(t, c.Create(t.Context(), cm, nil))
		update()
		require.NoError(t, c.Delete(t.Context(), cm, nil))
		update()
		require.Equal(t, []string{
			`maps "" true 0:`,
			`maps "" false 1: ConfigMaps default/a add`,
			`maps "" false 1: ConfigMaps default/a delete`,
		}, n.updates)
		require.Equal(t, n.updates, second.updates)
	})
}

// panicking is an observer that panics.
type panicking struct{}

func (panicking) Request(context.Context, kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	panic("request")
}

func (panicking) Call(context.Context, kates.CallInfo) (context.Context, func(kates.CallResult)) {
	panic("call")
}

func (panicking) Updated(kates.UpdateInfo) { panic("updated") }

func TestG8AnObserverThatPanicsEndsNothing(t *testing.T) {
	type observed struct{ ConfigMaps []*kates.ConfigMap }
	synctest.Test(t, func(t *testing.T) {
		server, n := katestest.NewServer(t), &noting{}
		c := server.Client(t, kates.WithObserver(panicking{}), kates.WithObserver(n))
		watch, err := kates.Watch[observed](t.Context(), c, kates.Query{Name: "ConfigMaps", Namespace: "default"})
		require.NoError(t, err)
		<-watch.Changed()
		var snap observed
		changed, err := watch.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.True(t, changed)
		requests, updates := n.noted()
		assert.Len(t, updates, 1)
		assert.NotEmpty(t, requests)
	})
}

func TestAnObserverThatIsNilIsAnError(t *testing.T) {
	_, err := kates.NewClientFromRESTConfig(&rest.Config{}, kates.WithObserver(nil))
	require.ErrorContains(t, err, "WithObserver(nil)")
	_, err = kates.NewClientFromRESTConfig(&rest.Config{}, kates.WithName(""))
	require.ErrorContains(t, err, "WithName: the name is empty")
}
