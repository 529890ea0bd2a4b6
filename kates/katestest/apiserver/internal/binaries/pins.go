package binaries

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The modules that pin the sources travel as text, one folder for each minor version of Kubernetes.
// As modules in folders of this one they would not: the zip of a module has no folder with a
// go.mod. And if this module required Kubernetes itself, the go command would ignore the replace
// lines that Kubernetes needs in the modules of users, and users would have all of it among their
// dependencies.
//
// Each byte is part of the names of cache entries, and a build takes minutes. So a text changes
// only with its release. tools/pins of the repository writes them.
//
//go:embed pins
var texts embed.FS

// VariableKubernetes is the variable of the environment that chooses a version where the program
// does not.
const VariableKubernetes = "KATES_KUBERNETES"

// pin is one version of Kubernetes.
type pin struct {
	version      string // 1.36
	goMod, goSum []byte
}

// Versions returns the minor versions of Kubernetes that are pinned, such as 1.36, the oldest
// first.
func Versions() []string {
	folders, err := texts.ReadDir("pins")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	versions := make([]string, len(folders))
	for i, folder := range folders {
		versions[i] = folder.Name()
	}
	slices.SortFunc(versions, func(a, b string) int { return minor(a) - minor(b) })
	return versions
}

// minor returns 36 of 1.36.
func minor(version string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(version, "1."))
	if err != nil {
		panic(err) // a test reads the names of all folders
	}
	return n
}

// choose returns the pin of a version such as 1.36. Of "" it returns that of the version that the
// environment names, else the newest.
func choose(version string) (pin, error) {
	all, by := Versions(), ""
	if version == "" {
		if version = os.Getenv(VariableKubernetes); version != "" {
			by = VariableKubernetes + ": "
		} else {
			version = all[len(all)-1]
		}
	}
	if !slices.Contains(all, version) {
		return pin{}, fmt.Errorf("%sthere is no Kubernetes %q here: choose one of %s", by, version, strings.Join(all, ", "))
	}
	p := pin{version: version}
	for name, content := range map[string]*[]byte{"go.mod.txt": &p.goMod, "go.sum.txt": &p.goSum} {
		var err error
		if *content, err = texts.ReadFile(path.Join("pins", version, name)); err != nil {
			return pin{}, fmt.Errorf("read what Kubernetes %s is built from: %w", version, err)
		}
	}
	return p, nil
}

// digest distinguishes p from every other pin.
func (p pin) digest() string { return digest(p.goMod, p.goSum) }

// unpack writes the module of p to a folder in cache, unless it is there, and returns the folder.
func (p pin) unpack(cache string) (string, error) {
	dir := filepath.Join(cache, "pins-"+p.digest())
	for name, content := range map[string][]byte{"go.mod": p.goMod, "go.sum": p.goSum} {
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
