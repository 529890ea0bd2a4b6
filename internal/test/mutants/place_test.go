package mutants

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sources are the functions of the root module, and its tests.
type sources struct {
	functions []function
	packages  map[string]string   // by file
	tests     map[string][]string // the name of a test: folders of packages that have it
}

func newSources() sources {
	return sources{packages: map[string]string{}, tests: map[string][]string{}}
}

// function is a declaration in a file of a package.
type function struct {
	name     string // the folder of the package, the receiver and the name: "coherence.View.Advance"
	file     string
	from, to int // in the file
}

// tree reads the root module. No mutant is in another module, so that one build has them all.
var tree = sync.OnceValues(func() (sources, error) { return read(os.DirFS(root)) })

var declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

func read(dir fs.FS) (sources, error) {
	s := newSources()
	err := fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name == "." {
				return nil
			}
			if _, err := fs.Stat(dir, name+"/go.mod"); err == nil || entry.Name()[0] == '.' || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		return s.add(name, text)
	})
	return s, err
}

func (s *sources) add(name string, text []byte) error {
	dir := filepath.Dir(name)
	if strings.HasSuffix(name, "_test.go") {
		for _, found := range declaredTest.FindAllSubmatch(text, -1) {
			test := string(found[1])
			s.tests[test] = append(s.tests[test], dir)
		}
		return nil
	}
	if matches, err := build.Default.MatchFile(filepath.Join(root, dir), filepath.Base(name)); err == nil && !matches {
		return nil // for another system
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.packages[name] = file.Name.Name
	for _, d := range file.Decls {
		if decl, ok := d.(*ast.FuncDecl); ok {
			from, to := set.Position(decl.Pos()).Offset, set.Position(decl.End()).Offset
			s.functions = append(s.functions, function{dir + "." + nameOf(decl), name, from, to})
		}
	}
	return nil
}

// nameOf returns the name of a function after that of its receiver's type.
func nameOf(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	of := decl.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.ParenExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + decl.Name.Name
		}
	}
}

// function returns the index of the one of that name. The name may begin with the receiver, or with
// the package, or with folders above it.
func (s sources) function(name string) (int, error) {
	index := -1
	var names []string
	for i, f := range s.functions {
		if before, ok := strings.CutSuffix("/"+f.name, name); ok && strings.HasSuffix(strings.ReplaceAll(before, ".", "/"), "/") {
			index, names = i, append(names, f.name)
		}
	}
	if len(names) > 1 {
		return 0, fmt.Errorf("%s may be %s", name, strings.Join(names, " or "))
	}
	if index < 0 {
		return 0, fmt.Errorf("no function is called %s", name)
	}
	return index, nil
}

// test returns the folder of the package with that test, which may be a subtest. The hint is a
// folder, for tests of one name in several packages.
func (s sources) test(name, hint string) (string, error) {
	dirs := s.tests[strings.Split(name, "/")[0]]
	for _, dir := range dirs {
		if dir == hint || hint == "" && len(dirs) == 1 {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%s is in the packages %q, and not in one (%q)", name, dirs, hint)
}

func TestAFunctionIsFoundByAsMuchOfItsNameAsTellsItFromOthers(t *testing.T) {
	s := newSources()
	for file, text := range map[string]string{
		"a/view/a.go": "package view\nfunc (v *View[K]) Put() {}\nfunc Once() {}",
		"b/view/b.go": "package view\nfunc (v View) Put() {}\nfunc (s *set) Put() {}\nfunc Output() {}",
	} {
		require.NoError(t, s.add(file, []byte(text)))
	}
	for name, want := range map[string]string{
		"Once": "a/view.Once", "view.Once": "a/view.Once", "Output": "b/view.Output",
		"set.Put": "b/view.set.Put", "a/view.View.Put": "a/view.View.Put",
	} {
		got, err := s.function(name)
		assert.NoError(t, err)
		assert.Equal(t, want, s.functions[got].name)
	}
	_, err := s.function("put")
	assert.EqualError(t, err, "no function is called put")
	_, err = s.function("View.Put")
	assert.ErrorContains(t, err, "View.Put may be ")
}

func TestATestIsFoundByItsName(t *testing.T) {
	s := sources{tests: map[string][]string{"TestA": {"a"}, "TestB": {"a", "b"}}}
	for _, c := range []struct{ test, hint, want string }{
		{"TestA", "", "a"}, {"TestA/sub", "", "a"}, {"TestA", "b", ""}, {"TestB", "", ""}, {"TestB", "b", "b"}, {"TestC", "", ""},
	} {
		got, err := s.test(c.test, c.hint)
		assert.Equal(t, c.want, got)
		assert.Equal(t, c.want == "", err != nil, c.test)
	}
}
