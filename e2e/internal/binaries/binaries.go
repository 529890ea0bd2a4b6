package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// These are the names of the two binaries, as envtest and their documentation use them.
const (
	nameAPIServer = "kube-apiserver"
	nameEtcd      = "etcd"
)

// modulePath is the module whose apiserver folder holds the pinned sources.
const modulePath = "github.com/kates-go/kates/e2e"

// Set is a pair of complete binaries. The files belong to the cache and are shared: run them, do
// not change them.
type Set struct {
	// Dir is the cache entry, the folder that holds both.
	Dir string
	// APIServer and Etcd are the absolute paths of the binaries.
	APIServer, Etcd string
	// APIServerVersion and EtcdVersion are the built versions, such as v1.36.3.
	APIServerVersion, EtcdVersion string
}

// Ensure returns the binaries for the versions that e2e/apiserver/go.mod pins. If they are not in
// the cache it builds them, once, which takes minutes. While it builds, it writes progress and
// the compiler's messages to progress; otherwise it writes nothing.
//
// The cache is $KATES_CACHE, else $XDG_CACHE_HOME/kates, else ~/.cache/kates. Several processes
// may call Ensure at once: one builds, the others wait for it. Cancelling ctx ends the build, or
// the wait, and leaves no half-built entry behind. Ensure needs the go command. A first build
// needs the module proxy or a filled module cache.
func Ensure(ctx context.Context, progress io.Writer) (Set, error) {
	source, err := sourceDir(ctx)
	if err != nil {
		return Set{}, err
	}
	r, err := readRecipe(ctx, source)
	if err != nil {
		return Set{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return Set{}, err
	}
	return r.ensure(ctx, cache, progress)
}

// ensure returns the entry of r in cache. If it is missing, ensure builds it with the entry's
// lock held.
func (r recipe) ensure(ctx context.Context, cache string, progress io.Writer) (Set, error) {
	set := r.set(cache)
	if set.complete() {
		return set, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Set{}, fmt.Errorf("create the cache of API server binaries: %w", err)
	}
	unlock, err := lock(ctx, set.Dir+".lock")
	if err != nil {
		return Set{}, err
	}
	defer unlock()
	if set.complete() { // another process has built it meanwhile
		return set, nil
	}
	if err := r.build(ctx, set.Dir, progress); err != nil {
		return Set{}, err
	}
	return set, nil
}

// set names the entry of r in cache, whether or not it exists.
func (r recipe) set(cache string) Set {
	dir := filepath.Join(cache, r.key())
	return Set{
		Dir:              dir,
		APIServer:        filepath.Join(dir, nameAPIServer),
		Etcd:             filepath.Join(dir, nameEtcd),
		APIServerVersion: r.apiServer.version,
		EtcdVersion:      r.etcd.version,
	}
}

// complete reports whether both binaries exist. An entry appears by one rename, so it is complete
// when it exists; the check covers caches that something else has pruned.
func (s Set) complete() bool {
	for _, path := range []string{s.APIServer, s.Etcd} {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// cacheDir returns the folder of all entries. It need not exist.
func cacheDir() (string, error) {
	if dir := os.Getenv("KATES_CACHE"); dir != "" {
		return filepath.Abs(filepath.Join(dir, "apiserver"))
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Abs(filepath.Join(dir, "kates", "apiserver"))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the cache of API server binaries (KATES_CACHE sets it): %w", err)
	}
	return filepath.Join(home, ".cache", "kates", "apiserver"), nil
}

// sourceDir finds e2e/apiserver. It asks the go command, which works from any module that uses
// this one, under any name of the checkout, and with -trimpath.
func sourceDir(ctx context.Context) (string, error) {
	out, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return "", fmt.Errorf("find the folder of module %s: %w", modulePath, err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "apiserver"), nil
}

// goCommand runs the go command in dir and returns its standard output.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}
