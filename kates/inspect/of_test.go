package inspect_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
	"github.com/kates-go/kates/kates/katestest"
)

type snapshot struct {
	ConfigMaps []*corev1.ConfigMap
	Secrets    []*corev1.Secret
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"k": value}}
}

// update waits for a signal, and takes the snapshot.
func update(t *testing.T, s *kates.Snapshots[snapshot]) {
	t.Helper()
	<-s.Changed()
	var snap snapshot
	_, err := s.Update(t.Context(), &snap)
	require.NoError(t, err)
}

func TestAReportCountsWhatAWatchHasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t, katestest.WithObjects(configMap("a", "1"), configMap("b", "1")))
		client, err := kates.NewClientFromRESTConfig(server.Config, kates.WithInterval(0))
		require.NoError(t, err)
		defer client.Close()
		other, err := kates.NewClientFromRESTConfig(server.Config)
		require.NoError(t, err)
		defer other.Close()
		watch, err := kates.Watch[snapshot](t.Context(), client)
		require.NoError(t, err)
		update(t, watch)
		synctest.Wait()

		r := inspect.Of(client)
		require.Len(t, r.Watches, 1)
		w := r.Watches[0]
		require.Equal(t, "inspect_test.snapshot", w.Name)
		require.Equal(t, inspect.OfSnapshots, w.Kind)
		require.False(t, w.Completed.IsZero())
		require.Empty(t, w.Incomplete)
		require.Positive(t, w.Signals)
		require.Equal(t, []uint64{1, 2}, []uint64{w.Snapshots, w.Changes})
		require.Len(t, r.Streams, 2)
		cm := r.Streams[0]
		require.Equal(t, "configmaps.v1", cm.Resource)
		require.Equal(t, 2, cm.Objects)
		require.Greater(t, cm.Bytes, int64(400))
		require.Equal(t, map[inspect.ListReason]uint64{inspect.ListFirst: 1}, cm.Lists)
		require.Equal(t, map[inspect.WatchReason]uint64{inspect.WatchListed: 1}, cm.Watches)
		require.Equal(t, []int64{cm.ID}, w.Queries[0].Streams)

		// three changes of one object are one object of the next snapshot
		for _, value := range []string{"2", "3", "4"} {
			require.NoError(t, other.Update(t.Context(), configMap("a", value), nil))
			synctest.Wait()
		}
		q := inspect.Of(client).Watches[0].Queries[0]
		require.Equal(t, 1, q.Untaken)
		require.False(t, q.UntakenSince.IsZero())
		require.Equal(t, uint64(2), q.Coalesced)
		events := q.Events
		update(t, watch)
		q = inspect.Of(client).Watches[0].Queries[0]
		require.Zero(t, q.Untaken)
		require.Zero(t, q.UntakenSince)
		require.Equal(t, events, q.Events)
		require.Equal(t, uint64(3), inspect.Of(client).Streams[0].Events)

		// one that comes and goes is in no snapshot
		require.NoError(t, other.Create(t.Context(), configMap("c", "1"), nil))
		require.NoError(t, other.Delete(t.Context(), configMap("c", "1"), nil))
		synctest.Wait()
		q = inspect.Of(client).Watches[0].Queries[0]
		require.Equal(t, uint64(4), q.Coalesced)
		require.Equal(t, events+2, q.Events)

		text, err := json.Marshal(inspect.Of(client))
		require.NoError(t, err)
		require.Contains(t, string(text), `"configmaps.v1"`)
	})
}

