package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// tags returns the tags of a repository.
func tags(ctx context.Context, root string) ([]string, error) {
	listed, err := git(ctx, root, "tag", "--list")
	return strings.Fields(listed), err
}

// checkForm is an error if a text is no version that can be released.
func checkForm(version string) error {
	// Short forms, such as v0.1, are valid too, and so is build metadata. The go command takes
	// neither.
	if semver.Canonical(version) != version || module.IsPseudoVersion(version) {
		return fmt.Errorf("%q is no version to release: it has the form v1.2.3 or v1.2.3-rc.1", version)
	}
	return nil
}

// checkTags says what is wrong with a version, beside the tags that there are.
func checkTags(ctx context.Context, t *tree, version string) ([]string, error) {
	all, err := tags(ctx, t.root)
	if err != nil {
		return nil, err
	}
	last, of := newest(all, true), ""
	if patched := ofMinor(all, version); len(patched) > 0 { // an older minor version gets fixes, too
		last, of = newest(patched, true), " of "+semver.MajorMinor(version)
	}
	if last != "" && semver.Compare(version, last) <= 0 {
		return []string{fmt.Sprintf("%s is not newer than the last tag%s, %s", version, of, last)}, nil
	}
	var problems []string
	for _, m := range t.released() {
		if tag := m.tag(version); slices.Contains(all, tag) {
			problems = append(problems, "there is already a tag "+tag)
		}
	}
	return problems, nil
}

// ofMinor returns the tags of the root that are of a version's minor version.
func ofMinor(tags []string, version string) (of []string) {
	for _, tag := range tags {
		if semver.IsValid(tag) && semver.MajorMinor(tag) == semver.MajorMinor(version) {
			of = append(of, tag)
		}
	}
	return of
}

// before returns the tags of the root that are of versions before another one.
func before(tags []string, version string) (earlier []string) {
	for _, tag := range tags {
		if semver.IsValid(tag) && semver.Compare(tag, version) < 0 {
			earlier = append(earlier, tag)
		}
	}
	return earlier
}

// newest returns the newest version of the root among tags, or "".
func newest(tags []string, withPrereleases bool) (last string) {
	for _, tag := range tags {
		if semver.IsValid(tag) && (withPrereleases || semver.Prerelease(tag) == "") && semver.Compare(tag, last) > 0 {
			last = tag
		}
	}
	return last
}

// mayBreak says whether a version may be incompatible with an earlier one. Of v0 each minor version
// may.
func mayBreak(earlier, version string) bool {
	if semver.Major(version) == "v0" {
		return semver.MajorMinor(earlier) != semver.MajorMinor(version)
	}
	return semver.Major(earlier) != semver.Major(version)
}

// mayAdd says whether a version may export more than an earlier one. From v1 on a patch may not.
func mayAdd(earlier, version string) bool {
	return semver.Major(version) == "v0" || semver.MajorMinor(earlier) != semver.MajorMinor(version)
}

// checkClean says which files differ from the last commit: users get what is committed.
func checkClean(ctx context.Context, t *tree) ([]string, error) {
	changed, err := git(ctx, t.root, "status", "--porcelain")
	if err != nil || changed == "" {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(changed, "\n"), "\n")
	text := fmt.Sprintf("%d files are not committed: %s", len(lines), strings.TrimSpace(lines[0][2:]))
	if len(lines) > 1 {
		text += " and others (git status)"
	}
	return []string{text}, nil
}
