package binaries

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSources returns a recipe whose two programs build in a second. They are main packages of
// one small module and print what the linker set.
func fakeSources(t *testing.T) recipe {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/fake\n\ngo 1.26\n",
		"go.sum": "",
		"kube-apiserver/main.go": "package main\n\nvar version = \"unset\"\n\n" +
			"func main() { print(\"apiserver \", version) }\n",
		"server/main.go": "package main\n\nfunc main() { print(\"etcd\") }\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return recipe{
		source:    dir,
		apiServer: target{pkg: "example.com/fake/kube-apiserver", version: "v1.36.3", builtAs: "kube-apiserver", name: nameAPIServer},
		etcd:      target{pkg: "example.com/fake/server", version: "v3.6.8", builtAs: "server", name: nameEtcd},
		toolchain: "go1.26.0",
		digest:    "00000000",
		ldflags:   []string{"-X", "main.version=v1.36.3"},
	}
}

func output(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	require.NoError(t, err)
	return string(out)
}

// entries returns the names in the cache without the lock files, which stay.
func entries(t *testing.T, cache string) []string {
	t.Helper()
	files, err := os.ReadDir(cache)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".lock") {
			names = append(names, f.Name())
		}
	}
	return names
}

func TestMissingBinariesAreBuiltOnceThenCached(t *testing.T) {
	r, cache := fakeSources(t), filepath.Join(t.TempDir(), "not", "there", "yet")
	var progress bytes.Buffer
	set, err := r.ensure(t.Context(), cache, &progress)
	require.NoError(t, err)
	require.Equal(t, "apiserver v1.36.3", output(t, set.APIServer))
	require.Equal(t, "etcd", output(t, set.Etcd))
	require.Equal(t, []string{r.key()}, entries(t, cache))
	require.Contains(t, progress.String(), "kube-apiserver v1.36.3 and etcd v3.6.8")

	progress.Reset()
	require.NoError(t, os.RemoveAll(r.source), "a cached entry needs no sources")
	again, err := r.ensure(t.Context(), cache, &progress)
	require.NoError(t, err)
	require.Equal(t, set, again)
	require.Empty(t, progress.String())
}

func TestAnEntryThatLacksABinaryIsBuiltAgain(t *testing.T) {
	r, cache := fakeSources(t), t.TempDir()
	set, err := r.ensure(t.Context(), cache, io.Discard)
	require.NoError(t, err)
	require.NoError(t, os.Remove(set.Etcd))
	set, err = r.ensure(t.Context(), cache, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "etcd", output(t, set.Etcd))
	require.Equal(t, []string{r.key()}, entries(t, cache))
}

// builds counts the announced builds.
type builds struct {
	mu sync.Mutex
	n  int
}

func (b *builds) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n += strings.Count(string(p), "building ")
	return len(p), nil
}

func TestOfConcurrentBuildersOneBuilds(t *testing.T) {
	r, cache := fakeSources(t), t.TempDir()
	var count builds
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			set, err := r.ensure(t.Context(), cache, &count)
			if err != nil || !set.complete() {
				t.Errorf("ensure: %v", err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, count.n)
	require.Equal(t, []string{r.key()}, entries(t, cache))
}

func TestAFailedBuildShowsTheCompilersMessageAndLeavesNothing(t *testing.T) {
	r, cache := fakeSources(t), t.TempDir()
	broken := filepath.Join(r.source, "server", "main.go")
	require.NoError(t, os.WriteFile(broken, []byte("package main\n\nfunc main() { undefinedName() }\n"), 0o644))
	var progress bytes.Buffer
	_, err := r.ensure(t.Context(), cache, &progress)
	require.ErrorContains(t, err, "build kube-apiserver v1.36.3 and etcd v3.6.8")
	require.Contains(t, progress.String(), "undefinedName")
	require.Empty(t, entries(t, cache))
}

func TestACancelledBuildLeavesNothing(t *testing.T) {
	r, cache := fakeSources(t), t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("no longer wanted")
	cancel(reason)
	_, err := r.ensure(ctx, cache, io.Discard)
	require.ErrorIs(t, err, reason)
	require.Empty(t, entries(t, cache))
}

func TestWaitingForAnotherBuilderEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "entry.lock")
	unlock, err := lock(t.Context(), path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lock(ctx, path)
	require.ErrorIs(t, err, context.Canceled)

	unlock()
	unlock, err = lock(t.Context(), path)
	require.NoError(t, err, "the lock is free again")
	unlock()
}

func TestThePinnedSourcesAreReadFromTheModule(t *testing.T) {
	source, err := sourceDir(t.Context())
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

func TestAnotherPinIsAnotherEntry(t *testing.T) {
	a := fakeSources(t)
	for name, change := range map[string]func(*recipe){
		"API server": func(r *recipe) { r.apiServer.version = "v1.36.4" },
		"etcd":       func(r *recipe) { r.etcd.version = "v3.6.9" },
		"toolchain":  func(r *recipe) { r.toolchain = "go1.26.1" },
		"go.sum":     func(r *recipe) { r.digest = "00000001" },
	} {
		b := a
		change(&b)
		require.NotEqual(t, a.key(), b.key(), name)
	}
}

func TestAVersionThatIsNoReleaseIsAnError(t *testing.T) {
	_, err := versionFlags("latest")
	require.Error(t, err)
	_, err = versionOf("k8s.io/kubernetes/cmd/kube-apiserver", map[string]string{"k8s.io/api": "v0.36.3"})
	require.Error(t, err)
}

func TestInstrumentationOfTheTestsStaysOutOfTheBuild(t *testing.T) {
	require.Equal(t, "-modcacherw -tags=x", withoutInstrumentation("-race -modcacherw --cover=true  -tags=x"))
}

func TestTheCacheFollowsTheEnvironment(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, step := range []struct{ variable, value, want string }{
		{"XDG_CACHE_HOME", "", filepath.Join(home, ".cache", "kates", "apiserver")},
		{"XDG_CACHE_HOME", filepath.Join(home, "xdg"), filepath.Join(home, "xdg", "kates", "apiserver")},
		{"KATES_CACHE", filepath.Join(home, "mine"), filepath.Join(home, "mine", "apiserver")},
	} {
		if step.variable == "XDG_CACHE_HOME" {
			t.Setenv("KATES_CACHE", "")
		}
		t.Setenv(step.variable, step.value)
		dir, err := cacheDir()
		require.NoError(t, err)
		require.Equal(t, step.want, dir)
	}
}
