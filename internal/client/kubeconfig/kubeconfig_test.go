package kubeconfig

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInClusterNeedsTheAddressAndAToken(t *testing.T) {
	folder := t.TempDir()
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	assert.False(t, InPod(getenv, folder))
	env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] = "10.0.0.1", "443"
	assert.False(t, InPod(getenv, folder), "no token")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "token"), 0o700))
	assert.False(t, InPod(getenv, folder), "the token is a folder")
	require.NoError(t, os.Remove(filepath.Join(folder, "token")))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "token"), []byte("t"), 0o600))
	assert.True(t, InPod(getenv, folder))
	delete(env, "KUBERNETES_SERVICE_PORT")
	assert.False(t, InPod(getenv, folder))
}
