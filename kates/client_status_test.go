package kates_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// outage is a fake's answer to reads of pods, and its open watches.
type outage struct {
	mu    sync.Mutex
	err   error
	open  []watch.Interface
	asked int
}

func (o *outage) set(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// cut sets the answer from now on, and ends the open watches.
func (o *outage) cut(err error) {
	o.set(err)
	o.mu.Lock()
	open := o.open
	o.open = nil
	o.mu.Unlock()
	for _, w := range open {
		w.Stop()
	}
}

func (o *outage) requests() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

func unreliable(t *testing.T, options ...kates.Option) (*katestest.Fake, *outage) {
	t.Helper()
	o := &outage{}
	fake := katestest.New(t, katestest.WithClientOptions(options...))
	react(fake, "list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.asked++
		return o.err != nil, nil, o.err
	})
	fake.Dynamic.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.asked++
		if o.err != nil {
			return true, nil, o.err
		}
		w := watch.NewFake()
		o.open = append(o.open, w)
		return true, w, nil
	})
	return fake, o
}

var podsOutages = []error{
	apierrors.NewInternalError(errors.New("broken")),
	apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")),
	apierrors.NewServiceUnavailable("down"),
}

func TestEachTransitionIsLoggedOnceHoweverOftenItIsTriedAgain(t *testing.T) {
	for name, logger := range map[string]func(*logged) kates.Option{
		"slog": func(out *logged) kates.Option {
			return kates.WithLogger(slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})))
		},
		"logr": func(out *logged) kates.Option {
			return kates.WithLogger(slog.New(logr.ToSlogHandler(funcr.New(func(prefix, args string) { _, _ = out.Write([]byte(prefix + args + "\n")) }, funcr.Options{Verbosity: 1}))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &logged{}
				fake, pods := unreliable(t, logger(out), kates.WithOverdue(time.Minute))
				pods.set(podsOutages[0])
				s, err := kates.Watch[podsAndServices](t.Context(), fake.Client)
				require.NoError(t, err)
				transitions := 1
				stays := func() {
					t.Helper()
					asked := pods.requests()
					<-time.After(10 * time.Minute)
					assert.Greater(t, pods.requests(), asked+10, "it is tried again and again")
					assert.Equal(t, transitions, out.count("will keep trying"))
				}
				stays()
				assert.Equal(t, 1, out.count("still no complete snapshot"))
				assert.NotZero(t, out.count("broken"), "with its reason")
				pods.set(podsOutages[1]) // to forbidden
				transitions++
				stays()
				pods.set(podsOutages[2]) // and back to retrying
				transitions++
				stays()
				for range 2 {
					watching := out.count("watching")
					pods.set(nil)
					<-time.After(time.Minute)
					require.NoError(t, s.Ready())
					assert.Equal(t, watching+1, out.count("watching"), "so is a recovery")
					pods.cut(podsOutages[0])
					transitions++
					stays()
					assert.NoError(t, s.Ready(), "it never turns back")
					assert.ErrorContains(t, s.Status().Err(), "broken")
				}
				assert.Equal(t, 1, out.count("still no complete snapshot"))
				s.Close()
			})
		})
	}
}

func TestTheLagIsZeroWhileAWatchIsOpenAndGrowsWhileThereIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, pods := unreliable(t, kates.WithLogger(slog.New(slog.DiscardHandler)))
		s, err := kates.Watch[podsAndServices](t.Context(), fake.Client)
		require.NoError(t, err)
		<-s.Changed()
		lag := func(i int) time.Duration { synctest.Wait(); return s.Status().Queries[i].Lag }
		<-time.After(time.Minute)
		assert.Zero(t, lag(0))
		pods.cut(podsOutages[0])
		heard := s.Status().Queries[0].Heard
		for range 3 {
			<-time.After(20 * time.Second)
			assert.Equal(t, time.Since(heard), lag(0))
			assert.Zero(t, lag(1), "the other kind is well")
		}
		pods.set(nil)
		<-time.After(2 * time.Minute)
		assert.Zero(t, lag(0))
		s.Close()
	})
}

// TestTheLagOfAWatchThatHasHeardNothingGrowsFromItsBeginning: it is no watch that is up to date.
func TestTheLagOfAWatchThatHasHeardNothingGrowsFromItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, pods := unreliable(t, kates.WithLogger(slog.New(slog.DiscardHandler)))
		pods.set(podsOutages[0])
		acc, err := fake.Client.Watch(t.Context(), kates.Query{Name: "Pods", Kind: "pods"})
		require.NoError(t, err)
		<-time.After(time.Minute)
		assert.Equal(t, time.Minute, acc.Status().Queries[0].Lag)
	})
}

