package binaries

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePinnedVersionsAreRead(t *testing.T) {
	source, err := unpack(t.TempDir())
	require.NoError(t, err)
	r, err := readRecipe(t.Context(), source)
	require.NoError(t, err)
	require.Equal(t, "v1.36.3", r.apiServer.version)
	require.Equal(t, "v3.6.8", r.etcd.version)
	require.Contains(t, r.ldflags, versionVar+".gitVersion=v1.36.3")
	require.Contains(t, r.ldflags, versionVar+".gitMinor=36")
	for _, part := range []string{"kube-apiserver-v1.36.3", "etcd-v3.6.8", "go1.", runtime.GOARCH} {
		require.Contains(t, r.key(), part)
	}
	require.NotContains(t, r.key(), " ")
}

// pins is go.mod, as the go command reads it.
type pins struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
	Tool []struct{ Path string }
}

func readPins(t *testing.T) (all pins, dir string) {
	t.Helper()
	dir, err := unpack(t.TempDir())
	require.NoError(t, err)
	out, err := goCommand(t.Context(), dir, "mod", "edit", "-json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &all))
	return all, dir
}

func TestThePinsNeedNothingFromThisRepository(t *testing.T) {
	all, _ := readPins(t)
	require.NotEmpty(t, all.Require)
	for _, m := range all.Require {
		require.NotContains(t, m.Path, "kates")
	}
	require.NotEmpty(t, all.Replace)
	for _, r := range all.Replace {
		require.NotEmpty(t, r.New.Version, "%s is replaced by a folder", r.Old.Path)
	}
}

// Kubernetes names the modules of its own repository without a version that exists. The replace
// lines have to name the ones of the same release.
func TestAllModulesOfKubernetesAreOfOneRelease(t *testing.T) {
	all, _ := readPins(t)
	versions := map[string]string{}
	for _, m := range all.Require {
		versions[m.Path] = m.Version
	}
	release := versions["k8s.io/kubernetes"]
	require.Regexp(t, `^v1\.\d+\.\d+$`, release)
	staged := "v0" + strings.TrimPrefix(release, "v1")
	for _, r := range all.Replace {
		require.Equal(t, r.Old.Path, r.New.Path)
		require.Equal(t, staged, r.New.Version, r.Old.Path)
	}
	require.Contains(t, versions["go.etcd.io/etcd/server/v3"], "v3.")
	for path, version := range versions {
		if strings.HasPrefix(path, "go.etcd.io/etcd/") {
			require.Equal(t, versions["go.etcd.io/etcd/server/v3"], version, path)
		}
	}
}

// A build with -mod=readonly fails if a sum is missing, but only on a machine that lacks the
// module.
func TestThePinsHaveTheSumOfEachModule(t *testing.T) {
	all, _ := readPins(t)
	replaced := map[string]string{}
	for _, r := range all.Replace {
		replaced[r.Old.Path] = r.New.Version
	}
	sums := map[string]bool{}
	for line := range strings.Lines(string(goSum)) {
		fields := strings.Fields(line)
		require.Len(t, fields, 3, line)
		require.Regexp(t, regexp.MustCompile(`^h1:[A-Za-z0-9+/]{43}=$`), fields[2])
		sums[fields[0]+" "+fields[1]] = true
	}
	for _, m := range all.Require {
		version := m.Version
		if v := replaced[m.Path]; v != "" {
			version = v
		}
		require.True(t, sums[m.Path+" "+version+"/go.mod"], "%s %s", m.Path, version)
	}
	for _, tool := range all.Tool {
		require.Contains(t, []string{"k8s.io/kubernetes/cmd/kube-apiserver", "go.etcd.io/etcd/server/v3"}, tool.Path)
	}
	require.Len(t, all.Tool, 2)
}

func TestTheTextIsOfThisVersion(t *testing.T) {
	require.True(t, strings.HasPrefix(digest(goMod, goSum), "2aeae099"),
		"if the pins were changed on purpose: each machine builds for minutes; set the new digest here")
}

func TestPinsThatSomebodyHasChangedInTheCacheAreWrittenAgain(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "not", "there")
	dir, err := unpack(cache)
	require.NoError(t, err)
	path := filepath.Join(dir, "go.sum")
	require.NoError(t, os.WriteFile(path, goSum[:100], 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, "go.mod")))
	again, err := unpack(cache)
	require.NoError(t, err)
	require.Equal(t, dir, again)
	for name, want := range map[string][]byte{"go.mod": goMod, "go.sum": goSum} {
		have, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(have))
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2, "nothing else is left there")
}

func TestACacheThatIsAFileIsAnErrorThatNamesTheVariable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	t.Setenv("KATES_CACHE", path)
	_, err := Ensure(t.Context(), t.Output())
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "not a directory")
	require.ErrorContains(t, err, "KATES_CACHE")
	require.False(t, errors.Is(err, fs.ErrNotExist))
}
