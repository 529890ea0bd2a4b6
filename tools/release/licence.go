package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences of what programs get with the library: those that ask for no more than
// that their text and the notices stay with the program.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// systems are those for which dependencies are listed.
var systems = []string{"linux", "darwin", "windows"}

var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([.-].*)?$`)

// dependency is a module that packages of the released modules import.
type dependency struct {
	name string   // with its version
	dir  string   // in the module cache
	dirs []string // of packages that are used
}

// checkLicences says which dependencies have no licence, or one that is not allowed. Packages that
// only tests import are none: programs do not get them.
func checkLicences(ctx context.Context, out io.Writer, t *tree) (problems []string, err error) {
	own, err := licencesOf(t.root)
	if err != nil {
		return nil, err
	}
	if len(own) == 0 {
		problems = append(problems, "there is no LICENSE in the root: the modules need one")
	}
	workspace, remove, err := t.workspace(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	all := map[string]*dependency{}
	for _, system := range systems {
		if err := t.addDependencies(ctx, all, workspace, "GOOS="+system, "CGO_ENABLED=0"); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		found, err := all[name].problems()
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	fmt.Fprintf(out, "licences of %d dependencies\n", len(all))
	return problems, nil
}

// addDependencies adds what the packages for users import of other modules, in an environment.
func (t *tree) addDependencies(ctx context.Context, all map[string]*dependency, env ...string) error {
	listed, err := run(ctx, t.root, env, "go", append([]string{"list", "-find", "-f", "{{.Dir}}"}, t.patterns()...)...)
	if err != nil {
		return fmt.Errorf("list the packages: %w", err)
	}
	const format = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"
	args := []string{"list", "-deps", "-f", format}
	for _, dir := range strings.Split(strings.TrimSpace(listed), "\n") {
		if rel, err := filepath.Rel(t.root, dir); err == nil && !isClosed(filepath.ToSlash(rel)) {
			args = append(args, dir)
		}
	}
	if listed, err = run(ctx, t.root, env, "go", args...); err != nil {
		return fmt.Errorf("list the dependencies: %w", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(listed), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			continue
		}
		name := fields[0] + " " + fields[1]
		if all[name] == nil {
			all[name] = &dependency{name: name, dir: fields[2]}
		}
		all[name].dirs = append(all[name].dirs, fields[3])
	}
	return nil
}

// problems says what is wrong with the licences of a dependency: those in its folder, and those
// above its packages that are used.
func (d *dependency) problems() (problems []string, err error) {
	seen := map[string]bool{}
	for _, dir := range append(d.dirs, d.dir) {
		for ; strings.HasPrefix(dir, d.dir) && !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			files, err := licencesOf(dir)
			if err != nil {
				return nil, err
			}
			if dir == d.dir && len(files) == 0 {
				problems = append(problems, d.name+" has no licence file")
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return nil, err
				}
				name, _ := filepath.Rel(d.dir, file)
				if found := licenceProblem(text); found != "" {
					problems = append(problems, fmt.Sprintf("%s: %s %s", d.name, filepath.ToSlash(name), found))
				}
			}
		}
	}
	return problems, nil
}

// licencesOf returns the licence files of a folder.
func licencesOf(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Type().IsRegular() && licenceFile.MatchString(entry.Name()) && !strings.HasSuffix(entry.Name(), ".go") {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	return files, err
}

// licenceProblem says why a text does not do as a licence, or nothing.
func licenceProblem(text []byte) string {
	coverage := licensecheck.Scan(text)
	var others []string
	known := false
	for _, match := range coverage.Match {
		if slices.Contains(allowed, match.ID) {
			known = true
		} else if !slices.Contains(others, match.ID) {
			others = append(others, match.ID)
		}
	}
	switch {
	case len(others) > 0:
		return fmt.Sprintf("is %s; allowed are %s", strings.Join(others, " and "), strings.Join(allowed, ", "))
	case !known || coverage.Percent < 75:
		return "is no licence that is known; allowed are " + strings.Join(allowed, ", ")
	}
	return ""
}
