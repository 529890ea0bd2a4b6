package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// copied is the copy of a tree, as users get it.
type copied struct {
	tree    *tree
	source  string // a clone, with the commit of the release and its tags
	proxy   string
	version string
	sums    map[string]sum // of the modules, by path
}

// clone makes a repository in a folder, with a commit of another one, and its files. A repository
// that has few of the former commits does.
func clone(ctx context.Context, from, to, ref string) error {
	for _, args := range [][]string{
		{"init", "--quiet", to},
		{"-C", to, "fetch", "--quiet", "--no-tags", "--update-shallow", from, ref},
		{"-C", to, "-c", "advice.detachedHead=false", "checkout", "--quiet", "FETCH_HEAD"},
	} {
		if _, err := git(ctx, from, args...); err != nil {
			return err
		}
	}
	return nil
}

// newCopy makes a version of a tree in a folder: a copy and a module proxy. With uncommitted, the
// copy has what is not committed, too.
func newCopy(ctx context.Context, t *tree, dir, version string, uncommitted bool) (*copied, error) {
	c := &copied{source: filepath.Join(dir, "source"), proxy: filepath.Join(dir, "proxy"), version: version, sums: map[string]sum{}}
	if err := clone(ctx, t.root, c.source, "HEAD"); err != nil {
		return nil, err
	}
	if uncommitted {
		if err := copyFiles(ctx, t.root, c.source); err != nil {
			return nil, err
		}
	}
	var err error
	if c.tree, err = readTree(ctx, c.source); err != nil {
		return nil, err
	}
	commit := []string{"commit", "--quiet", "--allow-empty"}
	for _, m := range c.tree.modules { // those that it requires have their sums
		if err := c.publish(m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.goMod(), err)
		}
		if err := c.commit(ctx, t.root, commit); err != nil {
			return nil, err
		}
		if m.released {
			if err := c.pack(ctx, m); err != nil {
				return nil, fmt.Errorf("pack %s: %w", m.path, err)
			}
		}
		commit = []string{"commit", "--quiet", "--allow-empty", "--amend"}
	}
	for _, m := range c.tree.released() {
		if _, err := git(ctx, c.source, "tag", "--no-sign", m.tag(version)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// commit commits all in the copy, in the name of who commits in the tree.
func (c *copied) commit(ctx context.Context, root string, commit []string) error {
	name, email := "release", "release@localhost"
	if who, err := git(ctx, root, "config", "user.name"); err == nil {
		name = strings.TrimSpace(who)
	}
	if who, err := git(ctx, root, "config", "user.email"); err == nil {
		email = strings.TrimSpace(who)
	}
	if _, err := git(ctx, c.source, "add", "--all", "--force"); err != nil {
		return err
	}
	identity := []string{"-c", "user.name=" + name, "-c", "user.email=" + email, "-c", "core.hooksPath=" + os.DevNull, "-c", "commit.gpgSign=false"}
	_, err := git(ctx, c.source, append(append(identity, commit...), "-m", "Release "+c.version)...)
	return err
}

// publish gives a module of the copy the go.mod and the go.sum that users get. A module that is not
// released keeps its replaces.
func (c *copied) publish(m *goModule) error {
	own := c.tree.own(m)
	for _, required := range own {
		if err := m.file.AddRequire(required.Path, c.version); err != nil {
			return err
		}
	}
	if m.released {
		if err := dropReplaces(c.tree, m.file); err != nil {
			return err
		}
		if err := c.addSums(m, own); err != nil {
			return err
		}
	}
	m.file.Cleanup()
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.source, m.goMod()), text, 0o644)
}

// dropReplaces removes the replaces of modules of the tree.
func dropReplaces(t *tree, file *modfile.File) error {
	var own []module.Version
	for _, r := range file.Replace {
		if t.isOwn(r.Old.Path) {
			own = append(own, r.Old)
		}
	}
	for _, old := range own {
		if err := file.DropReplace(old.Path, old.Version); err != nil {
			return err
		}
	}
	return nil
}

// copyFiles makes the files of one work tree those of another.
func copyFiles(ctx context.Context, from, to string) error {
	if _, err := git(ctx, to, "rm", "-r", "--quiet", "--force", "--ignore-unmatch", "."); err != nil {
		return err
	}
	files, err := gitFiles(ctx, from)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := copyFile(filepath.Join(from, file), filepath.Join(to, file)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file or a symbolic link.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// explain prints what a maintainer does with the release.
func (c *copied) explain(out io.Writer) {
	var tags []string
	for _, m := range c.tree.released() {
		tags = append(tags, m.tag(c.version))
	}
	fmt.Fprintf(out, "\nThe tags of %s, all on one commit of %s:\n\n", c.version, c.source)
	for _, tag := range tags {
		fmt.Fprintln(out, "  "+tag)
	}
	fmt.Fprintf(out, "\nNothing is tagged here and nothing is pushed. To publish:\n\n"+
		"  git fetch %s 'refs/tags/*:refs/tags/*'\n  git push --atomic origin %s\n", c.source, strings.Join(tags, " "))
	fmt.Fprintf(out, "\nThe commit of the tags is beside the branch. Make it an ancestor, so that what comes later counts as newer:\n\n"+
		"  git merge --strategy ours --no-edit %s\n", c.version)
}
