package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// broken are packages that do not compile for macOS: files that replace those of a package that
// does, and a part of the error.
var broken = map[string]struct{ file, text, wanted string }{
	"type":     {"m_darwin.go", "package m\n\nconst here = 1\n", "mismatched types"},
	"body":     {"m_darwin.go", "package m\n\nconst here = \"\"\n\nfunc g() int { return nowhere }\n", "undefined: nowhere"},
	"missing":  {"m_darwin.go", "package m\n\nimport \"syscall\"\n\nconst here = \"\"\n\nvar _ = syscall.EpollCreate\n", "EpollCreate"},
	"name":     {"m_darwin.go", "package m\n", "undefined: here"},
	"unused":   {"m_darwin.go", "package m\n\nconst here = \"\"\n\nfunc g() { x := 1 }\n", "declared and not used: x"},
	"test":     {"m_test.go", "package m\n\nvar _ = inside\n", "undefined: inside"},
	"external": {"x_test.go", "package m_test\n\nvar _ = outside\n", "undefined: outside"},
	"syntax":   {"m_darwin.go", "package m\n\nfunc {\n", "expected 'IDENT'"},
	"import":   {"m_darwin.go", "package m\n\nimport _ \"example.org/no\"\n\nconst here = \"\"\n", "example.org/no"},
	"tagged":   {"t.go", "//go:build tagged\n\npackage m\n\nvar _ = tagged\n", "undefined: tagged"},
}

// write writes a package that compiles for macOS, and not for Linux, with one file more.
func write(t *testing.T, dir, file, text string) {
	t.Helper()
	files := map[string]string{
		"m.go":        "package m\n\nimport \"os\"\n\nfunc F() string { return here + os.DevNull }\n",
		"m_linux.go":  "package m\n\nconst here = 1 + \"only Linux has this error\"\n",
		"m_darwin.go": "package m\n\nconst here = \"darwin\"\n",
		"m_test.go":   "package m\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) { t.Log(F()) }\n",
	}
	files[file] = text
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCodeThatDoesNotCompileForAnotherSystemIsFound(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good"), "go.mod", "module example.org/m\n\ngo 1.26.0\n")
	if err := os.Rename(filepath.Join(dir, "good", "go.mod"), filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	for name, b := range broken {
		write(t, filepath.Join(dir, name), b.file, b.text)
	}

	var out bytes.Buffer
	if err := check(&out, dir, "darwin", "", []string{"./good", "./tagged"}); err != nil {
		t.Errorf("nothing is wrong there: %v: %s", err, &out)
	}
	if err := check(&out, dir, "darwin", "tagged", []string{"./..."}); err == nil {
		t.Error("no error")
	}
	said := out.String()
	for name, b := range broken {
		found := false
		for line := range strings.Lines(said) {
			found = found || strings.Contains(line, filepath.Join(dir, name)) && strings.Contains(line, b.wanted)
		}
		if !found {
			t.Errorf("%s: %q is not said", name, b.wanted)
		}
	}
	if strings.Contains(said, filepath.Join(dir, "good")) {
		t.Error("something is said of the package in which nothing is wrong")
	}
	if t.Failed() {
		fmt.Println(said)
	}
}

func TestNothingToCheckIsAnError(t *testing.T) {
	for _, patterns := range [][]string{nil, {"./nowhere/..."}} {
		if err := check(&bytes.Buffer{}, t.TempDir(), "darwin", "", patterns); err == nil {
			t.Errorf("%q: no error", patterns)
		}
	}
	if err := check(&bytes.Buffer{}, ".", "", "", []string{"."}); err == nil {
		t.Error("no system: no error")
	}
}
