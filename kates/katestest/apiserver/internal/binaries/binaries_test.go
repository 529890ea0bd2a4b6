package binaries

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

func TestABuildNeedsNoCCompiler(t *testing.T) {
	goTool, err := exec.LookPath("go")
	require.NoError(t, err)
	path := t.TempDir()
	require.NoError(t, os.Symlink(goTool, filepath.Join(path, "go")))
	t.Setenv("PATH", path)
	t.Setenv("CC", "no-such-compiler")
	t.Setenv("CGO_ENABLED", "1")
	r := fakeSources(t)
	usesC := filepath.Join(r.source, "server", "main.go") // with cgo, package net does
	require.NoError(t, os.WriteFile(usesC, []byte("package main\n\nimport \"net\"\n\nfunc main() { print(net.IPv4len) }\n"), 0o644))
	set, err := r.ensure(t.Context(), t.TempDir(), io.Discard)
	require.NoError(t, err)
	require.Equal(t, "4", output(t, set.Etcd))
}

func TestWithoutTheGoCommandTheErrorSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("KATES_CACHE", t.TempDir())
	_, err := Ensure(t.Context(), "", io.Discard)
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.ErrorContains(t, err, "put the folder of the go command into PATH")
}

func TestWhatAKilledBuilderLeftIsRemovedByTheNextOne(t *testing.T) {
	r, cache := fakeSources(t), filepath.Join(t.TempDir(), "odd [name]*")
	left := filepath.Join(cache, ".building-"+r.key()+"-123")
	other := filepath.Join(cache, ".building-other-123")
	for _, dir := range []string{left, other} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "kube-apiserver"), []byte("half"), 0o755))
	}
	_, err := r.ensure(t.Context(), cache, io.Discard)
	require.NoError(t, err)
	require.NoDirExists(t, left)
	require.DirExists(t, other, "it may be used: it is of another entry")
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
	require.ErrorContains(t, err, "undefinedName")
	require.Contains(t, progress.String(), "undefinedName", "at once")
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

func TestFlagsOfTheTestsStayOutOfTheBuild(t *testing.T) {
	require.Equal(t, "-modcacherw --p=1", keptFlags("-race -modcacherw --cover=true  -tags=x -modfile=other.mod -mod=mod --p=1"))
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
