package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// sum has the checksums of a module, as go.sum has them.
type sum struct{ module, goMod string }

// pack writes what a module proxy serves of a module: https://go.dev/ref/mod#goproxy-protocol. The
// zip has the files of the last commit of the copy, as the go command packs them, with the root's
// LICENSE if the module has none.
func (c *copied) pack(ctx context.Context, m *goModule) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	version, err := module.EscapeVersion(c.version)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.proxy, escaped, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(dir, version+".zip")
	if err := c.zip(m, archive); err != nil {
		return err
	}
	goMod, err := os.ReadFile(filepath.Join(c.source, m.goMod()))
	if err != nil {
		return err
	}
	seconds, err := git(ctx, c.source, "log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	when, err := time.Parse(time.RFC3339, strings.TrimSpace(seconds))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{c.version, when.UTC()})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{version + ".mod": goMod, version + ".info": info, "list": []byte(c.version + "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	c.sums[m.path], err = sumOf(archive, goMod)
	return err
}

// zip writes a module's zip.
func (c *copied) zip(m *goModule, archive string) (err error) {
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	dir := m.dir
	if dir == "." {
		dir = ""
	}
	return zip.CreateFromVCS(file, module.Version{Path: m.path, Version: c.version}, c.source, "HEAD", dir)
}

// sumOf returns the checksums of a zip and of a go.mod.
func sumOf(archive string, goMod []byte) (s sum, err error) {
	if s.module, err = dirhash.HashZip(archive, dirhash.Hash1); err != nil {
		return s, err
	}
	s.goMod, err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(string(goMod))), nil
	})
	return s, err
}

// addSums writes the checksums of what a module requires of the tree into its go.sum.
func (c *copied) addSums(m *goModule, required []module.Version) error {
	file := filepath.Join(c.source, m.dir, "go.sum")
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(required) == 0 {
		return nil
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return line == "" || c.tree.isOwn(strings.Fields(line)[0])
	})
	for _, r := range required {
		s, ok := c.sums[r.Path]
		if !ok {
			return fmt.Errorf("%s is not packed", r.Path)
		}
		lines = append(lines, r.Path+" "+c.version+" "+s.module, r.Path+" "+c.version+"/go.mod "+s.goMod)
	}
	slices.Sort(lines)
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// compareWithGit gets each module from the tags of the copy, as the go command does without a
// proxy, and compares the checksums: a proxy that serves the tags serves what is packed here.
func (c *copied) compareWithGit(ctx context.Context) error {
	cache, err := os.MkdirTemp("", "release-cache-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	env := []string{
		"GOMODCACHE=" + cache, "GOFLAGS=-modcacherw", "GOPROXY=direct", "GOPRIVATE=", "GONOPROXY=", "GONOSUMDB=" + c.tree.prefix,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + c.source + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + c.tree.prefix,
	}
	for _, m := range c.tree.released() {
		answer, err := run(ctx, cache, env, "go", "mod", "download", "-json", m.path+"@"+c.version)
		if err != nil {
			return fmt.Errorf("get %s from its tag: %w", m.path, err)
		}
		var got struct{ Sum, GoModSum string }
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			return err
		}
		if want := c.sums[m.path]; want != (sum{got.Sum, got.GoModSum}) {
			return fmt.Errorf("the tag %s gives %s with the checksums %v, and the proxy with %v", m.tag(c.version), m.path, got, want)
		}
	}
	return nil
}
