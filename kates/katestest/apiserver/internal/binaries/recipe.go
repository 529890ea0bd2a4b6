package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// recipe is everything that decides what the binaries are.
type recipe struct {
	source    string // the folder of the module that pins the sources
	apiServer target
	etcd      target
	toolchain string   // go1.26.8
	digest    string   // hash of the pins
	ldflags   []string // what the linker sets
}

// target is one main package to build.
type target struct {
	pkg     string // its import path
	version string // of its module
	builtAs string // its name after `go build -o folder`
	name    string // its name in the cache
}

// versionVar is the package whose variables the API server reports as its version. Without them
// it reports v0.0.0.
const versionVar = "k8s.io/component-base/version"

// readRecipe reads what p pins. The folder source has it as a module.
func readRecipe(ctx context.Context, p pin, source string) (recipe, error) {
	r := recipe{
		source:    source,
		digest:    p.digest(),
		apiServer: target{pkg: "k8s.io/kubernetes/cmd/kube-apiserver", builtAs: "kube-apiserver", name: nameAPIServer},
		etcd:      target{pkg: "go.etcd.io/etcd/server/v3", builtAs: "server", name: nameEtcd},
	}
	versions, err := requiredVersions(ctx, source)
	if err != nil {
		return recipe{}, err
	}
	for _, t := range []*target{&r.apiServer, &r.etcd} {
		if t.version, err = versionOf(t.pkg, versions); err != nil {
			return recipe{}, fmt.Errorf("read %s: %w", filepath.Join(source, "go.mod"), err)
		}
	}
	if r.ldflags, err = versionFlags(r.apiServer.version); err != nil {
		return recipe{}, err
	}
	out, err := goCommand(ctx, source, "env", "GOVERSION")
	if err != nil {
		return recipe{}, fmt.Errorf("read the version of the Go toolchain: %w", err)
	}
	r.toolchain = strings.TrimSpace(string(out))
	return r, nil
}

// key is the name of r's cache entry.
func (r recipe) key() string {
	// Experiments make GOVERSION "go1.26.8 X:name", and a folder's name has no spaces.
	toolchain := regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(r.toolchain, "-")
	return strings.Join([]string{
		"kube-apiserver-" + r.apiServer.version,
		"etcd-" + r.etcd.version,
		toolchain,
		runtime.GOOS + "-" + runtime.GOARCH,
		r.digest,
	}, "_")
}

// requiredVersions maps module paths to versions. It lets the go command parse go.mod. Unlike `go
// list -m`, that needs no network.
func requiredVersions(ctx context.Context, dir string) (map[string]string, error) {
	out, err := goCommand(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return nil, fmt.Errorf("read the pinned versions in %s: %w", dir, err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return nil, fmt.Errorf("read the pinned versions in %s: %w", dir, err)
	}
	versions := make(map[string]string, len(file.Require))
	for _, m := range file.Require {
		versions[m.Path] = m.Version
	}
	return versions, nil
}

// versionOf returns the version of the module that holds pkg: the longest required path that is a
// prefix of pkg.
func versionOf(pkg string, versions map[string]string) (string, error) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if v := versions[p]; v != "" {
			return v, nil
		}
	}
	return "", fmt.Errorf("no required module holds %s", pkg)
}

// versionFlags makes the linker set the API server's version, such as v1.36.3.
func versionFlags(version string) ([]string, error) {
	m := regexp.MustCompile(`^v(\d+)\.(\d+)\.\d+`).FindStringSubmatch(version)
	if m == nil {
		return nil, fmt.Errorf("parse the version %q of the API server", version)
	}
	return []string{
		"-s", "-w",
		"-X", versionVar + ".gitVersion=" + version,
		"-X", versionVar + ".gitMajor=" + m[1],
		"-X", versionVar + ".gitMinor=" + m[2],
	}, nil
}

// String names what r makes.
func (r recipe) String() string {
	return fmt.Sprintf("kube-apiserver %s and etcd %s", r.apiServer.version, r.etcd.version)
}

// digest is a short hash of files, enough to distinguish two pins.
func digest(files ...[]byte) string {
	sum := sha256.New()
	for _, content := range files {
		fmt.Fprintf(sum, "%d\n%s", len(content), content)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:8]
}
