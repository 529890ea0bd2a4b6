package apiserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheHistoryHasEveryChangeInItsOrderAndSaysWhatIsCompacted(t *testing.T) {
	t.Parallel()
	c := StartAPIServer(t, WithFlags("storage-media-type=application/json"))
	in := clientset(t, c.Config).CoreV1().ConfigMaps(metav1.NamespaceDefault)
	made, err := in.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	made.Data = map[string]string{"is": "changed"}
	_, err = in.Update(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, in.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	newest, err := c.Revision(t.Context())
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	var told []string
	var lastRevision int64
	require.NoError(t, c.History(ctx, 1, func(change Change) {
		assert.GreaterOrEqual(t, change.Revision, lastRevision)
		lastRevision = change.Revision
		if strings.HasSuffix(change.Key, "/configmaps/default/a") {
			var cm corev1.ConfigMap
			if change.Value != nil {
				require.NoError(t, json.Unmarshal(change.Value, &cm))
			}
			told = append(told, cm.Name+cm.Data["is"])
		}
		if lastRevision >= newest {
			cancel()
		}
	}))
	assert.Equal(t, []string{"a", "achanged", ""}, told)
	assert.GreaterOrEqual(t, lastRevision, newest)

	require.NoError(t, c.Compact(t.Context()))
	still, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	require.ErrorContains(t, c.History(still, 1, func(Change) {}), "compacted")

	backup, err := c.Backup()
	require.NoError(t, err)
	require.DirExists(t, backup.dir)
	require.NoError(t, backup.Remove())
	require.NoDirExists(t, backup.dir)
}
