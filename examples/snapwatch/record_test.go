package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// content is a recording, unpacked.
func content(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(b)
}

func TestARecordingIsReplayedWithoutACluster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		file := filepath.Join(t.TempDir(), "shop.recording")
		r := c.start("deploy,secrets,svc", "-l", "app!=x", "-record", file)
		settle()
		c.create(api(t, "api"))
		settle()
		c.remove("v1", "Service", "web")
		settle()
		assert.Zero(t, r.stop(nil))
		live := r.out.take()
		assert.NotContains(t, content(t, file), hunter64, "the data of Secrets stays out of the file")

		// No kubeconfig, no kinds: all that was recorded, at the same times.
		begin := time.Now()
		code, out, err := c.run("-replay", file)
		assert.Zero(t, code, err)
		assert.Equal(t, withoutTimes(live), withoutTimes(out))
		assert.GreaterOrEqual(t, time.Since(begin), 2*time.Second)

		begin = time.Now()
		code, out, err = c.run("--replay", file, "deployments", "--speed=fastest", "--once", "-o", "name")
		assert.Zero(t, code, err)
		assert.Contains(t, out, "deployment.apps/web\n")
		assert.Less(t, time.Since(begin), 2*time.Second)

		code, out, _ = c.run("--replay", file, "svc", "--for=delete", "--timeout=1h")
		assert.Zero(t, code)
		assert.Empty(t, out)
		code, _, err = c.run("--replay", file, "deploy", "--for=delete", "--timeout=1h")
		assert.Equal(t, 1, code)
		assert.Contains(t, err, "error: the replay ends without delete: in the last snapshot these do not satisfy it:\n")
		assert.Contains(t, err, "  deployment.apps/api in prod: it exists")

		code, _, err = c.run("--replay", file, "pods")
		assert.Equal(t, 1, code)
		assert.Contains(t, err, "the recording has no list and no watch of such kinds")
	})
}

// withoutTimes drops the times at which snapshots were shown.
func withoutTimes(lines string) (all []string) {
	for line := range strings.Lines(lines) {
		all = append(all, line[strings.Index(line, "#"):])
	}
	return all
}

func TestARecordingOfTheRepositoryIsPlayed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		code, out, err := c.run("--replay", "../../testdata/recordings/drain.recording", "--interval=1ms")
		assert.Zero(t, code, err)
		assert.Contains(t, out, "#1 deployments 1, nodes 3, pods 12, replicasets 1\n")
		code, out, _ = c.run("--replay", "../../testdata/recordings/upgrade.recording", "gadgets", "--speed", "4")
		assert.Zero(t, code)
		assert.Contains(t, out, "gadgets 10 (~10)")
	})
}

func TestAFileThatIsNoRecordingIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(file, []byte("no recording"), 0o600))
		code, _, err := newCluster(t).run("--replay", file)
		assert.Equal(t, 1, code)
		assert.Contains(t, err, "this is not a recording")
	})
}

func TestOnlyListsAndWatchesOfObjectsAreReplayed(t *testing.T) {
	for path, wanted := range map[string]string{
		"/api/v1/pods": "pods", "/api/v1/namespaces": "namespaces", "/api/v1/namespaces/a/pods": "pods in a",
		"/apis/apps/v1/namespaces/a/deployments": "deployments.apps in a", "/apis/apps/v1/deployments": "deployments.apps",
		"/api": "", "/apis": "", "/api/v1": "", "/apis/apps/v1": "", "/version": "", "/openapi/v3/apis/apps/v1": "",
		"/api/v1/namespaces/a": "", "/api/v1/namespaces/a/pods/b": "", "/api/v1/nodes/a": "",
	} {
		r, ok := listed(path, "", "")
		got := ""
		if ok {
			got = strings.TrimSuffix(r.resource.String()+" in "+r.namespace, " in ")
		}
		assert.Equal(t, wanted, got, path)
	}
}
