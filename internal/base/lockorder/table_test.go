package lockorder_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// others are the folders without a rank: what only tests use, programs, and this package.
var others = []string{
	"kates/katestest/internal/recording", "kates/katestest/internal/testserver",
	"kates/katestest/internal/trial", "internal/test/suite", "internal/base/lockorder", "examples",
	"tools", "bench", "e2e", "testdata",
}

// kit has no rank, and one folder beneath it has: the detector of mutations.
const kit = "kates/katestest"

// TestEveryMutexHasOneRowOfTheTable reads the module's source: each mutex is a field that the
// table names, and the table names nothing else.
func TestEveryMutexHasOneRowOfTheTable(t *testing.T) {
	found := mutexes(t, filepath.Join("..", "..", ".."))
	var rows []string
	for _, lock := range lockorder.Order {
		rows = append(rows, lock.Name)
		if lock.Guards == "" {
			t.Errorf("%s: the table does not say what it guards", lock.Name)
		}
	}
	for _, name := range found {
		if !slices.Contains(rows, name) {
			t.Errorf("%s is a lock without a row", name)
		}
	}
	for i, name := range rows {
		if !slices.Contains(found, name) {
			t.Errorf("%s has a row, and is no field of type lockorder.Mutex", name)
		}
		if slices.Contains(rows[:i], name) {
			t.Errorf("%s has two rows", name)
		}
	}
}

// mutexes returns the fields of type lockorder.Mutex as the table names them, and reports other
// mutexes as errors.
func mutexes(t *testing.T, root string) (names []string) {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, _ := filepath.Rel(root, path)
		folder = filepath.ToSlash(folder)
		if entry.IsDir() {
			hidden := strings.HasPrefix(entry.Name(), ".") && folder != "."
			_, missing := os.Stat(filepath.Join(path, "go.mod"))
			nested := missing == nil && folder != "." // their locks are held across none of ours
			if hidden || nested || slices.Contains(others, folder) {
				return filepath.SkipDir
			}
			return nil
		}
		in := filepath.ToSlash(filepath.Dir(folder))
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || in == kit {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		names = append(names, inFile(t, parsed, in)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// inFile returns the names of the locks of one file.
func inFile(t *testing.T, file *ast.File, folder string) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "sync" &&
				(n.Sel.Name == "Mutex" || n.Sel.Name == "RWMutex") {
				t.Errorf("%s: a sync.%s: use a lockorder.Mutex, with a row", folder, n.Sel.Name)
			}
		case *ast.TypeSpec:
			names = append(names, inType(n, folder)...)
		}
		return true
	})
	return names
}

// inType returns the names of the locks that are fields of a type.
func inType(typ *ast.TypeSpec, folder string) (names []string) {
	fields, ok := typ.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range fields.Fields.List {
		index, ok := field.Type.(*ast.IndexExpr)
		if !ok {
			continue
		}
		if of, ok := index.X.(*ast.SelectorExpr); !ok || of.Sel.Name != "Mutex" {
			continue
		}
		for _, name := range field.Names {
			names = append(names, folder+"."+typ.Name.Name+"."+name.Name)
		}
	}
	return names
}
