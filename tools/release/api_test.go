package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestWhatAVersionMayChange(t *testing.T) {
	added := change{text: "lib: F: added", compatible: true}
	broken := change{text: "lib: T.A: removed"}
	trial := change{text: "trial: Old: removed", experimental: true}
	for _, c := range []struct {
		last, version string
		changes       []change
		want          []string
	}{
		{"v0.1.0", "v0.1.1", []change{added, trial}, nil},
		{"v0.1.0", "v0.1.1", []change{broken}, []string{"v0.1.1 is incompatible with v0.1.0: lib: T.A: removed"}},
		{"v0.1.0", "v0.2.0", []change{added, broken}, nil},
		{"v0.1.0", "v0.2.0-rc.1", []change{broken}, nil},
		{"v0.9.0", "v1.0.0", []change{broken}, nil},
		{"v1.0.0", "v1.0.1", []change{added}, []string{"v1.0.1 is a patch of v1.0.0, and exports something new: lib: F: added"}},
		{"v1.0.0", "v1.1.0", []change{added, trial}, nil},
		{"v1.0.0", "v1.1.0", []change{broken, added}, []string{"v1.1.0 is incompatible with v1.0.0: lib: T.A: removed"}},
		{"v1.9.0", "v2.0.0", []change{broken}, nil},
	} {
		t.Log(c.last, c.version)
		equal(t, judge(&bytes.Buffer{}, c.changes, c.last, c.version), c.want...)
	}
}

// check compares the repository with its last tag.
func (r *repository) check(version string) (problems []string, printed string) {
	r.t.Helper()
	var out bytes.Buffer
	problems, err := checkAPI(r.t.Context(), &out, r.tree(), version)
	must(r.t, err)
	return problems, out.String()
}

func TestTheExportedAPIIsComparedWithThatOfTheLastTag(t *testing.T) {
	r := newRepository(t)
	problems, printed := r.check("v0.1.0")
	equal(t, problems)
	if printed != "no version to compare the exported API with: this is the first\n" {
		t.Error(printed)
	}
	r.git("tag", "v0.1.0")
	r.git("tag", "v0.2.0-rc.1") // promises nothing

	// compatible, and what no program can import
	r.change("lib.go", "{ A int }", "{\n\tA int\n\tB string\n}")
	r.write("internal/x/x.go", "package x\n")
	r.write("fresh/fresh.go", "package fresh\n")
	r.change("extra/extra.go", "func G", "// N is new.\nconst N = 1\n\nfunc G")
	r.change("trial/trial.go", "func Old", "func New")
	problems, printed = r.check("v0.1.1")
	equal(t, problems)
	for _, want := range []string{
		"exported API since v0.1.0: 5 changes\n",
		"  .: T.B: added (new)\n", "  extra: N: added (new)\n", "  fresh: the package is new (new)\n",
		"  trial: New: added (new)\n", "  trial: Old: removed (incompatible, but experimental)\n",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in\n%s", want, printed)
		}
	}

	// incompatible, in the root and in modules
	r.change("lib.go", "A int", "A int64")
	r.change("extra/more/more.go", "func H() int { return extra.G().A }", "func H(int) int64 { return extra.G().A }")
	r.change("trial/trial.go", "EXPERIMENTAL", "fine")
	want := []string{
		".: T.A: changed from int to int64",
		"extra/more: H: changed from func() int to func(int) int64",
	}
	problems, _ = r.check("v0.1.1")
	equal(t, problems, "v0.1.1 is incompatible with v0.1.0: "+want[0], "v0.1.1 is incompatible with v0.1.0: "+want[1])
	problems, printed = r.check("v0.2.0")
	equal(t, problems)
	for _, text := range append(want, "trial: the package is no longer experimental") {
		if !strings.Contains(printed, text) {
			t.Errorf("%q is not in\n%s", text, printed)
		}
	}
}

func TestAPackageThatIsGoneOrBecomesExperimentalIsIncompatible(t *testing.T) {
	before := map[string]api{"gone": {}, "tried": {experimental: true}}
	var texts []string
	for _, c := range compare(before, nil) {
		texts = append(texts, c.text)
		if c.compatible || c.experimental != (c.text == "tried: the package is removed") {
			t.Errorf("%+v", c)
		}
	}
	equal(t, texts, "gone: the package is removed", "tried: the package is removed")

	r := newRepository(t)
	r.git("tag", "v0.1.0")
	r.change("extra/extra.go", "// Package extra adds to lib.", "// Package extra adds to lib.\n//\n// The package is EXPERIMENTAL.")
	problems, _ := r.check("v0.1.1")
	equal(t, problems, "v0.1.1 is incompatible with v0.1.0: extra: the package is experimental now")
}

func TestCodeThatDoesNotCompileIsAnError(t *testing.T) {
	r := newRepository(t)
	r.git("tag", "v0.1.0")
	r.change("lib.go", "T{A: 1}", "nowhere")
	_, err := checkAPI(t.Context(), &bytes.Buffer{}, r.tree(), "v0.1.1")
	if err == nil || !strings.Contains(err.Error(), "lib.go:8:21: undefined: nowhere") {
		t.Error(err)
	}
}
