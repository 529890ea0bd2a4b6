package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// release makes a release of the repository.
func (r *repository) release(o options) (printed string, err error) {
	r.t.Helper()
	o.root = r.dir
	if o.programs == nil {
		o.programs = users()
	}
	var out bytes.Buffer
	err = release(r.t.Context(), &out, o)
	return out.String(), err
}

// state is what a release must not change: the commit, the tags, and what is not committed.
func (r *repository) state() string {
	r.t.Helper()
	return r.git("rev-parse", "HEAD") + r.git("tag", "--list") + r.git("status", "--porcelain")
}

func (r *repository) read(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(name)
	must(r.t, err)
	return string(text)
}

// A whole release: what users get, from the proxy and from the tags, and what is printed. The next
// one is compared with it.
func TestAReleaseIsMadeTriedAndExplained(t *testing.T) {
	r, out := newRepository(t), filepath.Join(t.TempDir(), "release")
	licence := r.read(filepath.Join(r.dir, "LICENSE"))
	serve(t, "example.com/dep", "v1.0.0", map[string]string{"dep.go": "package dep\n", "LICENSE": licence})
	r.require(".", "example.com/dep", "v1.0.0")
	r.change("uses.go", "package .", "package lib")
	for _, module := range []string{"extra", "extra/more", "tools"} {
		_, err := run(t.Context(), filepath.Join(r.dir, module), nil, "go", "mod", "tidy")
		must(t, err)
	}
	r.commit()
	before := r.state()
	printed, err := r.release(options{version: "v0.1.0", out: out})
	must(t, err)
	if r.state() != before {
		t.Error("the tree is changed: ", r.state())
	}
	for _, want := range []string{
		"v0.1.0: 3 modules in " + out + "/proxy\n",
		"go get " + lib + "@v0.1.0: 2 programs built and run",
		"go get " + lib + "/extra/more@v0.1.0: 1 programs built and run",
		"\n  v0.1.0\n  extra/v0.1.0\n  extra/more/v0.1.0\n",
		"  git fetch " + out + "/source 'refs/tags/*:refs/tags/*'\n  git push --atomic origin v0.1.0 extra/v0.1.0 extra/more/v0.1.0\n",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in\n%s", want, printed)
		}
	}
	goMod := r.read(filepath.Join(out, "proxy", lib, "extra/more/@v/v0.1.0.mod"))
	if strings.Contains(goMod, "replace") || !strings.Contains(goMod, lib+"/extra v0.1.0\n") || !strings.Contains(goMod, lib+" v0.1.0") {
		t.Error(goMod)
	}
	if lines := strings.Split(strings.TrimSpace(r.read(filepath.Join(out, "source/extra/more/go.sum"))), "\n"); len(lines) != 6 {
		t.Error(lines)
	}
	if goMod := r.read(filepath.Join(out, "source/tools/go.mod")); !strings.Contains(goMod, "=> ../extra") || !strings.Contains(goMod, lib+"/extra v0.1.0\n") {
		t.Error(goMod) // it builds in the copy, too
	}
	if _, err := os.Stat(filepath.Join(out, "proxy", lib, "tools")); err == nil {
		t.Error("tools are released")
	}
	// nothing of it stays in the module cache
	for _, pattern := range []string{"github.com/example/*@v0.1.0", "cache/download/" + lib + "/@v/v0.1.0.*"} {
		if left, _ := filepath.Glob(filepath.Join(os.Getenv("GOMODCACHE"), pattern)); len(left) > 0 {
			t.Error(left)
		}
	}

	r.git("fetch", "--quiet", out+"/source", "refs/tags/*:refs/tags/*")
	r.change("lib.go", "A int", "A int64")
	r.change("CHANGELOG.md", "## 0.1.0", "## 0.1.1")
	r.change("extra/more/more.go", "H() int", "H() int64")
	r.commit()
	printed, err = r.release(options{version: "v0.1.1", out: filepath.Join(t.TempDir(), "next")})
	if err == nil || err.Error() != "v0.1.1 is not ready: 2 to mend, see above" ||
		!strings.Contains(printed, "- v0.1.1 is incompatible with v0.1.0: .: T.A: changed from int to int64\n") {
		t.Error(err, printed)
	}
	r.change("CHANGELOG.md", "## 0.1.1", "## 0.2.0")
	r.commit()
	printed, err = r.release(options{version: "v0.2.0", out: filepath.Join(t.TempDir(), "next")})
	must(t, err)
	if !strings.Contains(printed, "  extra/more/v0.2.0\n") {
		t.Error(printed)
	}
}

