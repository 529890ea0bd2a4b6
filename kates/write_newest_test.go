package kates_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestNothingIsSkippedWhileAnotherWatchShowsANewerVersion: what the late one shows is known to be
// old.
func TestNothingIsSkippedWhileAnotherWatchShowsANewerVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, faults := katestest.NewServer(t), katestest.NewFaults(t, 1)
		other := server.Client(t)
		defer other.Close()
		x := configMap("x", "k", "v")
		x.Namespace = "default"
		require.NoError(t, other.Create(t.Context(), x, x))
		config := rest.CopyConfig(server.Config)
		config.Wrap(faults.Wrap)
		c, err := kates.NewClientFromRESTConfig(config)
		require.NoError(t, err)
		defer c.Close()
		type wholes struct {
			Maps []*kates.Unstructured `kates:"cm"`
		}
		type heads struct {
			Maps []*kates.PartialObjectMetadata `kates:"cm"`
		}
		whole, err := kates.Watch[wholes](t.Context(), c, kates.Query{Name: "Maps", Namespace: "default"})
		require.NoError(t, err)
		<-whole.Changed()
		meta, err := kates.Watch[heads](t.Context(), c)
		require.NoError(t, err)
		<-meta.Changed()
		synctest.Wait() // the watches are open

		late := faults.Now(katestest.Match{Verb: "watch", Resource: "configmaps", Namespace: "default"}).Delay(time.Hour)
		defer late.Stop()
		require.NoError(t, other.Patch(t.Context(), x, kates.MergePatchType, []byte(`{"data":{"k":"w"}}`), x))
		var snap heads
		for shown := false; !shown; <-meta.Changed() {
			_, err := meta.Update(t.Context(), &snap)
			require.NoError(t, err)
			if shown = len(snap.Maps) > 0 && snap.Maps[len(snap.Maps)-1].ResourceVersion == x.ResourceVersion; shown {
				break
			}
		}
		_, err = kates.Modify(t.Context(), c, x, func(m *kates.ConfigMap) error { m.Data["k"] = "v"; return nil })
		require.NoError(t, err)
		require.NoError(t, other.Get(t.Context(), x, x))
		assert.Equal(t, "v", x.Data["k"])
		assert.Len(t, faults.Requests(katestest.Match{Verb: "get", Resource: "configmaps"}), 1)
	})
}

// TestG4AnUpsertOfADeletedObjectIsSentThoughALateWatchShowsIt: the program has seen the deletion.
func TestG4AnUpsertOfADeletedObjectIsSentThoughALateWatchShowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := func() *kates.ConfigMap {
			m := configMap("x", "a", "v")
			m.Labels = map[string]string{"app": "x"}
			return m
		}
		s := katestest.NewServer(t, katestest.WithObjects(want()))
		faults := katestest.NewFaults(t, 1)
		config := rest.CopyConfig(s.Config)
		config.Wrap(faults.Wrap)
		c, err := kates.NewClientFromRESTConfig(config, kates.WithInterval(0))
		require.NoError(t, err)
		defer c.Close()
		type typed struct{ Maps []*kates.ConfigMap }
		all, err := kates.Watch[typed](t.Context(), c)
		require.NoError(t, err)
		defer all.Close()
		type untyped struct {
			Maps []*kates.Unstructured `kates:"configmaps"`
		}
		late, err := kates.Watch[untyped](t.Context(), c, kates.Query{Name: "Maps", Kind: "configmaps", LabelSelector: "app=x"})
		require.NoError(t, err)
		defer late.Close()
		synctest.Wait()
		faults.Now(katestest.Match{Verb: "watch", Resource: "configmaps", Where: func(r katestest.Request) bool {
			return r.Query.Get("labelSelector") != ""
		}}).Stall(0)
		require.NoError(t, s.Client(t).Delete(t.Context(), configMap("x"), nil))
		synctest.Wait()
		var snap typed
		_, err = all.Update(t.Context(), &snap)
		require.NoError(t, err)
		require.Empty(t, snap.Maps)
		require.NoError(t, c.Upsert(t.Context(), nil, want(), nil))
		require.NoError(t, s.Client(t).Get(t.Context(), configMap("x"), &kates.ConfigMap{}), "it is there again")
	})
}
