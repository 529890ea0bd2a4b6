package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/module"
)

// borrowCache prepares the module cache for a version that is not published. The cache has the
// dependencies, and what was compiled of them is known by their folders there: a cache of its own
// would compile everything again. The go command takes a version in the cache for what was
// published, so the version is removed, now and by the function that is returned. Another process
// that does the same waits meanwhile.
func borrowCache(ctx context.Context, c *copied) (done func() error, err error) {
	dir, err := goEnv(ctx, "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "cache"), 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "cache", "release.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fmt.Fprintln(os.Stderr, "another process tries a release with this module cache: waiting for it")
		if err := waitFor(ctx, lock); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
	remove := func() (err error) {
		for _, m := range c.tree.released() {
			err = errors.Join(err, forget(dir, module.Version{Path: m.path, Version: c.version}))
		}
		return err
	}
	if err := remove(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func() error { return errors.Join(remove(), lock.Close()) }, nil
}

// waitFor waits until a file is locked for this process.
func waitFor(ctx context.Context, lock *os.File) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

// forget removes a version of a module from a module cache.
func forget(cache string, m module.Version) error {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return err
	}
	if err := removeReadOnly(filepath.Join(cache, escaped+"@"+version)); err != nil {
		return err
	}
	dir := filepath.Join(cache, "cache", "download", escaped, "@v")
	for _, suffix := range []string{"info", "mod", "zip", "ziphash", "lock"} {
		if err := os.RemoveAll(filepath.Join(dir, version+"."+suffix)); err != nil {
			return err
		}
	}
	list := filepath.Join(dir, "list")
	text, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	versions := slices.DeleteFunc(strings.Fields(string(text)), func(v string) bool { return v == m.Version })
	return os.WriteFile(list, []byte(strings.Join(append(versions, ""), "\n")), 0o644)
}

// removeReadOnly removes a folder that the go command has made read-only.
func removeReadOnly(dir string) error {
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(name, 0o755)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}