func TestAllThatIsNotReadyIsNamedAndNothingIsMade(t *testing.T) {
	r, out := newRepository(t), filepath.Join(t.TempDir(), "release")
	r.change("extra/go.mod", placeholder, "v0.0.9")
	r.change("CHANGELOG.md", " (2026-11-29)", "")
	r.write("README.md", "There is no release yet.\n")
	must(t, os.Remove(filepath.Join(r.dir, "LICENSE")))
	printed, err := r.release(options{version: "v0.1.0", out: out})
	if err == nil || err.Error() != "v0.1.0 is not ready: 5 to mend, see above" {
		t.Error(err)
	}
	for _, want := range []string{
		"- extra/go.mod requires " + lib + " v0.0.9", "- there is no LICENSE", "- 4 files are not committed",
		"- CHANGELOG.md:3: 0.1.0 has no date", "- README.md:1 says",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in\n%s", want, printed)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the folder stays, so that a second try fails")
	}
}

func TestATryTakesWhatIsNotCommittedAndRemovesIt(t *testing.T) {
	r := newRepository(t)
	r.write("new/new.go", "package new\n\nfunc Three() int { return 3 }\n")
	must(t, os.RemoveAll(filepath.Join(r.dir, "trial")))
	must(t, os.Remove(filepath.Join(r.dir, "CHANGELOG.md")))
	before, all := r.state(), users()
	all["root/new/main.go"] = prints(lib+"/new", "new.Three()", "3")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	printed, err := r.release(options{try: true, programs: all})
	must(t, err)
	if !strings.Contains(printed, "go get "+lib+"@v0.0.0-try: 3 programs") || strings.Contains(printed, "git push") || r.state() != before {
		t.Error(printed, r.state())
	}
	if left, _ := os.ReadDir(temporary); len(left) > 0 {
		t.Error(left)
	}
}

func TestWhatFailsForAUserFailsTheRelease(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *repository)
		output string // that a program of the root is said to have
		want   string
	}{
		"another output": {func(*repository) {}, "2", `the program one printed "1" in place of "2"`},
		"no program": {func(r *repository) {
			r.write("other/go.mod", "module "+lib+"/other\n")
			r.write("other/other.go", "package other\n")
		}, "1", "no program uses " + lib + "/other: write tools/release/testdata/programs/other/NAME/main.go"},
		"code that no program uses": {func(r *repository) {
			r.write("broken/broken.go", "package broken\n\nfunc F() int { return \"\" }\n")
		}, "1", "broken/broken.go:3:23"},
		"what only the tree has": {func(r *repository) {
			r.change("lib.go", "package lib\n", "package lib\n\nimport _ \"embed\"\n\n//go:embed extra/go.mod\nvar text string\n")
		}, "1", "extra/go.mod"},
	} {
		t.Run(name, func(t *testing.T) {
			r, all := newRepository(t), users()
			all["root/one/main.go"] = prints(lib, "lib.F().A", c.output)
			c.change(r)
			copied, err := newCopy(t.Context(), r.tree(), t.TempDir(), trial, true)
			must(t, err)
			if err := use(t.Context(), &bytes.Buffer{}, copied, all); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v in place of %q", err, c.want)
			}
		})
	}
}

// A tag that gives something else than the proxy: whoever gets it sees a wrong checksum.
func TestTagsThatGiveAnotherModuleAreAnError(t *testing.T) {
	r := newRepository(t)
	c, err := newCopy(t.Context(), r.tree(), t.TempDir(), "v0.1.0", false)
	must(t, err)
	must(t, c.compareWithGit(t.Context()))
	copied := &repository{t, c.source}
	copied.change("extra/extra.go", "adds to", "subtracts from")
	copied.commit()
	copied.git("tag", "--force", "extra/v0.1.0")
	if err := c.compareWithGit(t.Context()); err == nil || !strings.Contains(err.Error(), "the tag extra/v0.1.0 gives "+lib+"/extra with the checksums") {
		t.Error(err)
	}
}

func TestWrongArgumentsAreErrors(t *testing.T) {
	r, full := newRepository(t), t.TempDir()
	must(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o644))
	for want, o := range map[string]options{
		"a version and a folder have to be given": {version: "v0.1.0"},
		"a version and a folder have":             {out: full},
		"is not empty: a release gets a folder":   {version: "v0.1.0", out: full},
		"-try takes neither a version":            {version: "v0.1.0", try: true},
		`"0.1.0" is no version to release`:        {version: "0.1.0", out: full},
	} {
		if _, err := r.release(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v in place of %q", err, want)
		}
	}
}

func TestEachProgramSaysWhatItPrints(t *testing.T) {
	tree, err := readTree(t.Context(), filepath.Join("..", ".."))
	must(t, err)
	for _, m := range tree.released() {
		if _, err := programsOf(programs, m); err != nil {
			t.Error(err)
		}
	}
	all := users()
	all["root/one/main.go"].Data = []byte("package main\n")
	if _, err := programsOf(all, tree.named(tree.prefix)); err == nil || !strings.HasPrefix(err.Error(), "root/one/main.go has no comment") {
		t.Error(err)
	}
}
