package exported_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/test/exported"
	"github.com/kates-go/kates/internal/test/golden"
)

// `go test ./internal/test/exported -update` writes the list.
func TestANewNameIsADecision(t *testing.T) {
	names, err := exported.Names("../../..")
	require.NoError(t, err)
	wrote, err := golden.Check("testdata/names.txt", strings.Join(names, "\n")+"\n")
	require.NoError(t, err)
	if wrote {
		t.Log("wrote testdata/names.txt")
	}
}

func TestNamesOfAllForms(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"a/a.go": "package a\nconst A, b = 1, 2\nvar C int\nfunc D() {}\nfunc e() {}\n" +
			"type F struct { G, h int; x }\nfunc (*F) I() {}\nfunc (F) j() {}\n" +
			"type K[T any] struct{}\nfunc (*K[T]) L() {}\ntype M[S, T any] struct{}\nfunc (M[S, T]) N() {}\n" +
			"type O interface { P(); q() }\ntype x struct { Q int }\nfunc (x) R() {}\ntype S = F\n",
		"a/a_linux.go":     "package a\nfunc T() {}\n",
		"a/a_darwin.go":    "package a\nfunc T() {}\n",
		"a/a_test.go":      "package a\nfunc U() {}\n",
		"a/internal/b.go":  "package b\nfunc V() {}\n",
		"a/testdata/b.go":  "package b\nfunc V() {}\n",
		".hidden/b.go":     "package b\nfunc V() {}\n",
		"examples/x/b.go":  "package b\nfunc V() {}\n",
		"command/main.go":  "package main\nfunc V() {}\n",
		"nested/module.go": "package nested\nfunc W() {}\n",
	} {
		file := filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	names, err := exported.Names(root)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"a A", "a C", "a D", "a F", "a F.G", "a F.I", "a K", "a K.L", "a M", "a M.N", "a O", "a O.P", "a S", "a T", "nested W",
	}, names)
}

func TestNoExportedNameIsForTheLibraryAlone(t *testing.T) {
	all, err := exported.Private("../../..")
	require.NoError(t, err)
	assert.Empty(t, all, "put what another package of the library needs into internal/doors")
}

func TestACommentThatKeepsANameFromProgramsIsFound(t *testing.T) {
	root := t.TempDir()
	text := "// Package a is for package b alone.\npackage a\n" +
		"// A is for package b\n// alone.\nfunc A() {}\n// b is for package b alone.\nfunc b() {}\n" +
		"type (\n\t// C is exported for package x/y.\n\tC struct {\n\t\tD int // only for the library\n\t\te int // only for the library\n\t}\n)\n" +
		"var F = 1 // by the library alone\n// G is for packages x and y only.\nconst G = 1\n// I is for metadata alone, as package x has it.\ntype I interface {\n" +
		"\t// J is not meant for programs.\n\tJ()\n}\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte(text), 0o600))
	all, err := exported.Private(root)
	require.NoError(t, err)
	assert.Equal(t, []string{
		".: A is for package b alone.", ".: C is exported for package x/y.", ".: G is for packages x and y only.",
		".: J is not meant for programs.", ".: by the library alone", ".: only for the library",
	}, all)
}
