package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// placeholder is how modules of the tree require each other. The go command writes it for what a
// replace leads to.
const placeholder = "v0.0.0-00010101000000-000000000000"

// closed are folders that nobody gets as a module and whose packages are no API: programs, their
// tests, and what measures. internal/test/exported has them, too.
var closed = []string{"bench", "e2e", "examples", "internal", "testdata", "tools"}

// isClosed says whether a folder of the tree, or one above it, is closed.
func isClosed(dir string) bool {
	return slices.ContainsFunc(strings.Split(dir, "/"), func(name string) bool { return slices.Contains(closed, name) })
}

// goModule is a module of the tree.
type goModule struct {
	path     string
	dir      string // with slashes, in the tree; "." for the root
	released bool
	file     *modfile.File
}

// goMod is the path of its go.mod in the tree.
func (m *goModule) goMod() string { return path.Join(m.dir, "go.mod") }

// tag is the tag of a version of it.
func (m *goModule) tag(version string) string { return path.Join(m.dir, version) }

// tree is the repository, as it is in a folder.
type tree struct {
	root    string
	prefix  string      // the path of the root's module, without a major version
	modules []*goModule // each after those of them that it requires
}

// readTree reads the go.mod files of a repository.
func readTree(ctx context.Context, root string) (*tree, error) {
	files, err := gitFiles(ctx, root)
	if err != nil {
		return nil, err
	}
	t := &tree{root: root}
	for _, file := range files {
		if path.Base(file) != "go.mod" || slices.Contains(strings.Split(file, "/"), "testdata") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		parsed, err := modfile.Parse(file, text, nil)
		if err != nil {
			return nil, err
		}
		if parsed.Module == nil {
			return nil, fmt.Errorf("%s names no module", file)
		}
		dir := path.Dir(file)
		t.modules = append(t.modules, &goModule{path: parsed.Module.Mod.Path, dir: dir, released: !isClosed(dir), file: parsed})
	}
	i := slices.IndexFunc(t.modules, func(m *goModule) bool { return m.dir == "." })
	if i < 0 {
		return nil, fmt.Errorf("%s has no go.mod", root)
	}
	t.prefix, _, _ = module.SplitPathVersion(t.modules[i].path)
	return t, t.sort()
}

// sort puts each module behind those that it requires.
func (t *tree) sort() error {
	var sorted []*goModule
	state := map[*goModule]int{} // 1: its requirements are being visited, 2: it is sorted
	var visit func(m *goModule) error
	visit = func(m *goModule) error {
		if state[m] == 1 {
			return errors.New("modules require each other in a circle: " + m.path + " is in it")
		}
		if state[m] == 2 {
			return nil
		}
		state[m] = 1
		for _, required := range t.own(m) {
			if other := t.named(required.Path); other != nil {
				if err := visit(other); err != nil {
					return err
				}
			}
		}
		state[m] = 2
		sorted = append(sorted, m)
		return nil
	}
	slices.SortFunc(t.modules, func(a, b *goModule) int { return strings.Compare(a.dir, b.dir) }) // the root first
	for _, m := range t.modules {
		if err := visit(m); err != nil {
			return err
		}
	}
	t.modules = sorted
	return nil
}

// isOwn says whether a module path is one of the tree.
func (t *tree) isOwn(p string) bool { return p == t.prefix || strings.HasPrefix(p, t.prefix+"/") }

// named returns the module of a path, or nil.
func (t *tree) named(p string) *goModule {
	i := slices.IndexFunc(t.modules, func(m *goModule) bool { return m.path == p })
	if i < 0 {
		return nil
	}
	return t.modules[i]
}

// own returns what a module requires of the tree.
func (t *tree) own(m *goModule) (required []module.Version) {
	for _, r := range m.file.Require {
		if t.isOwn(r.Mod.Path) {
			required = append(required, r.Mod)
		}
	}
	return required
}

// released returns the modules that users get, each behind those that it requires.
func (t *tree) released() []*goModule {
	return slices.DeleteFunc(slices.Clone(t.modules), func(m *goModule) bool { return !m.released })
}

