//go:build unix

package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// owned is what a file system says of a file of another user.
type owned struct {
	fs.FileInfo
	by   uint32
	of   uint32
	mode fs.FileMode
}

func (o owned) Sys() any          { return &syscall.Stat_t{Uid: o.by, Gid: o.of} }
func (o owned) Mode() fs.FileMode { return o.mode }

// inGroups makes the groups of the process these, until the test ends.
func inGroups(t *testing.T, groups ...int) {
	before := ownGroups
	t.Cleanup(func() { ownGroups = before })
	ownGroups = func() []int { return groups }
}

func TestWhatOtherUsersMayWriteOrHaveMadeIsRefused(t *testing.T) {
	me := uint32(os.Geteuid())
	for _, c := range []struct {
		by   uint32
		mode fs.FileMode
		ok   bool
	}{
		{me, fs.ModeDir | 0o700, true}, {me, fs.ModeDir | 0o755, true}, {0, fs.ModeDir | 0o755, true},
		{me, fs.ModeDir | 0o775, false}, {me, fs.ModeDir | 0o757, false}, {0, fs.ModeDir | fs.ModeSticky | 0o777, false},
		{me + 1, fs.ModeDir | 0o700, false}, {me, 0o600, true}, {me, 0o620, false}, {me + 1, 0o600, false},
		{me, fs.ModeSymlink | 0o777, true}, {me + 1, fs.ModeSymlink | 0o777, false},
	} {
		err := own("path", owned{by: c.by, mode: c.mode}, nil)
		assert.Equal(t, c.ok, err == nil, "%d %s: %v", c.by, c.mode, err)
		if err != nil {
			assert.ErrorContains(t, err, "name a folder of the program's own")
		}
	}
}

func TestAFolderThatOtherUsersMayWriteIsNeitherReadNorWrittenNorTidied(t *testing.T) {
	d := Dir{filepath.Join(t.TempDir(), "folder")}
	require.NoError(t, d.Save(t.Context(), "a.base", text("one")))
	old := time.Now().Add(-2 * unusedMost)
	require.NoError(t, os.Chtimes(filepath.Join(d.Path, "a.base"+suffix), old, old))
	for _, mode := range []fs.FileMode{0o770, 0o777, 0o707, 0o777 | fs.ModeSticky} {
		require.NoError(t, os.Chmod(d.Path, mode))
		_, err := d.Load(t.Context(), "a.base")
		assert.ErrorContains(t, err, "other users may write it")
		err = d.Save(t.Context(), "b.base", func(io.Writer) error { t.Error("written"); return nil })
		assert.ErrorContains(t, err, "chmod go-w")
		assert.ErrorContains(t, d.Tidy(time.Now()), "chmod go-w")
	}
	within := Dir{filepath.Join(d.Path, "own")}
	require.NoError(t, within.Save(t.Context(), "a.base", text("two")), "what the error says works")
	require.NoError(t, os.Chmod(d.Path, 0o700))
	assert.Equal(t, "one", content(t, d, "a.base"))
}

func TestAFileIsNeitherALinkNorAPipeNorWritableByOthers(t *testing.T) {
	d := Dir{filepath.Join(t.TempDir(), "folder")}
	require.NoError(t, d.Save(t.Context(), "real", text("one")))
	at := func(name string) string { return filepath.Join(d.Path, name+suffix) }
	require.NoError(t, os.Symlink("real"+suffix, at("within")))
	require.NoError(t, os.Symlink("/etc/passwd", at("outside")))
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Mkdir(at("folder"), 0o700))
	for _, name := range []string{"within", "outside", "pipe", "folder"} {
		_, err := d.Load(t.Context(), name)
		assert.ErrorContains(t, err, "it is no file", name)
	}
	require.NoError(t, os.Chmod(at("real"), 0o666))
	_, err := d.Load(t.Context(), "real")
	assert.ErrorContains(t, err, "other users may write it")
	require.NoError(t, d.Save(t.Context(), "outside", text("two")), "a link is replaced and not followed")
	assert.Equal(t, "two", content(t, d, "outside"))
	link := Dir{filepath.Join(t.TempDir(), "link")}
	require.NoError(t, os.Symlink(d.Path, link.Path))
	assert.Equal(t, "two", content(t, link, "outside"), "a link of the program's own to a folder of its own")
	require.NoError(t, os.Chmod(d.Path, 0o777))
	_, err = link.Load(t.Context(), "outside")
	assert.ErrorContains(t, err, "other users may write it")
}