func TestAReportShowsOwnWritesThatTheWatchHasNotBrought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t, katestest.WithObjects(configMap("a", "1")))
		faults, config := katestest.NewFaults(t, 1), rest.CopyConfig(server.Config)
		config.Wrap(faults.Wrap)
		stall := faults.On(katestest.Match{Verb: "watch", Resource: "configmaps"}).Stall(0)
		client, err := kates.NewClientFromRESTConfig(config, kates.WithInterval(0))
		require.NoError(t, err)
		defer client.Close()
		watch, err := kates.Watch[snapshot](t.Context(), client)
		require.NoError(t, err)
		update(t, watch)
		began := time.Now()
		require.NoError(t, client.Update(t.Context(), configMap("a", "2"), nil))
		time.Sleep(time.Second)
		s := inspect.Of(client).Streams[0]
		require.Equal(t, 1, s.Pending)
		require.Equal(t, began, s.PendingSince)
		require.Len(t, s.Writes, 1)
		require.Equal(t, "a", s.Writes[0].Name)

		w := inspect.Of(client).Watches[0]
		o, ok := w.Object("ConfigMaps", inspect.ObjectKey{Namespace: "default", Name: "a"})
		require.True(t, ok)
		require.Equal(t, "1", o.Shown.(*corev1.ConfigMap).Data["k"], "no Update since")
		require.Equal(t, "1", o.Streams[0].Watched.(*corev1.ConfigMap).Data["k"])
		require.Equal(t, "2", o.Streams[0].Current.(*corev1.ConfigMap).Data["k"])
		require.True(t, o.Streams[0].Untaken)
		require.NotNil(t, o.Streams[0].Write)
		update(t, watch)
		o, _ = w.Object("ConfigMaps", inspect.ObjectKey{Namespace: "default", Name: "a"})
		require.Equal(t, "2", o.Shown.(*corev1.ConfigMap).Data["k"])
		require.Equal(t, []inspect.ObjectKey{{Namespace: "default", Name: "a"}}, w.Objects("ConfigMaps"))
		_, ok = w.Object("Nothing", inspect.ObjectKey{})
		require.False(t, ok)

		stall.Stop()
		synctest.Wait()
		require.Zero(t, inspect.Of(client).Streams[0].Pending)
		require.Empty(t, inspect.Of(client).Streams[0].Writes)
	})
}

func TestInvalidObjectsAreNamedWithTheReason(t *testing.T) {
	odd := func(*kates.Unstructured) (bool, error) { return false, errors.New("odd") }
	type named struct{ ConfigMaps []*corev1.ConfigMap }
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t, katestest.WithObjects(configMap("b", "1"), configMap("a", "1"), configMap("c", "1")))
		_, client := faulty(t, server)
		watch, err := client.Watch(t.Context(), kates.Query{Name: "ConfigMaps", Kind: "configmaps", Namespace: "default"})
		require.NoError(t, err)
		<-watch.Changed()
		_, err = watch.JudgedUpdate(t.Context(), &named{}, nil, nil, odd)
		require.NoError(t, err)
		w := inspect.Of(client).Watches[0]
		require.Equal(t, []inspect.InvalidObject{
			{ObjectKey: inspect.ObjectKey{Namespace: "default", Name: "a"}, Why: "odd"},
			{ObjectKey: inspect.ObjectKey{Namespace: "default", Name: "b"}, Why: "odd"},
		}, w.Invalid("ConfigMaps", 2))
		o, _ := w.Object("ConfigMaps", inspect.ObjectKey{Namespace: "default", Name: "a"})
		require.Equal(t, "odd", o.Invalid)
		watch.Close()

		each, err := kates.WatchEach[named](t.Context(), client, kates.Query{
			Name: "ConfigMaps", Namespace: "default", Key: kates.KeyOf(func(o metav1.Object) []string {
				if o.GetName() == "b" {
					panic("odd key")
				}
				return []string{"all"}
			}),
		})
		require.NoError(t, err)
		turn, err := each.Next(t.Context())
		require.NoError(t, err)
		turn.Done(nil)
		invalid := inspect.Of(client).Watches[0].Invalid("ConfigMaps", 10)
		require.Len(t, invalid, 1)
		require.Equal(t, "b", invalid[0].Name)
		require.Contains(t, invalid[0].Why, "odd key")
	})
}
