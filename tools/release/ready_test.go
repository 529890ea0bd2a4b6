package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestAVersionHasTheRightForm(t *testing.T) {
	for version, good := range map[string]bool{
		"v0.1.0": true, "v1.20.3": true, "v0.2.0-rc.1": true,
		"0.1.0": false, "next": false, "v0.1": false, "v0.1.0+x": false, "v01.0.0": false, placeholder: false,
	} {
		want := ""
		if !good {
			want = `"` + version + `" is no version to release: it has the form v1.2.3 or v1.2.3-rc.1`
		}
		if err := checkForm(version); good != (err == nil) || err != nil && err.Error() != want {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestAVersionIsNew(t *testing.T) {
	r := newRepository(t)
	for name, c := range map[string]struct {
		version string
		tags    []string
		want    []string
	}{
		"the first":               {"v0.1.0", nil, nil},
		"a newer one":             {"v0.1.1", []string{"v0.1.0", "extra/v0.1.0"}, nil},
		"a release candidate":     {"v0.2.0-rc.1", []string{"v0.1.0"}, nil},
		"after a candidate":       {"v0.2.0", []string{"v0.2.0-rc.1"}, nil},
		"the last one":            {"v0.1.0", []string{"v0.1.0"}, []string{"v0.1.0 is not newer than the last tag of v0.1, v0.1.0"}},
		"an older one":            {"v0.1.9", []string{"v0.9.0", "v0.10.0"}, []string{"v0.1.9 is not newer than the last tag, v0.10.0"}},
		"its candidate comes now": {"v0.1.0-rc.2", []string{"v0.1.0"}, []string{"v0.1.0-rc.2 is not newer than the last tag of v0.1, v0.1.0"}},
		"a fix of an older minor": {"v0.1.2", []string{"v0.1.1", "v0.2.0"}, nil},
		"that fix comes again":    {"v0.1.1", []string{"v0.1.1", "v0.2.0"}, []string{"v0.1.1 is not newer than the last tag of v0.1, v0.1.1"}},
		"a module has it":         {"v0.1.0", []string{"extra/v0.1.0"}, []string{"there is already a tag extra/v0.1.0"}},
		"other tags":              {"v0.1.0", []string{"nightly", "tools/v9.0.0"}, nil},
	} {
		t.Log(name)
		for _, tag := range c.tags {
			r.git("tag", tag)
		}
		got, err := checkTags(t.Context(), r.tree(), c.version)
		must(t, err)
		equal(t, got, c.want...)
		for _, tag := range c.tags {
			r.git("tag", "--delete", tag)
		}
	}
}

func TestAVersionOfTheChangelogWithoutATagIsNamed(t *testing.T) {
	r := newRepository(t)
	r.write("CHANGELOG.md", "## 0.2.0 (2026-11-29)\n- New.\n\n## 0.1.0 (2026-01-01)\n- Old.\n\n## Before (2025-01-01)\n")
	got, err := checkFetched(t.Context(), r.tree(), "v0.2.0")
	must(t, err)
	equal(t, got, "CHANGELOG.md:4: there is no tag v0.1.0 in this clone: git fetch --tags")
	r.commit()
	r.git("tag", "v0.1.0")
	got, err = checkFetched(t.Context(), r.tree(), "v0.2.0")
	must(t, err)
	equal(t, got)
}

func TestATrialWorksInACheckoutOfAnotherUser(t *testing.T) {
	r := newRepository(t)
	r.commit()
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	if _, err := gitFiles(t.Context(), r.dir); err == nil {
		t.Error("git trusts every owner without being told")
	}
	undo, err := trustEveryOwner()
	must(t, err)
	_, err = gitFiles(t.Context(), r.dir)
	must(t, err)
	_, err = git(t.Context(), t.TempDir(), "clone", "--quiet", "--no-tags", r.dir, "copy")
	must(t, err)
	undo()
	if _, err := gitFiles(t.Context(), r.dir); err == nil {
		t.Error("git still trusts every owner")
	}
}

func TestTheAPIIsComparedWithTheVersionBefore(t *testing.T) {
	all := []string{"v0.1.0", "v0.1.1-rc.1", "v0.2.0", "extra/v0.1.5"}
	equal(t, []string{newest(before(all, "v0.1.1"), false), newest(before(all, "v0.3.0"), false), newest(before(all, "v0.1.0"), false)},
		"v0.1.0", "v0.2.0", "")
}

func TestWhatIsNotCommittedIsNamed(t *testing.T) {
	r := newRepository(t)
	r.write(".gitignore", "*.log\n")
	r.commit()
	r.write("a.log", "ignored")
	for _, c := range []struct {
		change func()
		want   []string
	}{
		{func() {}, nil},
		{func() { r.write("README.md", "other") }, []string{"1 files are not committed: README.md"}},
		{func() { r.write("new.go", "package lib") }, []string{"2 files are not committed: README.md and others (git status)"}},
	} {
		c.change()
		got, err := checkClean(t.Context(), r.tree())
		must(t, err)
		equal(t, got, c.want...)
	}
}

func TestTheChangelogHasADatedSectionOfTheVersion(t *testing.T) {
	today := time.Now().Format(time.DateOnly)
	r := newRepository(t)
	for text, want := range map[string][]string{
		"## 0.2.0 (2026-11-29)\n- New.\n\n## 0.1.0 (2026-01-01)\n- Old.\n": nil,
		"## Unreleased\n\n## 0.2.0 (2026-11-29)\n\n### Added\n\n- New.\n":  nil,
		"# Changelog\n\nWords.\n":                                                 {"CHANGELOG.md has no section of v0.2.0: ## 0.2.0 (" + today + ")"},
		"## Unreleased\n\n### Added\n\n- New.\n":                                  {"CHANGELOG.md:1: what is under Unreleased belongs to a version: ## 0.2.0 (" + today + ")", "CHANGELOG.md has no section of v0.2.0: ## 0.2.0 (" + today + ")"},
		"## Unreleased\n- Newer.\n## 0.2.0 (2026-11-29)\n- New.\n":                {"CHANGELOG.md:1: what is under Unreleased belongs to a version: ## 0.2.0 (" + today + ")"},
		"# C\n\n## 0.1.0 (2026-01-01)\n- Old.\n\n## 0.2.0 (2026-11-29)\n- New.\n": {`CHANGELOG.md:3: the first section is "0.1.0"; v0.2.0 needs its own before that: ## 0.2.0 (` + today + ")"},
		"## 0.2.0\n- New.\n":                                                      {"CHANGELOG.md:1: 0.2.0 has no date: ## 0.2.0 (" + today + ")"},
		"## 0.2.0 (unreleased)\n- New.\n":                                         {"CHANGELOG.md:1: 0.2.0 has no date: ## 0.2.0 (" + today + ")"},
		"## 0.2.0 (2026-02-30)\n- New.\n":                                         {"CHANGELOG.md:1: 0.2.0 has no date: ## 0.2.0 (" + today + ")"},
		"## 0.2.0 (2026-11-29)\n\n### Added\n\n## 0.1.0 (2026-01-01)\n- Old.\n":   {"CHANGELOG.md:1: the section of 0.2.0 is empty"},
	} {
		r.write("CHANGELOG.md", text)
		got, err := checkChangelog(r.tree(), "v0.2.0")
		must(t, err)
		t.Log(text)
		equal(t, got, want...)
	}
	must(t, os.Remove(r.dir+"/CHANGELOG.md"))
	got, err := checkChangelog(r.tree(), "v0.2.0")
	must(t, err)
	equal(t, got, "there is no CHANGELOG.md")
}

func TestDocumentsNameTheVersionOrNone(t *testing.T) {
	r := newRepository(t)
	r.write("README.md", "# Lib\n\ngo get "+lib+"/extra@v0.2.0\n")
	r.write("docs/a.md", "`go get example.com/other@v9.0.0` and "+lib+"@latest\n")
	r.write("CHANGELOG.md", "It was "+lib+"@v0.1.0.\n")
	r.write("tools/README.md", lib+"@v0.1.0\n")
	got, err := checkDocuments(t.Context(), r.tree(), "v0.2.0")
	must(t, err)
	equal(t, got)

	r.write("README.md", "# Lib\n\ngo get "+lib+"/extra@v0.1.0.\n")
	r.write("docs/a.md", "One.\n\nThere is\nno release yet.\n")
	got, err = checkDocuments(t.Context(), r.tree(), "v0.2.0")
	must(t, err)
	equal(t, got, "README.md:3 names the version v0.1.0", `docs/a.md:3 says "There is no release yet"`)
}

func TestAGoModThatUsersCannotUseIsNamed(t *testing.T) {
	elsewhere := "\nreplace example.com/dep => ../dep\n"
	for name, c := range map[string]struct {
		change  func(r *repository)
		version string
		want    []string
	}{
		"all is well": {func(*repository) {}, "v0.1.0", nil},
		"another version of the root": {func(r *repository) { r.change("extra/go.mod", placeholder, "v0.0.9") }, "v0.1.0",
			[]string{"extra/go.mod requires " + lib + " v0.0.9: in the tree the version is " + placeholder + ", and a replace leads to the folder"}},
		"no replace": {func(r *repository) { r.change("extra/go.mod", "replace "+lib+" => ..\n", "") }, "v0.1.0",
			[]string{"extra/go.mod has no replace of " + lib + " by its folder, ."}},
		"a replace by another folder": {func(r *repository) { r.change("extra/go.mod", "=> ..\n", "=> ../tools\n") }, "v0.1.0",
			[]string{"extra/go.mod has no replace of " + lib + " by its folder, ."}},
		"a replace of another module": {func(r *repository) { r.write("go.mod", "module "+lib+"\n\ngo 1.26.0\n"+elsewhere) }, "v0.1.0",
			[]string{"go.mod replaces example.com/dep: users do not get what it is replaced by"}},
		"such a replace in tools": {func(r *repository) { r.change("tools/go.mod", "go 1.26.0", "go 1.26.0\n"+elsewhere) }, "v0.1.0", nil},
		"an exclude": {func(r *repository) {
			r.write("go.mod", "module "+lib+"\n\ngo 1.26.0\n\nexclude example.com/dep v1.0.0\n")
		}, "v0.1.0",
			[]string{"go.mod excludes example.com/dep@v1.0.0: users may get it all the same"}},
		"a module that there is not": {func(r *repository) { r.change("extra/go.mod", lib+" ", lib+"/gone ") }, "v0.1.0",
			[]string{"extra/go.mod requires " + lib + "/gone, which is no module of this repository"}},
		"a module that is not released": {func(r *repository) {
			r.change("tools/go.mod", replaced(lib+"/extra", "../extra"), "")
			r.change("extra/go.mod", "go 1.26.0\n", "go 1.26.0\n"+replaced(lib+"/tools", "../tools"))
		}, "v0.1.0", []string{"extra/go.mod requires " + lib + "/tools, which is not released"}},
		"another path": {func(r *repository) { r.change("extra/more/go.mod", "module "+lib+"/extra/more", "module "+lib+"/more") }, "v0.1.0",
			[]string{"extra/more/go.mod: the module is " + lib + "/more, but who gets " + lib + "/extra/more finds this folder"}},
		"a major version": {func(r *repository) { must(r.t, os.RemoveAll(r.dir+"/extra")); must(r.t, os.RemoveAll(r.dir+"/tools")) }, "v2.0.0",
			[]string{"go.mod: a module of the path " + lib + " cannot have the version v2.0.0: version \"v2.0.0\" invalid: should be v0 or v1, not v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			c.change(r)
			equal(t, r.tree().problems(c.version), c.want...)
		})
	}
}

func TestWhatIsNoRepositoryOfModulesIsAnError(t *testing.T) {
	r := newRepository(t)
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() { r.change("go.mod", "go 1.26.0\n", "go 1.26.0\n"+replaced(lib+"/extra", "./extra")) },
			"modules require each other in a circle"},
		{func() { r.write("go.mod", "modul x\n") }, "go.mod:1: unknown directive: modul"},
		{func() { r.write("go.mod", "go 1.26.0\n") }, "go.mod names no module"},
		{func() { must(t, os.Remove(r.dir+"/go.mod")) }, "has no go.mod"},
		{func() { must(t, os.RemoveAll(r.dir+"/.git")) }, "not a git repository"},
	} {
		c.change()
		if _, err := readTree(t.Context(), r.dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v in place of %q", err, c.want)
		}
	}
}