func TestReadyOfAClientSaysInOneCallWhatEveryWatchWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, pods := unreliable(t, kates.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, fake.Client.Ready(), "nothing is watched")
		pods.set(podsOutages[0])
		a, err := fake.Client.Watch(t.Context(), kates.Query{Name: "First", Kind: "pods"}, kates.Query{Name: "Fine", Kind: "services"})
		require.NoError(t, err)
		b, err := fake.Client.With(kates.WithInterval(0)).Watch(t.Context(), kates.Query{Name: "Second", Kind: "pods", Namespace: "x"})
		require.NoError(t, err)
		synctest.Wait()
		for _, text := range []string{`query "First" (pods): retrying`, `query "Second" (pods): retrying`, "broken"} {
			assert.ErrorContains(t, fake.Client.Ready(), text)
		}
		assert.NotContains(t, fake.Client.Ready().Error(), "Fine")
		pods.set(nil)
		<-time.After(time.Minute)
		require.NoError(t, fake.Client.Ready())
		pods.cut(podsOutages[0])
		<-time.After(time.Minute)
		assert.NoError(t, fake.Client.Ready(), "it never turns back")
		assert.ErrorContains(t, fake.Client.Status().Err(), `query "Second"`)
		a.Close()
		b.Close()
	})
}

const goldenTable = `
QUERY   KIND              STATE             SINCE  LAG  OBJECTS  INVALID  PENDING  RESTARTS  VERSION  ERROR
Pods    pods              synced            1m30s  0s   2        1        3        4         17       
Hosts   hosts (metadata)  retrying          5s     7s   0        0        0        0                  out of order
Routes  routes            waiting for kind  0s     0s   0        0        0        0                  
`

const goldenJSON = `{
  "queries": [
    {
      "name": "Pods",
      "kind": "pods",
      "namespaces": [
        "a",
        "b"
      ],
      "state": "synced",
      "since": "1999-12-31T23:58:30Z",
      "heard": "1999-12-31T23:59:59Z",
      "lag": 0,
      "objects": 2,
      "invalid": 1,
      "version": "17",
      "pending": 3,
      "restarts": 4
    },
    {
      "name": "Hosts",
      "kind": "hosts",
      "namespace": "a",
      "state": "retrying",
      "since": "1999-12-31T23:59:55Z",
      "form": "metadata",
      "error": "out of order",
      "lag": 7000000000,
      "objects": 0,
      "invalid": 0,
      "pending": 0,
      "unsettled": 5,
      "restarts": 0
    },
    {
      "name": "Routes",
      "kind": "routes",
      "optional": true,
      "state": "waiting for kind",
      "since": "2000-01-01T00:00:00Z",
      "lag": 0,
      "objects": 0,
      "invalid": 0,
      "pending": 0,
      "restarts": 0
    }
  ]
}`

// TestAStatusLooksAsItAlwaysDid: other programs read it.
func TestAStatusLooksAsItAlwaysDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble's time begins with the year 2000
		now := time.Now().UTC()
		s := kates.Status{Queries: []kates.QueryStatus{
			{Name: "Pods", Kind: "pods", Namespaces: []string{"a", "b"}, State: kates.StateSynced, Since: now.Add(-90 * time.Second),
				Heard: now.Add(-time.Second), Objects: 2, Invalid: 1, Pending: 3, Restarts: 4, Version: "17"},
			{Name: "Hosts", Kind: "hosts", Namespace: "a", Form: "metadata", State: kates.StateRetrying, Since: now.Add(-5 * time.Second),
				Lag: 7 * time.Second, Unsettled: 5, Error: "out of order"},
			{Name: "Routes", Kind: "routes", Optional: true, State: kates.StateWaiting, Since: now},
		}}
		assert.Equal(t, strings.TrimPrefix(goldenTable, "\n"), s.String())
		text, err := json.MarshalIndent(s, "", "  ")
		require.NoError(t, err)
		assert.Equal(t, goldenJSON, string(text))
		var back kates.Status
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, s, back)
		assert.EqualError(t, s.Err(), `query "Hosts" (hosts): retrying: out of order`+"\n"+`query "Routes" (routes): waiting for kind: not complete yet`)
	})
}
