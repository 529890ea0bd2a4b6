package kates_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// manyMaps are as many configmaps, each with a label that says whether its number is even.
func manyMaps(count int) (all []kates.Object) {
	for i := range count {
		m := configMap(fmt.Sprintf("%02d", i))
		m.Labels = map[string]string{"even": fmt.Sprint(i%2 == 0)}
		all = append(all, m)
	}
	return all
}

func TestG1G8AClientPastItsBoundShowsNoPartSaysSoAndHealsOnTheFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		c := katestest.New(t, katestest.WithObjects(manyMaps(50)...), katestest.WithClientOptions(
			kates.WithMaxObjects(30), kates.WithLogger(slog.New(slog.NewTextHandler(out, nil))),
		)).Client
		s, err := kates.Watch[maps](t.Context(), c)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		var snap maps
		changed, err := s.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.False(t, changed)
		assert.Nil(t, snap.ConfigMaps)
		const why = "all watches of this client together may hold 30: " +
			"select fewer by a narrower selector, or raise the bound (WithMaxObjects)"
		assert.ErrorContains(t, s.Ready(), why)
		assert.ErrorContains(t, c.Status().Err(), why)
		assert.Equal(t, 1, out.count("level=ERROR msg=\"cannot list, will keep trying\""), "logged once")

		for _, m := range manyMaps(20) {
			require.NoError(t, c.Delete(t.Context(), m, nil))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		changed, err = s.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.True(t, changed)
		assert.Len(t, snap.ConfigMaps, 30)
		require.NoError(t, c.Status().Err())

		// The event of an own write is one too many: the write is shown all the same.
		mine := configMap("mine")
		require.NoError(t, c.Create(t.Context(), mine, nil))
		_, err = s.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Len(t, snap.ConfigMaps, 31)
		time.Sleep(time.Minute)
		assert.ErrorContains(t, s.Status().Err(), why)
		assert.NoError(t, s.Ready())
		require.NoError(t, c.Delete(t.Context(), configMap("30"), nil))
		time.Sleep(time.Minute)
		_, err = s.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Len(t, snap.ConfigMaps, 30)
		assert.NoError(t, s.Status().Err())
		s.Close()
	})
}
