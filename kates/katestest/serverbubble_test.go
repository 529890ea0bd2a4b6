package katestest_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type settings struct{ ConfigMaps []*kates.ConfigMap }

func settingsMap(name, value string) *kates.ConfigMap {
	cm := &kates.ConfigMap{TypeMeta: kates.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: name}}
	cm.Data = map[string]string{"k": value}
	return cm
}

// disturbed is a client of a server that can be disturbed, with a watch whose first snapshot is
// there.
func disturbed(t *testing.T, s *katestest.Server, wrap func(http.RoundTripper) http.RoundTripper) (*kates.Client, *kates.Snapshots[settings], *settings) {
	config := rest.CopyConfig(s.Config)
	config.Wrap(wrap)
	c, err := kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	watch, err := kates.Watch[settings](t.Context(), c, kates.Query{Name: "ConfigMaps", Namespace: "default"})
	require.NoError(t, err)
	var snap settings
	<-watch.Changed()
	update(t, watch, &snap)
	return c, watch, &snap
}

func update(t *testing.T, from *kates.Snapshots[settings], into *settings) {
	t.Helper()
	changed, err := from.Update(t.Context(), into)
	require.NoError(t, err)
	require.True(t, changed)
}

func TestTheTimeOfAServerInMemoryIsThatOfItsBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := katestest.NewServer(t)
		c := s.Client(t)
		time.Sleep(24 * time.Hour)
		o := settingsMap("a", "v")
		require.NoError(t, c.Create(t.Context(), o, o))
		assert.True(t, o.CreationTimestamp.Time.Equal(time.Now()), "%v", o.CreationTimestamp)
		began := time.Now()
		_, watch, _ := disturbed(t, s, func(r http.RoundTripper) http.RoundTripper { return r })
		time.Sleep(10 * time.Hour)
		select {
		case <-watch.Changed():
			t.Error("nothing has changed")
		default:
		}
		assert.Equal(t, 10*time.Hour, time.Since(began))
	})
}

func TestFaultsWorkOnAServerInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := katestest.NewServer(t, katestest.WithObjects(settingsMap("a", "v")))
		faults := katestest.NewFaults(t, 1)
		c, watch, snap := disturbed(t, s, faults.Wrap)
		assert.Len(t, snap.ConfigMaps, 1)
		writes := faults.On(katestest.Match{Verb: "create"}).Times(1).Status(http.StatusConflict, "", 0)
		err := c.Create(t.Context(), settingsMap("b", "v"), nil)
		assert.True(t, apierrors.IsConflict(err), "%v", err)
		writes.Stop()
		require.NoError(t, c.Create(t.Context(), settingsMap("b", "v"), nil))
		<-watch.Changed()
		update(t, watch, snap)
		assert.Len(t, snap.ConfigMaps, 2)
	})
}

func TestConnectionsToAServerInMemoryFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := katestest.NewServer(t, katestest.WithObjects(settingsMap("a", "v")))
		_, watch, snap := disturbed(t, s, func(r http.RoundTripper) http.RoundTripper { return r })
		thaw := s.Network.Freeze()
		time.Sleep(time.Second)
		thaw()
		other := s.Client(t)
		require.Positive(t, s.Network.Reset())
		require.NoError(t, other.Create(t.Context(), settingsMap("b", "v"), nil))
		<-watch.Changed()
		update(t, watch, snap)
		assert.Len(t, snap.ConfigMaps, 2)
	})
}
