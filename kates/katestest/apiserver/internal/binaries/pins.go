package binaries

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The module that pins the sources travels as text. As a module in a folder of this one it would
// not: the zip of a module has no folder with a go.mod. And if this module required Kubernetes
// itself, the go command would ignore the replace lines that Kubernetes needs in the modules of
// users, and users would have all of it among their dependencies.
//
// Each byte is part of the names of cache entries, and a build takes minutes. So the module's name
// and the comment above it, which are from where this file once was, change with the next version.
var (
	//go:embed pins/go.mod.txt
	goMod []byte
	//go:embed pins/go.sum.txt
	goSum []byte
)

// unpack writes the module with the pins to a folder in cache, unless it is there, and returns the
// folder.
func unpack(cache string) (string, error) {
	dir := filepath.Join(cache, "pins-"+digest(goMod, goSum))
	for name, content := range map[string][]byte{"go.mod": goMod, "go.sum": goSum} {
		path := filepath.Join(dir, name)
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, content) {
			continue
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read the cache of API server binaries (KATES_CACHE sets another one): %w", err)
		}
		if err := makeCache(dir); err != nil {
			return "", err
		}
		if err := writeWhole(path, content); err != nil {
			return "", fmt.Errorf("write the cache of API server binaries (KATES_CACHE sets another one): %w", err)
		}
	}
	return dir, nil
}

// writeWhole writes a file so that another process sees all of it, or what was there before.
func writeWhole(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".writing-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone after a success
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
