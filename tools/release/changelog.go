package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// section is a part of the change log that is about one version.
type section struct {
	line        int
	title, date string // "0.1.0" and what stands in parentheses; "Unreleased"
	text        string // without headings
}

var heading = regexp.MustCompile(`^## (\S+)(?: \(([^)]*)\))?\s*$`)

// sections returns the sections of a change log.
func sections(changelog string) (all []section) {
	for i, line := range strings.Split(changelog, "\n") {
		if strings.HasPrefix(line, "## ") {
			s := section{line: i + 1, title: strings.TrimPrefix(line, "## ")}
			if match := heading.FindStringSubmatch(line); match != nil {
				s.title, s.date = match[1], match[2]
			}
			all = append(all, s)
		} else if len(all) > 0 && !strings.HasPrefix(line, "#") {
			all[len(all)-1].text += strings.TrimSpace(line)
		}
	}
	return all
}

// checkChangelog says what is wrong with what the change log says of a version.
func checkChangelog(t *tree, version string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(t.root, "CHANGELOG.md"))
	if errors.Is(err, fs.ErrNotExist) {
		return []string{"there is no CHANGELOG.md"}, nil
	} else if err != nil {
		return nil, err
	}
	want := strings.TrimPrefix(version, "v")
	example := fmt.Sprintf("## %s (%s)", want, time.Now().Format(time.DateOnly))
	var problems []string
	for _, s := range sections(string(text)) {
		switch {
		case s.title == "Unreleased" && s.text != "":
			problems = append(problems, fmt.Sprintf("CHANGELOG.md:%d: what is under Unreleased belongs to a version: %s", s.line, example))
		case s.title == "Unreleased":
		case s.title != want:
			return append(problems, fmt.Sprintf("CHANGELOG.md:%d: the first section is %q; %s needs its own before that: %s",
				s.line, s.title, version, example)), nil
		default:
			return append(problems, s.problems(example)...), nil
		}
	}
	return append(problems, fmt.Sprintf("CHANGELOG.md has no section of %s: %s", version, example)), nil
}

// checkFetched says which versions of the change log have no tag here. Without its tag a version
// looks as if it never was: nothing would be compared with it.
func checkFetched(ctx context.Context, t *tree, version string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(t.root, "CHANGELOG.md"))
	if err != nil {
		return nil, nil // checkChangelog says so
	}
	all, err := tags(ctx, t.root)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, s := range sections(string(text)) {
		tag := "v" + s.title
		if _, err := time.Parse(time.DateOnly, s.date); err != nil || tag == version || !semver.IsValid(tag) {
			continue
		}
		if !slices.Contains(all, tag) {
			problems = append(problems, fmt.Sprintf("CHANGELOG.md:%d: there is no tag %s in this clone: git fetch --tags", s.line, tag))
		}
	}
	return problems, nil
}

// problems says what is wrong with the section of the version that is released.
func (s section) problems(example string) (problems []string) {
	if _, err := time.Parse(time.DateOnly, s.date); err != nil {
		problems = append(problems, fmt.Sprintf("CHANGELOG.md:%d: %s has no date: %s", s.line, s.title, example))
	}
	if s.text == "" {
		problems = append(problems, fmt.Sprintf("CHANGELOG.md:%d: the section of %s is empty", s.line, s.title))
	}
	return problems
}

// Sentences of a time before the first release.
var unreleased = regexp.MustCompile(`(?i)there\s+is\s+no\s+release\s+yet|is\s+not\s+released\s+yet`)

// checkDocuments says where a document names another version, or says that there is none.
func checkDocuments(ctx context.Context, t *tree, version string) ([]string, error) {
	files, err := gitFiles(ctx, t.root)
	if err != nil {
		return nil, err
	}
	named := regexp.MustCompile(regexp.QuoteMeta(t.prefix) + `[\w./-]*@(v\d[\w.+-]*\w)`)
	slices.Sort(files)
	var problems []string
	for _, file := range files {
		if path.Ext(file) != ".md" || isClosed(path.Dir(file)) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(t.root, file))
		if err != nil {
			return nil, err
		}
		at := func(offset int) string { return fmt.Sprintf("%s:%d", file, 1+bytes.Count(text[:offset], []byte("\n"))) }
		for _, found := range unreleased.FindAllIndex(text, -1) {
			problems = append(problems, fmt.Sprintf("%s says %q", at(found[0]), strings.Join(strings.Fields(string(text[found[0]:found[1]])), " ")))
		}
		for _, found := range named.FindAllSubmatchIndex(text, -1) {
			other := string(text[found[2]:found[3]])
			if semver.IsValid(other) && other != version && file != "CHANGELOG.md" {
				problems = append(problems, fmt.Sprintf("%s names the version %s", at(found[0]), other))
			}
		}
	}
	return problems, nil
}
