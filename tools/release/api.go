package main

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

// api is what a package exports.
type api struct {
	types        *types.Package
	experimental bool
}

// experimental is how a paragraph of the documentation of a package begins that may break.
const experimental = "The package is EXPERIMENTAL"

// change is a difference between the packages of two versions.
type change struct {
	text                     string // with the folder of the package
	compatible, experimental bool
}

// checkAPI says what a version breaks that it may not, and prints all that differs from the last
// one. Packages that were experimental may break.
func checkAPI(ctx context.Context, out io.Writer, t *tree, version string) ([]string, error) {
	all, err := tags(ctx, t.root)
	if err != nil {
		return nil, err
	}
	last := newest(before(all, version), false)
	if last == "" {
		fmt.Fprintln(out, "no version to compare the exported API with: this is the first")
		return nil, nil
	}
	changes, err := apiChanges(ctx, t, last)
	if err != nil {
		return nil, fmt.Errorf("compare the exported API with that of %s: %w", last, err)
	}
	return judge(out, changes, last, version), nil
}

// judge prints changes, and returns those that a version may not have.
func judge(out io.Writer, changes []change, last, version string) (problems []string) {
	fmt.Fprintf(out, "exported API since %s: %d changes\n", last, len(changes))
	for _, c := range changes {
		kind := "incompatible"
		switch {
		case c.compatible:
			kind = "new"
		case c.experimental:
			kind = "incompatible, but experimental"
		}
		fmt.Fprintf(out, "  %s (%s)\n", c.text, kind)
		switch {
		case !c.compatible && !c.experimental && !mayBreak(last, version):
			problems = append(problems, fmt.Sprintf("%s is incompatible with %s: %s", version, last, c.text))
		case c.compatible && !mayAdd(last, version):
			problems = append(problems, fmt.Sprintf("%s is a patch of %s, and exports something new: %s", version, last, c.text))
		}
	}
	return problems
}

// apiChanges compares the packages of a tree with those of a tag.
func apiChanges(ctx context.Context, t *tree, tag string) ([]change, error) {
	dir, err := os.MkdirTemp("", "release-"+tag+"-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := clone(ctx, t.root, dir, "refs/tags/"+tag); err != nil {
		return nil, err
	}
	old, err := readTree(ctx, dir)
	if err != nil {
		return nil, err
	}
	before, err := load(ctx, old)
	if err != nil {
		return nil, err
	}
	now, err := load(ctx, t)
	if err != nil {
		return nil, err
	}
	return compare(before, now), nil
}

// load returns the packages of the released modules that programs can import, by their folders.
func load(ctx context.Context, t *tree) (map[string]api, error) {
	workspace, remove, err := t.workspace(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	found, err := packages.Load(&packages.Config{
		Context: ctx,
		Mode:    packages.NeedName | packages.NeedFiles | packages.NeedTypes,
		Dir:     t.root,
		Env:     append(os.Environ(), workspace, "PWD="+t.root),
	}, t.patterns()...)
	if err != nil {
		return nil, err
	}
	var broken []error
	all := map[string]api{}
	for _, p := range found {
		for _, e := range p.Errors {
			if len(broken) < 10 {
				broken = append(broken, e)
			}
		}
		if p.Name == "main" || len(p.GoFiles) == 0 {
			continue
		}
		folder, err := filepath.Rel(t.root, filepath.Dir(p.GoFiles[0]))
		if err != nil {
			return nil, err
		}
		if folder = filepath.ToSlash(folder); isClosed(folder) {
			continue
		}
		all[folder] = api{types: p.Types, experimental: isExperimental(p.GoFiles)}
	}
	return all, errors.Join(broken...)
}

// isExperimental says whether the documentation of a package says that it is experimental.
func isExperimental(files []string) bool {
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err == nil && strings.Contains("\n"+parsed.Doc.Text(), "\n"+experimental) {
			return true
		}
	}
	return false
}

// compare returns what differs between the packages of two versions, in order.
func compare(before, now map[string]api) (changes []change) {
	for folder, old := range before {
		current, ok := now[folder]
		if !ok {
			changes = append(changes, change{text: folder + ": the package is removed", experimental: old.experimental})
			continue
		}
		if old.experimental && !current.experimental {
			changes = append(changes, change{text: folder + ": the package is no longer experimental", compatible: true})
		}
		if current.experimental && !old.experimental {
			changes = append(changes, change{text: folder + ": the package is experimental now"})
		}
		for _, c := range apidiff.Changes(old.types, current.types).Changes {
			changes = append(changes, change{folder + ": " + c.Message, c.Compatible, old.experimental})
		}
	}
	for folder := range now {
		if _, ok := before[folder]; !ok {
			changes = append(changes, change{text: folder + ": the package is new", compatible: true})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.text, b.text) })
	return changes
}
