package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// A root in the home cluster owns objects in two clusters. One of them is down while the root
// changes, and again while it is deleted.
func TestARootOwnsObjectsInOtherClusters(t *testing.T) {
	t.Parallel()
	w := newPlacingWorld(t, "b")
	root := w.newRoot("x y")
	w.has("home", "x", "y")
	w.has("b", "x", "y")
	_, err := w.direct["b"].CoreV1().Secrets("default").Create(t.Context(), secretOf("others"), metav1.CreateOptions{})
	require.NoError(t, err)
	meddle := func(on bool) {
		w.placer.mu.Lock()
		defer w.placer.mu.Unlock()
		w.placer.others = on
	}
	meddle(true)
	require.NoError(t, w.direct["b"].CoreV1().Secrets("default").Delete(t.Context(), "y", metav1.DeleteOptions{}))
	w.has("b", "others", "x", "y") // it is made again
	meddle(false)

	down := func() {
		require.NoError(t, w.servers["b"].Kill())
		w.becomesStale("b")
	}
	down()
	w.wants(root, "y z")
	w.has("home", "y", "z")
	require.NoError(t, w.servers["b"].Start())
	w.has("b", "others", "y", "z")

	down()
	maps := w.direct["home"].CoreV1().ConfigMaps("default")
	require.NoError(t, maps.Delete(t.Context(), "root", metav1.DeleteOptions{}))
	w.has("home")
	now, err := maps.Get(t.Context(), "root", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{"example.com/parts"}, now.Finalizers, "b has not removed anything")
	require.NoError(t, w.servers["b"].Start())
	w.has("b", "others")
	require.Eventually(t, func() bool {
		_, err := maps.Get(t.Context(), "root", metav1.GetOptions{})
		return kates.IsNotFound(err)
	}, patience, 20*time.Millisecond)
}

// A cluster accepts connections and never answers, while the root changes what it wants. Nothing
// is asked to be deleted there: on its return, it would do what it was asked before. What it has
// is known again then, and pruned.
func TestNothingIsPrunedInAClusterThatHangs(t *testing.T) {
	t.Parallel()
	w := newPlacingWorld(t, "b", "c")
	root := w.newRoot("x y")
	for _, name := range []string{"home", "b", "c"} {
		w.has(name, "x", "y")
	}
	require.NoError(t, w.servers["b"].Pause())
	t.Cleanup(func() { assert.NoError(t, w.servers["b"].Resume()) }) // a server that is paused does not end
	w.becomesStale("b")
	began := time.Now()
	w.wants(root, "y z")
	w.has("home", "y", "z")
	w.has("c", "y", "z")
	t.Logf("the others after %s", time.Since(began))
	// A reconcile that knows b to be stale has come to its end there.
	require.Eventually(t, func() bool {
		w.placer.mu.Lock()
		defer w.placer.mu.Unlock()
		return errors.Is(w.placer.failed["b"], fleet.ErrNotPruned)
	}, patience, 20*time.Millisecond)
	deletions := katestest.Match{Verb: "delete", Resource: "secrets"}
	assert.Empty(t, w.faults["b"].Requests(deletions), "sent to a cluster that hangs")
	require.NoError(t, w.servers["b"].Resume())
	w.has("b", "y", "z")
	assert.NotEmpty(t, w.faults["b"].Requests(deletions))
}