// problems says what is wrong with the go.mod files.
func (t *tree) problems(version string) (problems []string) {
	for _, m := range t.modules {
		if m.released {
			problems = append(problems, t.pathProblems(m, version)...)
		}
		problems = append(problems, t.requireProblems(m)...)
		if m.released {
			problems = append(problems, t.replaceProblems(m)...)
		}
	}
	return problems
}

// pathProblems says what is wrong with the path of a module that is released.
func (t *tree) pathProblems(m *goModule, version string) (problems []string) {
	prefix, major, _ := module.SplitPathVersion(m.path)
	if want := path.Join(t.prefix, m.dir); prefix != want {
		problems = append(problems, fmt.Sprintf("%s: the module is %s, but who gets %s finds this folder", m.goMod(), m.path, want))
	}
	if err := module.CheckPathMajor(version, major); err != nil {
		problems = append(problems, fmt.Sprintf("%s: a module of the path %s cannot have the version %s: %v", m.goMod(), m.path, version, err))
	}
	return problems
}

// requireProblems says what is wrong with what a module requires of the tree.
func (t *tree) requireProblems(m *goModule) (problems []string) {
	for _, r := range t.own(m) {
		switch target := t.named(r.Path); {
		case target == nil:
			problems = append(problems, fmt.Sprintf("%s requires %s, which is no module of this repository", m.goMod(), r.Path))
		case m.released && !target.released:
			problems = append(problems, fmt.Sprintf("%s requires %s, which is not released", m.goMod(), r.Path))
		case r.Version != placeholder:
			problems = append(problems, fmt.Sprintf("%s requires %s %s: in the tree the version is %s, and a replace leads to the folder",
				m.goMod(), r.Path, r.Version, placeholder))
		case !m.leadsTo(target):
			problems = append(problems, fmt.Sprintf("%s has no replace of %s by its folder, %s", m.goMod(), r.Path, target.dir))
		}
	}
	return problems
}

// leadsTo says whether a module replaces another of the tree by its folder.
func (m *goModule) leadsTo(other *goModule) bool {
	return slices.ContainsFunc(m.file.Replace, func(r *modfile.Replace) bool {
		return r.Old == module.Version{Path: other.path} && r.New.Version == "" && path.Join(m.dir, r.New.Path) == other.dir
	})
}

// replaceProblems says what else a go.mod has that the go command reads in the main module alone.
func (t *tree) replaceProblems(m *goModule) (problems []string) {
	for _, r := range m.file.Replace {
		if !t.isOwn(r.Old.Path) {
			problems = append(problems, fmt.Sprintf("%s replaces %s: users do not get what it is replaced by", m.goMod(), r.Old.Path))
		}
	}
	for _, e := range m.file.Exclude {
		problems = append(problems, fmt.Sprintf("%s excludes %s: users may get it all the same", m.goMod(), e.Mod))
	}
	return problems
}

// workspace makes a workspace of the released modules, in which each sees the others in the tree.
// It returns the variable of the environment that has it, and a function that removes it.
func (t *tree) workspace(ctx context.Context) (variable string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "release-work-*")
	if err != nil {
		return "", nil, err
	}
	variable = "GOWORK=" + filepath.Join(dir, "go.work")
	init, edit := []string{"work", "init"}, []string{"work", "edit"}
	for _, m := range t.released() {
		init = append(init, filepath.Join(t.root, m.dir))
		for _, required := range t.own(m) { // else the go command asks for the go.mod of that version
			if target := t.named(required.Path); target != nil {
				edit = append(edit, "-replace="+required.String()+"="+filepath.Join(t.root, target.dir))
			}
		}
	}
	for _, args := range [][]string{init, append(edit, "-fmt")} {
		if _, err := run(ctx, dir, []string{variable}, "go", args...); err != nil {
			os.RemoveAll(dir)
			return "", nil, err
		}
	}
	return variable, func() { os.RemoveAll(dir) }, nil
}

// patterns name all packages of the released modules.
func (t *tree) patterns() (patterns []string) {
	for _, m := range t.released() {
		patterns = append(patterns, filepath.Join(t.root, m.dir)+"/...")
	}
	return patterns
}
