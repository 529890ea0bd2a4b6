package files

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Store keeps files by their names. It may be used by several goroutines at once.
type Store interface {
	// Load opens what was saved last under a name. If there is nothing, the error is
	// fs.ErrNotExist. The caller closes it.
	Load(ctx context.Context, name string) (io.ReadCloser, error)
	// Save calls write once, and keeps what it writes under the name, in place of what was there:
	// all of it, or, after an error, nothing.
	Save(ctx context.Context, name string, write func(io.Writer) error) error
}

// Dir is a store in a folder of a file system. It makes the folder when it saves. Only the user
// of the program can read it, and its files. A folder, or a file in it, that other users may write
// is refused, and so is one of another user, and a symbolic link of another user to a folder. The
// group of a pod's volume may write (see groupOfVolume).
type Dir struct{ Path string }

const (
	// suffix ends the names of files, and half that of files that are being written.
	suffix = ".kates"
	half   = ".kates-tmp"
	// unusedMost is how long a file stays that nobody writes again.
	unusedMost = 7 * 24 * time.Hour
	// halfMost is how long a file may be being written.
	halfMost = time.Hour
)

// foreignError is a folder, or a file, that other users may have written.
type foreignError struct {
	path string
	why  string
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s: %s: name a folder of the program's own, or one that it may make (mode 0700) in this one", e.path, e.why)
}

// own is an error for a folder, or a file in a folder, that other users may write, or have made.
// A folder itself has no in.
func own(path string, info, in fs.FileInfo) error {
	switch mode := info.Mode(); {
	case strange(info):
		return &foreignError{path, "it belongs to another user"}
	case mode.Type() != fs.ModeSymlink && othersMay(info, in):
		return &foreignError{path, fmt.Sprintf("other users may write it (%s; chmod go-w would change that)", mode)}
	}
	return nil
}

// open opens the folder. It is checked after it was opened, so nobody can exchange it in between.
func (d Dir) open() (*os.Root, fs.FileInfo, error) {
	if link, err := os.Lstat(d.Path); err != nil {
		return nil, nil, err
	} else if err := own(d.Path, link, nil); err != nil {
		return nil, nil, err
	}
	folder, err := os.OpenRoot(d.Path)
	if err != nil {
		return nil, nil, err
	}
	info, err := folder.Stat(".")
	if err == nil {
		err = own(d.Path, info, nil)
	}
	if err != nil {
		_ = folder.Close() // nothing was read
		return nil, nil, err
	}
	return folder, info, nil
}

// Load opens a file.
func (d Dir) Load(_ context.Context, name string) (io.ReadCloser, error) {
	folder, in, err := d.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }() // the file stays open
	name += suffix
	info, err := folder.Lstat(name)
	switch path := filepath.Join(d.Path, name); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &foreignError{path, fmt.Sprintf("it is no file (%s)", info.Mode())}
	case own(path, info, in) != nil:
		return nil, own(path, info, in)
	}
	return folder.Open(name)
}

// Save writes a file beside the one that there is, and then puts it in its place.
func (d Dir) Save(ctx context.Context, name string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return err
	}
	folder, _, err := d.open()
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, folder.Close()) }()
	part := name + "." + rand.Text() + half
	f, err := folder.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // it is given up
			_ = folder.Remove(part)
		}
	}()
	if err = write(f); err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = folder.Rename(part, name+suffix); err != nil {
		return err
	}
	return d.sync()
}

// sync makes a new name last. Not every file system can.
func (d Dir) sync() error {
	f, err := os.Open(d.Path)
	if err != nil {
		return err
	}
	_ = f.Sync()
	return f.Close()
}

// Tidy removes files that nobody has written for long: those of queries that nobody has any more,
// and those whose writer has died. Other files stay.
func (d Dir) Tidy(now time.Time) error {
	folder, _, err := d.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // nothing is written
	all, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range all {
		most := unusedMost
		switch {
		case !e.Type().IsRegular():
			continue
		case strings.HasSuffix(e.Name(), half):
			most = halfMost
		case !strings.HasSuffix(e.Name(), suffix):
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > most {
			_ = folder.Remove(e.Name()) // another process may have done it
		}
	}
	return nil
}
