package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Most runs try only a part of the mutants. This test shows that the others compile, without
// compiling them.
func TestEveryMutantPassesTheTypeChecker(t *testing.T) {
	modules, of := map[string]packages{}, map[string][]mutant{}
	for _, m := range all() {
		dir := filepath.Dir(m.file)
		of[dir] = append(of[dir], m)
		if module := moduleOf(dir); modules[module].dirs == nil {
			modules[module] = list(t, module)
		}
	}
	for dir, mutants := range of {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			p := modules[moduleOf(dir)].parse(t, dir)
			require.NoError(t, p.check("", ""), "as it is")
			for _, m := range mutants {
				source, err := m.source()
				require.NoError(t, err)
				assert.NoError(t, p.check(filepath.Base(m.file), source), m.name)
			}
		})
	}
}

// packages are a module's packages and those that they import, by directory and by path, as the
// go command lists them.
type packages struct {
	dirs    map[string]listed
	exports map[string]string // import path: file of compiled declarations
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func list(t *testing.T, module string) packages {
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	command.Dir = filepath.Join(root, module)
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

// parsed is the source of a package. One file can be replaced by a broken one.
type parsed struct {
	path    string
	set     *token.FileSet
	files   map[string]*ast.File
	imports types.Importer
}

func (p packages) parse(t *testing.T, dir string) parsed {
	absolute, err := filepath.Abs(filepath.Join(root, dir))
	require.NoError(t, err)
	here, ok := p.dirs[absolute]
	require.True(t, ok, "no package in %s", dir)
	result := parsed{path: here.ImportPath, set: token.NewFileSet(), files: map[string]*ast.File{}}
	for _, name := range here.GoFiles {
		file, err := parser.ParseFile(result.set, filepath.Join(absolute, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		result.files[name] = file
	}
	result.imports = importer.ForCompiler(result.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(p.exports[path]) })
	return result
}

// check returns the error that the compiler would report with another source of the named file.
func (p parsed) check(name, source string) error {
	var files []*ast.File
	for n, file := range p.files {
		if n == name {
			broken, err := parser.ParseFile(p.set, name, source, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			file = broken
		}
		files = append(files, file)
	}
	_, err := (&types.Config{Importer: p.imports}).Check(p.path, p.set, files, nil)
	return err
}
