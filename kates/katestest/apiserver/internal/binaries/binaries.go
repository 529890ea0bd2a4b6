package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// These are the names of the two binaries, as envtest and their documentation use them.
const (
	nameAPIServer = "kube-apiserver"
	nameEtcd      = "etcd"
)

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

// Ensure returns the binaries of a version of Kubernetes, one of [Versions]. "" is the version that
// $KATES_KUBERNETES names, else the newest. Any other is an error that says which there are. If the
// binaries are not in the cache, Ensure builds them, once, which takes minutes. While it builds or
// waits, it writes progress and the compiler's messages to progress; otherwise it writes nothing.
//
// The cache is $KATES_CACHE, else $XDG_CACHE_HOME/kates, else ~/.cache/kates. Several processes
// may call Ensure at once: one builds, the others wait for it and say for which process.
// Cancelling ctx ends the build, or the wait, and leaves no half-built entry behind. Ensure needs
// the go command, and no C compiler. A first build needs the module proxy or a filled module cache.
func Ensure(ctx context.Context, version string, progress io.Writer) (Set, error) {
	p, err := choose(version)
	if err != nil {
		return Set{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return Set{}, err
	}
	source, err := p.unpack(cache)
	if err != nil {
		return Set{}, err
	}
	r, err := readRecipe(ctx, p, source)
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
	if err := makeCache(cache); err != nil {
		return Set{}, err
	}
	waiting := func(by holder) { fmt.Fprintf(progress, "%s are being built: waiting for %s\n", r, by) }
	held, err := lock(ctx, set.Dir+".lock", waiting)
	if err != nil {
		return Set{}, err
	}
	defer held.release()
	if set.complete() { // another process has built it meanwhile
		return set, nil
	}
	if err := r.build(ctx, set.Dir, held, progress); err != nil {
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

// makeCache makes dir, a folder of the cache, unless it is there.
func makeCache(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the cache of API server binaries (KATES_CACHE sets another one): %w", err)
	}
	return nil
}
