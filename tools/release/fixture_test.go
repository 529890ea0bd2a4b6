package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// repository is a small repository of a test: the modules lib, lib/extra, which needs lib,
// lib/extra/more, which needs both, and lib/tools, which is not released.
type repository struct {
	t   *testing.T
	dir string
}

// replaced is a requirement of a module of the repository.
func replaced(path, folder string) string {
	return "\nrequire " + path + " " + placeholder + "\n\nreplace " + path + " => " + folder + "\n"
}

const lib = "github.com/example/lib"

// files are those of the repository.
func files(t *testing.T) map[string]string {
	licence, err := os.ReadFile("../../LICENSE")
	must(t, err)
	return map[string]string{
		"LICENSE":      string(licence),
		"README.md":    "# Lib\n",
		"CHANGELOG.md": "# Changelog\n\n## 0.1.0 (2026-11-29)\n\n### Added\n\n- All.\n",
		"go.mod":       "module " + lib + "\n\ngo 1.26.0\n",
		"lib.go": "// Package lib is a library.\npackage lib\n\n// T is a type.\ntype T struct{ A int }\n\n" +
			"// F makes one.\nfunc F() T { return T{A: 1} }\n",
		"trial/trial.go":        "// Package trial is new.\n//\n// The package is EXPERIMENTAL: it may break.\npackage trial\n\nfunc Old() {}\n",
		"internal/x/x.go":       "package x\n\nfunc X() {}\n",
		"extra/go.mod":          "module " + lib + "/extra\n\ngo 1.26.0\n" + replaced(lib, ".."),
		"extra/extra.go":        "// Package extra adds to lib.\npackage extra\n\nimport \"" + lib + "\"\n\nfunc G() lib.T { return lib.F() }\n",
		"extra/more/go.mod":     "module " + lib + "/extra/more\n\ngo 1.26.0\n" + replaced(lib, "../..") + replaced(lib+"/extra", "../../extra"),
		"extra/more/more.go":    "// Package more adds to extra.\npackage more\n\nimport \"" + lib + "/extra\"\n\nfunc H() int { return extra.G().A }\n",
		"tools/go.mod":          "module " + lib + "/tools\n\ngo 1.26.0\n" + replaced(lib, "..") + replaced(lib+"/extra", "../extra"),
		"tools/main.go":         "package main\n\nimport \"" + lib + "/extra\"\n\nfunc main() { extra.G() }\n",
		"testdata/other/go.mod": "module example.com/other\n",
	}
}

// prints is a program that imports a package and prints the result of a call.
func prints(imports, call, output string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("package main\n\nimport (\n\t\"fmt\"\n\n\t\"" + imports + "\"\n)\n\nfunc main() {\n\tfmt.Println(" +
		call + ")\n\t// Output: " + output + "\n}\n")}
}

// users are programs of all modules.
func users() fstest.MapFS {
	return fstest.MapFS{
		"root/one/main.go":       prints(lib, "lib.F().A", "1"),
		"root/two/main.go":       prints(lib, "lib.F()", "{1}"),
		"extra/one/main.go":      prints(lib+"/extra", "extra.G()", "{1}"),
		"extra/more/one/main.go": prints(lib+"/extra/more", "more.H()", "1"),
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newRepository makes the repository, with one commit. The go command has a module cache of its
// own, and git no configuration.
func newRepository(t *testing.T) *repository {
	t.Helper()
	for name, value := range map[string]string{
		"GOMODCACHE": t.TempDir(), "GOPROXY": "off", "GOFLAGS": "-modcacherw -buildvcs=false", "GONOSUMDB": "example.com",
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull, "GIT_CONFIG_COUNT": "2",
		"GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Someone",
		"GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "someone@example.com",
	} {
		t.Setenv(name, value)
	}
	r := &repository{t, t.TempDir()}
	r.git("init", "--quiet")
	for name, text := range files(t) {
		r.write(name, text)
	}
	r.commit()
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	printed, err := git(r.t.Context(), r.dir, args...)
	must(r.t, err)
	return printed
}

func (r *repository) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	must(r.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(r.t, os.WriteFile(file, []byte(text), 0o644))
}

// change replaces a text that a file has.
func (r *repository) change(name, old, text string) {
	r.t.Helper()
	content, err := os.ReadFile(filepath.Join(r.dir, name))
	must(r.t, err)
	if !strings.Contains(string(content), old) {
		r.t.Fatalf("%s does not have %q", name, old)
	}
	r.write(name, strings.ReplaceAll(string(content), old, text))
}

func (r *repository) commit() {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "-m", "more")
}

// tree reads the repository.
func (r *repository) tree() *tree {
	r.t.Helper()
	t, err := readTree(r.t.Context(), r.dir)
	must(r.t, err)
	return t
}

// equal compares what a check says with what it should say.
func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// serve makes a module proxy that has one version of a module, and uses it.
func serve(t *testing.T, path, version string, files map[string]string) {
	t.Helper()
	dir, proxy := t.TempDir(), t.TempDir()
	files["go.mod"] = "module " + path + "\n\ngo 1.26.0\n"
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	versions := filepath.Join(proxy, path, "@v")
	must(t, os.MkdirAll(versions, 0o755))
	archive, err := os.Create(filepath.Join(versions, version+".zip"))
	must(t, err)
	must(t, zip.CreateFromDir(archive, module.Version{Path: path, Version: version}, dir))
	must(t, archive.Close())
	info := `{"Version":"` + version + `","Time":"` + time.Time{}.Format(time.RFC3339) + `"}`
	must(t, os.WriteFile(filepath.Join(versions, version+".info"), []byte(info), 0o644))
	must(t, os.WriteFile(filepath.Join(versions, version+".mod"), []byte(files["go.mod"]), 0o644))
	t.Setenv("GOPROXY", "file://"+proxy)
}

// require has a module of the repository require another one, and import it.
func (r *repository) require(dir, path, version string) {
	r.t.Helper()
	_, err := run(context.WithoutCancel(r.t.Context()), filepath.Join(r.dir, dir), nil, "go", "get", path+"@"+version)
	must(r.t, err)
	r.write(filepath.Join(dir, "uses.go"), "package "+filepath.Base(dir)+"\n\nimport _ \""+path+"\"\n")
}
