package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func content(t *testing.T, s Store, name string) string {
	t.Helper()
	f, err := s.Load(t.Context(), name)
	require.NoError(t, err)
	all, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return string(all)
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestAFileIsReplacedAsAWholeOrNotAtAll(t *testing.T) {
	d := Dir{filepath.Join(t.TempDir(), "not", "there")}
	_, err := d.Load(t.Context(), "a.base")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, d.Save(t.Context(), "a.base", text("one")))
	assert.Equal(t, "one", content(t, d, "a.base"))
	no := errors.New("no")
	require.ErrorIs(t, d.Save(t.Context(), "a.base", func(w io.Writer) error {
		assert.NoError(t, text("two")(w))
		assert.Equal(t, "one", content(t, d, "a.base"), "while it is being written")
		return no
	}), no)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.Save(ctx, "a.base", text("three")), context.Canceled)
	assert.Equal(t, "one", content(t, d, "a.base"))
	all, err := os.ReadDir(d.Path)
	require.NoError(t, err)
	assert.Len(t, all, 1, "nothing is left of what was not finished")
	require.NoError(t, d.Save(t.Context(), "a.base", text("four")))
	assert.Equal(t, "four", content(t, d, "a.base"))
}

func TestNobodyElseCanReadTheFiles(t *testing.T) {
	d := Dir{filepath.Join(t.TempDir(), "folder")}
	require.NoError(t, d.Save(t.Context(), "a", text("one")))
	folder, err := os.Stat(d.Path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), folder.Mode().Perm())
	file, err := os.Stat(filepath.Join(d.Path, "a"+suffix))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), file.Mode().Perm())
}

func TestFilesThatNobodyWritesAnyMoreGoAndOthersStay(t *testing.T) {
	d := Dir{filepath.Join(t.TempDir(), "folder")}
	require.NoError(t, os.Mkdir(d.Path, 0o700))
	require.NoError(t, Dir{filepath.Join(d.Path, "none")}.Tidy(time.Now()))
	for _, name := range []string{"old", "new"} {
		require.NoError(t, d.Save(t.Context(), name, text(name)))
	}
	others := []string{"notes.txt", "x.1" + half, "x.2" + half}
	for _, name := range others {
		require.NoError(t, os.WriteFile(filepath.Join(d.Path, name), nil, 0o600))
	}
	age := func(name string, by time.Duration) {
		at := time.Now().Add(-by)
		require.NoError(t, os.Chtimes(filepath.Join(d.Path, name), at, at))
	}
	age("old"+suffix, unusedMost+time.Hour)
	age("notes.txt", unusedMost+time.Hour)
	age("x.1"+half, halfMost+time.Hour)
	require.NoError(t, d.Tidy(time.Now()))
	all, err := os.ReadDir(d.Path)
	require.NoError(t, err)
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"new" + suffix, "notes.txt", "x.2" + half}, names)
}

func TestAFolderThatCannotBeMadeIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.Error(t, Dir{path}.Save(t.Context(), "a", text("one")))
	assert.Error(t, Dir{path}.Tidy(time.Now()))
}
