package prometheus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/prometheus"
)

func TestTheClustersOfAFleetHaveALabelAndLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, metrics: prometheus.New()}
		f, err := fleet.New(fleet.Options{Client: []kates.Option{kates.WithObserver(w.metrics)}})
		require.NoError(t, err)
		defer f.Close()
		for _, name := range []string{"eu", "us"} {
			require.NoError(t, f.Add(name, katestest.NewServer(t).Config))
		}
		time.Sleep(time.Minute)
		for _, name := range []string{"eu", "us"} {
			assert.Equal(t, 1.0, w.value("kates_clients", "cluster="+name))
			assert.Positive(t, w.value("kates_requests_total", "cluster="+name, "code=200"), "the fleet asks who is there")
		}
		require.True(t, f.Remove("us"))
		time.Sleep(time.Minute)
		assert.Equal(t, 1.0, w.value("kates_clients"))
		assert.Zero(t, w.value("kates_requests_total", "cluster=us"))
		f.Close()
		assert.Empty(t, w.gather())
	})
}
