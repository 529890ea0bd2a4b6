package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

type boundedMaps struct {
	Maps []*kates.ConfigMap `kates:"configmaps"`
}

// A client may hold 30 objects, and there are 50: nothing is shown of them, and the status says
// so. With a selector there is room. An object too many later takes nothing back, own writes are
// shown, and deletions make room.
func TestG1G5G8AClientPastItsBoundOfObjectsSaysSoAndHeals(t *testing.T) {
	for _, lists := range []kates.ListMode{kates.PagedLists, kates.StreamedLists} {
		t.Run(string(lists), func(t *testing.T) {
			t.Parallel()
			w, ns := newWire(t), namespace(t)
			other := w.client(t)
			configMap := func(i int) *kates.ConfigMap {
				m := &kates.ConfigMap{}
				m.Namespace, m.Name = ns, fmt.Sprintf("map-%02d", i)
				m.Labels = map[string]string{"room": "no"}
				if i < 30 {
					m.Labels["room"] = "yes"
				}
				return m
			}
			for i := range 50 {
				require.NoError(t, other.Create(t.Context(), configMap(i), nil))
			}
			c := w.client(t, kates.WithMaxObjects(30), kates.Tuning{Lists: lists, PageSize: 10})
			query := kates.Query{Name: "Maps", Namespace: ns, LabelSelector: "room"}
			s, err := kates.Watch[boundedMaps](t.Context(), c, query)
			require.NoError(t, err)
			const why = "all watches of this client together may hold 30: select fewer"
			saysSo := func() {
				t.Helper()
				require.Eventually(t, func() bool {
					err := s.Status().Err()
					return err != nil && strings.Contains(err.Error(), why)
				}, patience, 10*time.Millisecond)
			}
			saysSo()
			var snap boundedMaps
			changed, err := s.Update(t.Context(), &snap)
			require.NoError(t, err)
			assert.False(t, changed, "no snapshot has a part")
			assert.ErrorContains(t, s.Ready(), why)

			query.LabelSelector = "room=yes"
			require.NoError(t, s.Replace(t.Context(), query))
			awaitSnap(t, s, &snap, func(snap *boundedMaps) bool { return s.Ready() == nil && len(snap.Maps) == 30 })
			require.NoError(t, s.Status().Err())

			more := configMap(0)
			more.Name = "more"
			require.NoError(t, other.Create(t.Context(), more, nil))
			saysSo()
			_, err = s.Update(t.Context(), &snap)
			require.NoError(t, err)
			assert.Len(t, snap.Maps, 30, "nothing is taken back")
			assert.NoError(t, s.Ready())
			require.NoError(t, c.Delete(t.Context(), configMap(0), nil))
			_, err = s.Update(t.Context(), &snap)
			require.NoError(t, err)
			assert.Len(t, snap.Maps, 29, "own writes are shown")
			awaitSnap(t, s, &snap, func(snap *boundedMaps) bool {
				return len(snap.Maps) == 30 && snap.Maps[29].Name == "more"
			})
			require.NoError(t, s.Status().Err())
		})
	}
}
