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

// digests are of the texts of all versions. Whoever changes a text changes the digest here: each
// machine then builds for minutes.
var digests = map[string]string{
	"1.34": "c39518ee",
	"1.35": "f209b114",
	"1.36": "2aeae099",
	"1.37": "dfe96931",
}

// ofEach runs a test of each pin.
func ofEach(t *testing.T, test func(t *testing.T, p pin)) {
	t.Helper()
	for _, version := range Versions() {
		t.Run(version, func(t *testing.T) {
			p, err := choose(version)
			require.NoError(t, err)
			test(t, p)
		})
	}
}

func TestVersionsAreSortedByTheirNumbers(t *testing.T) {
	versions := Versions()
	require.Equal(t, []string{"1.34", "1.35", "1.36", "1.37"}, versions)
	require.Positive(t, minor("1.100")-minor("1.99"))
}

func TestTheNewestVersionIsChosenUnlessTheProgramOrTheEnvironmentSaysAnother(t *testing.T) {
	newest := Versions()[len(Versions())-1]
	for _, c := range []struct{ argument, variable, want string }{
		{"", "", newest},
		{"", "1.34", "1.34"},
		{"1.35", "", "1.35"},
		{"1.35", "1.34", "1.35"},
		{"1.35", "0.1", "1.35"},
	} {
		t.Setenv(VariableKubernetes, c.variable)
		p, err := choose(c.argument)
		require.NoError(t, err)
		require.Equal(t, c.want, p.version)
		require.Contains(t, string(p.goMod), "\tk8s.io/kubernetes v"+c.want+".")
	}
}

func TestAnUnknownVersionIsAnErrorThatSaysWhichThereAre(t *testing.T) {
	for _, unknown := range []string{"1.1", "v1.36", "1.36.3", "36", "latest", "../1.36", "1.36/", " 1.36", "."} {
		t.Setenv(VariableKubernetes, "")
		_, err := Ensure(t.Context(), unknown, t.Output())
		require.ErrorContains(t, err, `"`+unknown+`"`)
		require.ErrorContains(t, err, strings.Join(Versions(), ", "))
		require.NotContains(t, err.Error(), VariableKubernetes)
		t.Setenv(VariableKubernetes, unknown)
		_, err = Ensure(t.Context(), "", t.Output())
		require.ErrorContains(t, err, VariableKubernetes+`: there is no Kubernetes "`+unknown+`"`)
		require.ErrorContains(t, err, strings.Join(Versions(), ", "))
	}
}

func TestThePinnedVersionsAreRead(t *testing.T) {
	keys := map[string]bool{}
	ofEach(t, func(t *testing.T, p pin) {
		source, err := p.unpack(t.TempDir())
		require.NoError(t, err)
		r, err := readRecipe(t.Context(), p, source)
		require.NoError(t, err)
		require.Regexp(t, `^v`+regexp.QuoteMeta(p.version)+`\.\d+$`, r.apiServer.version, "the folder says which version it has")
		require.Regexp(t, `^v3\.\d+\.\d+$`, r.etcd.version)
		require.Contains(t, r.ldflags, versionVar+".gitVersion="+r.apiServer.version)
		require.Contains(t, r.ldflags, versionVar+".gitMinor="+strings.TrimPrefix(p.version, "1."))
		for _, part := range []string{"kube-apiserver-" + r.apiServer.version, "etcd-" + r.etcd.version, "go1.", runtime.GOARCH, p.digest()} {
			require.Contains(t, r.key(), part)
		}
		require.NotContains(t, r.key(), " ")
		keys[r.key()] = true
	})
	require.Len(t, keys, len(Versions()), "each version has a cache entry of its own")
}

// module is go.mod, as the go command reads it.
type module struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
	Tool []struct{ Path string }
}

func readModule(t *testing.T, p pin) (all module) {
	t.Helper()
	dir, err := p.unpack(t.TempDir())
	require.NoError(t, err)
	out, err := goCommand(t.Context(), dir, "mod", "edit", "-json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &all))
	return all
}

func TestThePinsNeedNothingFromThisRepository(t *testing.T) {
	ofEach(t, func(t *testing.T, p pin) {
		all := readModule(t, p)
		require.NotEmpty(t, all.Require)
		for _, m := range all.Require {
			require.NotContains(t, m.Path, "kates")
		}
		require.NotEmpty(t, all.Replace)
		for _, r := range all.Replace {
			require.NotEmpty(t, r.New.Version, "%s is replaced by a folder", r.Old.Path)
		}
	})
}

// Kubernetes names the modules of its own repository without a version that exists. The replace
// lines have to name the ones of the same release.
func TestAllModulesOfKubernetesAreOfOneRelease(t *testing.T) {
	ofEach(t, func(t *testing.T, p pin) {
		all := readModule(t, p)
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
	})
}

// A build with -mod=readonly fails if a sum is missing, but only on a machine that lacks the
// module.
func TestThePinsHaveTheSumOfEachModule(t *testing.T) {
	ofEach(t, func(t *testing.T, p pin) {
		all := readModule(t, p)
		replaced := map[string]string{}
		for _, r := range all.Replace {
			replaced[r.Old.Path] = r.New.Version
		}
		sums := map[string]bool{}
		for line := range strings.Lines(string(p.goSum)) {
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
	})
}

func TestTheTextsAreThoseOfTheirDigests(t *testing.T) {
	require.Len(t, digests, len(Versions()))
	ofEach(t, func(t *testing.T, p pin) {
		require.Equal(t, digests[p.version], p.digest(),
			"if the text was changed on purpose: each machine builds for minutes; set the new digest here")
	})
}

func TestPinsThatSomebodyHasChangedInTheCacheAreWrittenAgain(t *testing.T) {
	p, err := choose("1.36")
	require.NoError(t, err)
	cache := filepath.Join(t.TempDir(), "not", "there")
	dir, err := p.unpack(cache)
	require.NoError(t, err)
	path := filepath.Join(dir, "go.sum")
	require.NoError(t, os.WriteFile(path, p.goSum[:100], 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, "go.mod")))
	again, err := p.unpack(cache)
	require.NoError(t, err)
	require.Equal(t, dir, again)
	for name, want := range map[string][]byte{"go.mod": p.goMod, "go.sum": p.goSum} {
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
	_, err := Ensure(t.Context(), "", t.Output())
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "not a directory")
	require.ErrorContains(t, err, "KATES_CACHE")
	require.False(t, errors.Is(err, fs.ErrNotExist))
}
