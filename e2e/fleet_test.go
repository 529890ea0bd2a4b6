package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// One cluster after another fails, in every way, while all are written to. Each snapshot has the
// objects of all, and says who is missing. The others' changes arrive.
func TestG8AClusterThatFailsHarmsNoOther(t *testing.T) {
	t.Parallel()
	w := newFleetWorld(t)
	w.write()

	// Killed, and started again.
	began := time.Now()
	w.excuse("a")
	require.NoError(t, w.remotes["a"].server.Kill())
	m := w.missing("a").Missing[0]
	assert.True(t, m.Shown)
	assert.WithinRange(t, m.Since, began.Add(-patience), time.Now())
	w.arrives("b", "while-a-is-down")
	assert.Equal(t, m.Since, w.missing("a").Missing[0].Since, "since its last answer")
	require.NoError(t, w.remotes["a"].server.Start())
	w.missing()
	w.arrives("a", "after-a-was-down")

	// Hung: it accepts, and never answers.
	w.excuse("c")
	require.NoError(t, w.remotes["c"].server.Pause())
	w.arrives("a", "while-c-hangs")
	w.missing("c")
	w.arrives("b", "while-c-hangs-and-is-missing")
	require.NoError(t, w.remotes["c"].server.Resume())
	w.missing()
	w.arrives("c", "after-c-hung")

	// Half-open: its connections go silent, and new ones do as well.
	w.excuse("home")
	heal := w.remotes["home"].network.Blackhole()
	w.missing("home")
	w.arrives("a", "while-home-is-silent")
	heal()
	w.missing()

	// Slow: every byte is late, and the cluster is not missing.
	w.excuse()
	w.remotes["a"].network.Delay(300 * time.Millisecond)
	w.arrives("c", "while-a-is-slow")
	w.arrives("a", "slowly")
	w.remotes["a"].network.Delay(0)
	w.settle()
}

// Another cluster answers under a name: at the same address, and by a new configuration. And a
// cluster leaves, and comes again.
func TestG5AClusterOfAFleetIsReplacedByAnother(t *testing.T) {
	t.Parallel()
	w := newFleetWorld(t)
	w.write()
	former := w.fleet.Cluster("b")
	w.until("b is known", func(*fleetView) bool { return former.UID() != "" })
	uid := former.UID()

	w.excuse("b")
	w.mix("b") // its old watches may list again before the fleet asks who is there
	w.remotes["b"].pointTo(w.remotes["home"].server.Address())
	w.remotes["b"].network.Reset()
	<-former.Done()
	w.until("home's objects are shown as b's", w.of("b", "home"))
	w.missing()
	w.mix("")
	assert.NotEqual(t, uid, w.fleet.Cluster("b").UID())

	second := w.fleet.Cluster("b")
	w.remotes["b"].pointTo(w.remotes["b"].server.Address())
	config := w.remotes["b"].faulty()
	config.UserAgent = "rotated"
	require.NoError(t, w.fleet.Add("b", config))
	<-second.Done()
	w.until("b's own objects are shown", w.of("b", "b"))
	w.missing()
	third := w.fleet.Cluster("b")
	w.until("b is known", func(*fleetView) bool { return third.UID() == uid })

	w.mu.Lock()
	delete(w.steady, "b")
	w.mu.Unlock()
	assert.True(t, w.fleet.Remove("b"))
	v := w.until("b is gone", func(v *fleetView) bool { _, there := v.Maps["b"]; return !there })
	assert.Empty(t, v.Missing)
	w.arrives("c", "while-b-is-gone")
	require.NoError(t, w.fleet.Add("b", w.remotes["b"].faulty()))
	w.until("b is back", w.of("b", "b"))
	w.missing()
	w.settle()
}

// of reports whether a name has the objects of a cluster, of both kinds.
func (w *fleetWorld) of(name, cluster string) func(*fleetView) bool {
	return func(v *fleetView) bool {
		return slices.ContainsFunc(v.Maps[name], func(m *kates.ConfigMap) bool {
			return m.Name == "keep-0" && m.Data["of"] == cluster
		}) && slices.ContainsFunc(v.Secrets, func(s fleet.Object[*kates.Secret]) bool {
			return s.Cluster == name && s.Object.Name == "keep-0" && secrecy.Unmark(string(s.Object.Data["of"])) == cluster
		})
	}
}

func (w *fleetWorld) mix(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mixed = name
}

// All clusters are restored from a backup. No object vanishes that the backup has.
func TestG5AFleetRestoredFromABackupStartsNewHistories(t *testing.T) {
	t.Parallel()
	w := newFleetWorld(t)
	backup, err := w.c.Backup()
	require.NoError(t, err)
	w.remotes["home"].pass(t, 400) // so that the new history does not reach these versions at once
	for _, name := range remoteNames {
		w.arrives(name, "lost")
	}
	w.excuse(remoteNames...)
	w.mu.Lock()
	w.anew = true
	w.mu.Unlock()
	require.NoError(t, w.c.Restore(backup))
	w.until("what the backup lacks is gone", func(v *fleetView) bool {
		for key := range v.identities() {
			if key[len(key)-4:] == "lost" {
				return false
			}
		}
		return true
	})
	w.missing()
	w.mu.Lock()
	w.anew = false
	clear(w.newest)
	w.mu.Unlock()
	w.excuse()
	w.write()
	for _, name := range remoteNames {
		w.arrives(name, "after")
	}
	w.settle()
}
