package apiserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestServersOfAClusterAreEndedAddedAndTakenBackInTime(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context(), WithFlags("request-timeout=2s"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	in := clientset(t, c.Config).CoreV1().ConfigMaps(metav1.NamespaceDefault)
	write := func(name string) {
		_, err := in.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	names := func(config *rest.Config) (all []string) {
		require.Eventually(t, func() bool { // it has to reconnect to etcd
			list, err := clientset(t, config).CoreV1().ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
			all = nil
			for _, o := range list.Items {
				all = append(all, o.Name)
			}
			return err == nil
		}, startTimeout, 10*time.Millisecond)
		return all
	}
	write("a")
	backup, err := c.Backup()
	require.NoError(t, err)
	write("b")
	written, err := c.Revision(t.Context())
	require.NoError(t, err)

	w, err := in.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	require.NoError(t, c.Server().Kill())
	for range w.ResultChan() { // until it ends
	}
	_, err = in.List(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	require.NoError(t, c.KillEtcd())
	require.NoError(t, c.StartEtcd())

	second, err := c.AddServer("watch-cache=false")
	require.NoError(t, err)
	other := rest.CopyConfig(c.Config)
	other.Host = second.Address()
	require.Equal(t, []string{"a", "b"}, names(other))
	require.NoError(t, second.Stop())
	require.NoError(t, second.Stop(), "it does not run")
	require.NoError(t, c.Compact(t.Context()))

	require.NoError(t, c.Server().Start())
	address := c.Server().Address()
	require.NoError(t, c.Restore(backup))
	require.Equal(t, address, c.Server().Address())
	require.Equal(t, []string{"a"}, names(c.Config))
	restored, err := c.Revision(t.Context())
	require.NoError(t, err)
	require.Less(t, restored, written+10, "starting a server writes a little")
}
