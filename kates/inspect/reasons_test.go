package inspect_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
	"github.com/kates-go/kates/kates/katestest"
)

// faulty is a client of a server with an object, by way of faults.
func faulty(t *testing.T, server *katestest.Server, options ...kates.Option) (*katestest.Faults, *kates.Client) {
	t.Helper()
	faults, config := katestest.NewFaults(t, 1), rest.CopyConfig(server.Config)
	config.Wrap(faults.Wrap)
	client, err := kates.NewClientFromRESTConfig(config, append(options, kates.WithInterval(0))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return faults, client
}

// configMaps is the stream of ConfigMaps.
func configMaps(c *kates.Client) *inspect.Stream { return inspect.Of(c).Streams[0] }

func TestListsAndWatchesAreCountedByReason(t *testing.T) {
	watches := katestest.Match{Verb: "watch", Resource: "configmaps"}
	lists := katestest.Match{Verb: "list", Resource: "configmaps"}
	for name, c := range map[string]struct {
		before, after func(t *testing.T, s *katestest.Server, f *katestest.Faults)
		lists         map[inspect.ListReason]uint64
		watches       map[inspect.WatchReason]uint64
	}{
		"a list that fails is asked for again": {
			before: func(_ *testing.T, _ *katestest.Server, f *katestest.Faults) { f.On(lists).Times(2).Status(500, "", 0) },
			lists:  map[inspect.ListReason]uint64{inspect.ListFirst: 1, inspect.ListAgain: 2},
		},
		"the server ends watches in time": {
			after:   func(*testing.T, *katestest.Server, *katestest.Faults) { time.Sleep(25 * time.Minute) },
			watches: map[inspect.WatchReason]uint64{inspect.WatchListed: 1, inspect.WatchEnded: 1},
		},
		"a watch ends early": {
			after: func(_ *testing.T, _ *katestest.Server, f *katestest.Faults) {
				time.Sleep(time.Minute)
				f.Now(watches).Cut(0)
				time.Sleep(time.Minute)
			},
			watches: map[inspect.WatchReason]uint64{inspect.WatchListed: 1, inspect.WatchShort: 1},
		},
		"a watch brings nothing": {
			after: func(_ *testing.T, _ *katestest.Server, f *katestest.Faults) {
				f.Now(watches).Times(1).Stall(0)
				time.Sleep(4 * time.Minute)
			},
			watches: map[inspect.WatchReason]uint64{inspect.WatchListed: 1, inspect.WatchIdle: 1},
		},
		"the server has forgotten the version": {
			after: func(t *testing.T, s *katestest.Server, f *katestest.Faults) {
				c := s.Client(t)
				down := f.On(watches).Status(http.StatusServiceUnavailable, "", 0)
				f.Now(watches).Cut(0)
				synctest.Wait() // the watch has ended
				require.NoError(t, c.Create(t.Context(), configMap("b", "1"), nil))
				s.Compact()
				require.NoError(t, c.Create(t.Context(), configMap("c", "1"), nil))
				time.Sleep(time.Minute)
				down.Stop()
				time.Sleep(46 * time.Second) // the longest pause, and then the list is made at once
			},
			lists:   map[inspect.ListReason]uint64{inspect.ListFirst: 1, inspect.ListExpired: 1},
			watches: map[inspect.WatchReason]uint64{inspect.WatchListed: 2, inspect.WatchShort: 1},
		},
		"the watch is refused": {
			before: func(_ *testing.T, _ *katestest.Server, f *katestest.Faults) {
				f.On(watches).Times(1).Status(http.StatusForbidden, "", 0)
			},
			after:   func(*testing.T, *katestest.Server, *katestest.Faults) { time.Sleep(time.Minute) },
			lists:   map[inspect.ListReason]uint64{inspect.ListFirst: 1, inspect.ListRefused: 1},
			watches: map[inspect.WatchReason]uint64{inspect.WatchListed: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := katestest.NewServer(t, katestest.WithObjects(configMap("a", "1")))
				faults, client := faulty(t, server)
				if c.before != nil {
					c.before(t, server, faults)
				}
				watch, err := kates.Watch[snapshot](t.Context(), client)
				require.NoError(t, err)
				<-watch.Changed()
				synctest.Wait()
				if c.after != nil {
					c.after(t, server, faults)
					synctest.Wait()
				}
				s := configMaps(client)
				if c.lists == nil {
					c.lists = map[inspect.ListReason]uint64{inspect.ListFirst: 1}
				}
				require.Equal(t, c.lists, s.Lists)
				if c.watches != nil {
					require.Equal(t, c.watches[inspect.WatchListed], s.Watches[inspect.WatchListed])
					for reason := range c.watches {
						require.NotZero(t, s.Watches[reason], "%v", s.Watches)
					}
					for reason := range s.Watches {
						require.Contains(t, c.watches, reason)
					}
				}
			})
		})
	}
}

func TestKeysAreCountedByState(t *testing.T) {
	type tenant struct {
		ConfigMaps []*kates.ConfigMap
	}
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t, katestest.WithObjects(configMap("a", "1"), configMap("b", "1"), configMap("c", "1"), configMap("d", "1")))
		_, client := faulty(t, server)
		all, err := kates.WatchEach[tenant](t.Context(), client, kates.Query{Name: "ConfigMaps", Namespace: "default", Key: kates.ByName})
		require.NoError(t, err)
		next := func() *kates.Turn[tenant] {
			turn, err := all.Next(t.Context())
			require.NoError(t, err)
			return turn
		}
		runs, fails := next(), next()
		fails.Done(http.ErrAbortHandler)
		next().Done(nil)
		w := inspect.Of(client).Watches[0]
		require.Equal(t, inspect.OfPartitions, w.Kind)
		k := w.Keys
		require.Equal(t, []int{4, 0, 1, 1, 1}, []int{k.All, k.Waiting, k.Ready, k.Running, k.Resting})
		require.Equal(t, []string{runs.Key, fails.Key, "d"}, []string{k.Some[0].Key, k.Some[1].Key, k.Some[2].Key})
		require.Equal(t, []inspect.KeyState{inspect.KeyRunning, inspect.KeyResting, inspect.KeyReady}, []inspect.KeyState{k.Some[0].State, k.Some[1].State, k.Some[2].State})
		require.Equal(t, 1, k.Some[1].Failures)
		require.True(t, k.Some[1].Until.After(time.Now()))
		require.Equal(t, uint64(3), w.Snapshots)
		require.Equal(t, []inspect.ObjectKey{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "b"}, {Namespace: "default", Name: "c"}, {Namespace: "default", Name: "d"}}, w.Objects("ConfigMaps"))
		o, ok := w.Object("ConfigMaps", inspect.ObjectKey{Namespace: "default", Name: "b"})
		require.True(t, ok)
		require.Equal(t, "b", o.Shown.GetName())
	})
}
