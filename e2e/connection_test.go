package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

func TestTheClientOfAFactoryWorksAsItsFlagsSay(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	content, err := testCluster.AdminKubeconfig()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	factory := kates.NewClientFactory(flags)
	require.NoError(t, flags.Parse([]string{"--kubeconfig", file, "-n", ns}))
	client, err := factory()
	require.NoError(t, err)
	t.Cleanup(client.Close)
	cm := &corev1.ConfigMap{}
	cm.Name = "made"
	require.NoError(t, client.Create(t.Context(), cm, cm))
	assert.Equal(t, ns, cm.Namespace, "that of the flag")
	snapshots, err := kates.Watch[inputs](t.Context(), client, kates.Query{Name: "ConfigMaps", Namespace: ns})
	require.NoError(t, err)
	for snap, err := range snapshots.All(t.Context()) {
		require.NoError(t, err)
		assert.Len(t, snap.ConfigMaps, 1)
		break
	}

	// The same factory makes another client, and other flags say who asks.
	again, err := factory()
	require.NoError(t, err)
	t.Cleanup(again.Close)
	require.NoError(t, again.Get(t.Context(), cm, nil))
	flags = pflag.NewFlagSet("test", pflag.ContinueOnError)
	factory = kates.NewClientFactory(flags)
	require.NoError(t, flags.Parse([]string{"--kubeconfig", file, "-n", ns, "--as", "nobody"}))
	nobody, err := factory()
	require.NoError(t, err)
	t.Cleanup(nobody.Close)
	err = nobody.Get(t.Context(), cm, nil)
	assert.True(t, kates.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `User "nobody"`)
}

func TestTheServersVersionAndResourcesAreWhatItServes(t *testing.T) {
	t.Parallel()
	admin, err := kubernetes.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	client := newReplica(t, namespace(t)).client
	want, err := admin.Discovery().ServerVersion()
	require.NoError(t, err)
	got, err := client.ServerVersion()
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Regexp(t, `^v1\.\d+\.`, got.GitVersion)

	every, err := client.ServerResources()
	require.NoError(t, err)
	_, lists, err := admin.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	number := 0
	for _, list := range lists {
		number += len(list.APIResources)
	}
	assert.Len(t, every, number)
	preferred, err := client.ServerPreferredResources()
	require.NoError(t, err)
	served := func(all []kates.APIResource, group, name string) (versions []string) {
		for _, r := range all {
			if r.Group == group && r.Name == name {
				versions = append(versions, r.Version)
			}
		}
		return versions
	}
	assert.ElementsMatch(t, []string{"v1", "v2"}, served(every, "autoscaling", "horizontalpodautoscalers"))
	assert.Equal(t, []string{"v2"}, served(preferred, "autoscaling", "horizontalpodautoscalers"))
	assert.Equal(t, []string{"v1"}, served(preferred, "", "configmaps"))
	assert.Equal(t, []string{"v1"}, served(every, "", "pods/status"), "subresources, too")
	assert.Empty(t, served(preferred, "", "pods/status"))
}

// openConn is a connection that counts as open until it is closed.
type openConn struct {
	net.Conn
	once func()
}

func (c *openConn) Close() error {
	c.once()
	return c.Conn.Close()
}

func TestG11CloseLeavesNoConnectionToTheServer(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	for range 10 {
		var made, open atomic.Int64
		config := rest.CopyConfig(testCluster.Config)
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			made.Add(1)
			open.Add(1)
			return &openConn{conn, sync.OnceFunc(func() { open.Add(-1) })}, nil
		}
		client, err := tapped(kates.NewClientFromRESTConfig(config))
		require.NoError(t, err)
		snapshots, err := kates.Watch[inputs](t.Context(), client, kates.Query{Name: "ConfigMaps", Namespace: ns})
		require.NoError(t, err)
		<-snapshots.Changed()
		client.Close()
		assert.Zero(t, open.Load(), "of %d", made.Load())
	}
}
