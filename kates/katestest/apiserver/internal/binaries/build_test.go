package binaries

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// addLibrary makes both programs of r import a package whose text no build cache has.
func addLibrary(t *testing.T, r recipe) {
	t.Helper()
	path := filepath.Join(r.source, "library", "library.go")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "package library\n\nconst Text = %q\n", t.TempDir()), 0o644))
	for _, program := range []string{"kube-apiserver", "server"} {
		path := filepath.Join(r.source, program, "main.go")
		require.NoError(t, os.WriteFile(path,
			[]byte("package main\n\nimport \"example.com/fake/library\"\n\nfunc main() { print(library.Text) }\n"), 0o644))
	}
}

// progressOf builds r and returns the numbers of the first line that has them.
func progressOf(t *testing.T, r recipe) (built, total int) {
	t.Helper()
	var progress bytes.Buffer
	_, err := r.ensure(t.Context(), t.TempDir(), &progress)
	require.NoError(t, err)
	line := regexp.MustCompile(`\d+ of \d+ packages built`).FindString(progress.String())
	_, err = fmt.Sscanf(line, "%d of %d packages built", &built, &total)
	require.NoError(t, err, progress.String())
	return built, total
}

func TestWhatTheBuildCacheHasCountsAsBuilt(t *testing.T) {
	r := fakeSources(t)
	_, before := progressOf(t, r) // compiles the standard library's packages
	addLibrary(t, r)
	built, total := progressOf(t, r)
	require.Equal(t, before+1, total)
	require.Equal(t, 3, total-built, "the library and two programs are to be built")
	built, total = progressOf(t, r)
	require.Equal(t, 2, total-built, "the programs are linked each time")
}

func TestWhoWaitsCanReadHowMuchOfHowMuchIsBuilt(t *testing.T) {
	goTool, err := exec.LookPath("go")
	require.NoError(t, err)
	r, cache, path := fakeSources(t), t.TempDir(), t.TempDir()
	file, seen := r.set(cache).Dir+".lock", filepath.Join(path, "seen")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != build ] || cp '%s' '%s' || exit 1\nexec '%s' \"$@\"\n", file, seen, goTool)
	require.NoError(t, os.WriteFile(filepath.Join(path, "go"), []byte(script), 0o700))
	t.Setenv("PATH", path+string(filepath.ListSeparator)+os.Getenv("PATH"))
	_, err = r.ensure(t.Context(), cache, io.Discard)
	require.NoError(t, err)

	f, err := os.Open(seen)
	require.NoError(t, err)
	defer f.Close()
	by := readHolder(f)
	require.Equal(t, os.Getpid(), by.PID)
	require.Regexp(t, `^\d+ of \d+ packages built$`, by.Progress)
	require.True(t, strings.HasSuffix(by.String(), by.Progress), by.String())
}