func TestOnlyTheGroupOfAVolumeMayWrite(t *testing.T) {
	const mine, alien, setgid = 7, 8, fs.ModeDir | fs.ModeSetgid
	inGroups(t, 5, mine)
	me := uint32(os.Geteuid())
	volume := owned{by: me, of: mine, mode: setgid | 0o770}
	for _, c := range []struct {
		what owned
		in   fs.FileInfo
		ok   bool
	}{
		{volume, nil, true},
		{owned{by: me, of: mine, mode: setgid | 0o775}, nil, true},
		{owned{by: me, of: 5, mode: setgid | 0o770}, nil, true},
		{owned{by: me, of: alien, mode: setgid | 0o770}, nil, false},
		{owned{by: me, of: 0, mode: setgid | 0o770}, nil, false},
		{owned{by: me, of: mine, mode: fs.ModeDir | 0o770}, nil, false},
		{owned{by: me, of: mine, mode: fs.ModeDir | 0o775}, nil, false},
		{owned{by: me, of: mine, mode: setgid | 0o777}, nil, false},
		{owned{by: me, of: mine, mode: setgid | 0o772}, nil, false},
		{owned{by: me, of: mine, mode: setgid | 0o702}, nil, false},
		{owned{by: me + 1, of: mine, mode: setgid | 0o770}, nil, false},
		{owned{by: 0, of: mine, mode: setgid | 0o770}, nil, me == 0},
		{owned{by: me, of: mine, mode: fs.ModeSetgid | 0o660}, nil, false},

		{owned{by: me, of: mine, mode: 0o660}, volume, true},
		{owned{by: me, of: 5, mode: 0o660}, volume, false},
		{owned{by: me, of: alien, mode: 0o660}, volume, false},
		{owned{by: me, of: mine, mode: 0o666}, volume, false},
		{owned{by: me, of: mine, mode: 0o602}, volume, false},
		{owned{by: me + 1, of: mine, mode: 0o660}, volume, false},
		{owned{by: 0, of: mine, mode: 0o660}, volume, me == 0},
		{owned{by: me, of: mine, mode: 0o660}, owned{by: me, of: mine, mode: fs.ModeDir | 0o700}, false},
		{owned{by: me, of: mine, mode: 0o660}, owned{by: me, of: mine, mode: setgid | 0o750}, false},
		{owned{by: me, of: alien, mode: 0o660}, owned{by: me, of: alien, mode: setgid | 0o770}, false},
		{owned{by: me, of: mine, mode: 0o660}, owned{by: 0, of: mine, mode: setgid | 0o770}, me == 0},
	} {
		err := own("path", c.what, c.in)
		assert.Equal(t, c.ok, err == nil, "%d:%d %s in %v: %v", c.what.by, c.what.of, c.what.mode, c.in, err)
	}
	ownGroups = func() []int { return []int{0} }
	assert.Error(t, own("path", owned{by: me, of: 0, mode: fs.ModeDir | 0o775}, nil), "the group 0 alone is no volume's")
}

func TestTheGroupsOfTheProcessAreItsOwnAndItsSupplementaryOnes(t *testing.T) {
	all, err := os.Getgroups()
	require.NoError(t, err)
	assert.ElementsMatch(t, append(all, os.Getegid()), ownGroups())
}

// mounted does to a volume what kubelet does at each mount for a pod with fsGroup.
func mounted(t *testing.T, volume string, group int) {
	require.NoError(t, filepath.WalkDir(volume, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		mode := info.Mode() | 0o660
		if e.IsDir() {
			mode |= fs.ModeSetgid | 0o110
		}
		return errors.Join(os.Lchown(path, -1, group), os.Chmod(path, mode))
	}))
}

func TestAVolumeWithAGroupStaysUsableAfterEachMount(t *testing.T) {
	group := os.Getegid()
	if os.Geteuid() == 0 {
		group = 54321 // only the superuser may give a folder to any group
	}
	inGroups(t, group)
	volume := t.TempDir()
	d := Dir{filepath.Join(volume, "own")}
	require.NoError(t, d.Save(t.Context(), "old", text("old")))
	at := func(name string) string { return filepath.Join(d.Path, name+suffix) }
	long := time.Now().Add(-2 * unusedMost)
	require.NoError(t, os.Chtimes(at("old"), long, long))
	for _, now := range []string{"one", "two"} {
		require.NoError(t, d.Save(t.Context(), "a.base", text(now)))
		mounted(t, volume, group)
		info, err := os.Stat(d.Path)
		require.NoError(t, err)
		require.Equal(t, fs.ModeDir|fs.ModeSetgid|0o770, info.Mode())
		assert.Equal(t, now, content(t, d, "a.base"))
		require.NoError(t, d.Tidy(time.Now()))
		require.NoFileExists(t, at("old"))
	}
	require.NoError(t, os.Chmod(at("a.base"), 0o666))
	_, err := d.Load(t.Context(), "a.base")
	require.ErrorContains(t, err, "other users may write it")
	require.NoError(t, os.Chmod(at("a.base"), 0o660))
	ownGroups = func() []int { return []int{group + 1} }
	_, err = d.Load(t.Context(), "a.base")
	require.ErrorContains(t, err, "other users may write it", "the group of others")
	require.ErrorContains(t, d.Save(t.Context(), "b", text("three")), "other users may write it")
	require.ErrorContains(t, d.Tidy(time.Now()), "other users may write it")
}
