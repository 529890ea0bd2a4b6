package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The build of all mutants fails if one does not compile, and does not say which. This test does.
func TestEveryMutantPassesTheTypeChecker(t *testing.T) {
	_, files := woven(t)
	names := map[string]string{}
	for _, m := range all() {
		names[m.id()] = m.name
	}
	known := list(t)
	for file := range files {
		if filepath.Base(file) == extra {
			t.Run(filepath.Dir(file), func(t *testing.T) {
				t.Parallel()
				for _, err := range known.check(t, filepath.Dir(file), files, names) {
					t.Error(err)
				}
			})
		}
	}
}

// packages are those of the module and those that they import, by folder and by path, as the go
// command lists them.
type packages struct {
	dirs    map[string]listed
	exports map[string]string // import path: file of compiled declarations
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func list(t *testing.T) packages {
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	command.Dir = root
	command.Stderr = os.Stderr
	output, err := command.Output()
	require.NoError(t, err)
	known := packages{map[string]listed{}, map[string]string{}}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var one listed
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return known
		}
		require.NoError(t, err)
		known.dirs[one.Dir], known.exports[one.ImportPath] = one, one.Export
	}
}

// check returns the errors that the compiler would report of a package with its mutants.
func (p packages) check(t *testing.T, dir string, replaced map[string]string, names map[string]string) (errs []error) {
	absolute, err := filepath.Abs(filepath.Join(root, dir))
	require.NoError(t, err)
	here, ok := p.dirs[absolute]
	require.True(t, ok, "no package in %s", dir)
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range append(here.GoFiles, extra) {
		var source any
		if text, ok := replaced[filepath.Join(dir, name)]; ok {
			source = text
		}
		file, err := parser.ParseFile(set, filepath.Join(absolute, name), source, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	config := types.Config{
		Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(p.exports[path]) }),
		Error: func(err error) {
			if of := (types.Error{}); errors.As(err, &of) {
				err = fmt.Errorf("%s: %w", mutantAt(files, of.Pos, names), err)
			}
			errs = append(errs, err)
		},
	}
	_, _ = config.Check(here.ImportPath, set, files, nil)
	return errs
}

// mutantAt returns the name of the mutant whose function is at the position.
func mutantAt(files []*ast.File, pos token.Pos, names map[string]string) string {
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Pos() <= pos && pos <= f.End() {
				for id, name := range names {
					if strings.HasPrefix(f.Name.Name, id) {
						return name
					}
				}
			}
		}
	}
	return "no mutant"
}
