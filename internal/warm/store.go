package warm

import (
	"context"
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
// of the program can read it, and its files.
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

// Load opens a file.
func (d Dir) Load(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(d.Path, name+suffix))
}

// Save writes a file beside the one that there is, and then puts it in its place.
func (d Dir) Save(ctx context.Context, name string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(d.Path, name+".*"+half) // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // it is given up
			_ = os.Remove(f.Name())
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
	if err = os.Rename(f.Name(), filepath.Join(d.Path, name+suffix)); err != nil {
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
	all, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tidy: %w", err)
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
			_ = os.Remove(filepath.Join(d.Path, e.Name())) // another process may have done it
		}
	}
	return nil
}
