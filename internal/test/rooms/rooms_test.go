// Package rooms has the test of how the engine is divided: which package may import which, and how
// much state one struct may have. A package more, or an arrow more, is a decision: it is made here.
package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	root   = "../../.."
	engine = "github.com/kates-go/kates/internal/engine/"
	// boolsMost is how many booleans one struct may have. More of them are a state without a name.
	boolsMost = 3
)

// arrows are the packages of the engine, and which of the others each may import. Data flows from
// the first to the last. So no package imports one that stands behind it.
var arrows = []struct {
	room string
	from string
}{
	{"source", ""},
	{"plan", ""},
	{"audience", ""},
	{"intake", "source"},
	{"reflector", "source"},
	{"store", "source audience"},
	{"warm/files", ""},
	{"warm", "source intake reflector warm/files"},
	{"stream", "source audience intake reflector store warm"},
	{"streamset", "source audience intake reflector store warm stream"},
	{"query", "plan audience stream streamset"},
	{"refs", "audience query stream"},
	{"tables", ""},
	{"collect", "source stream streamset query refs tables"},
	{"lister", "streamset query collect tables"},
	{"agenda", ""},
	{"partition", "streamset query refs collect tables agenda"},
}

// sources calls f with each file of the engine that is no test, by the package that it is in.
func sources(t *testing.T, f func(room, name string, file *ast.File)) {
	at := filepath.Join(root, "internal", "engine")
	require.NoError(t, fs.WalkDir(os.DirFS(at), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(at, name), nil, 0)
		if err == nil {
			f(path.Dir(name), name, file)
		}
		return err
	}))
}

func TestNoPackageOfTheEngineImportsOneThatComesLater(t *testing.T) {
	allowed, seen := map[string][]string{}, map[string]bool{}
	for _, a := range arrows {
		for _, from := range strings.Fields(a.from) {
			_, before := allowed[from]
			assert.True(t, before, "%s: %s does not stand before it", a.room, from)
		}
		allowed[a.room] = strings.Fields(a.from)
	}
	used := map[string]bool{}
	sources(t, func(room, name string, file *ast.File) {
		seen[room] = true
		for _, one := range file.Imports {
			to, err := strconv.Unquote(one.Path.Value)
			require.NoError(t, err)
			if to, inside := strings.CutPrefix(to, engine); inside {
				used[room+" "+to] = true
				assert.True(t, slices.Contains(allowed[room], to), "%s imports %s", name, to)
			}
		}
	})
	for _, a := range arrows {
		assert.True(t, seen[a.room], "there is no package %s", a.room)
		for _, from := range strings.Fields(a.from) {
			assert.True(t, used[a.room+" "+from], "%s does not import %s any more: take it off the list", a.room, from)
		}
		delete(seen, a.room)
	}
	assert.Empty(t, seen, "packages that are not in the list")
}

func TestNoStructOfTheEngineHasAStateOfManyBooleans(t *testing.T) {
	sources(t, func(_, name string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			of, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			bools := 0
			for _, f := range of.Fields.List {
				if isBool(f.Type) {
					bools += max(1, len(f.Names))
				}
			}
			assert.LessOrEqual(t, bools, boolsMost, "%s: type %s", name, spec.Name.Name)
			return true
		})
	})
}

func isBool(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "bool"
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && x.Name == "atomic" && e.Sel.Name == "Bool"
	}
	return false
}
