package guard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every panic of a user's function becomes an error in the same way, with its stack.
func TestTheModuleRecoversHereAlone(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	var places []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			_, missing := os.Stat(filepath.Join(path, "go.mod"))
			nested := missing == nil && path != root
			if hidden := strings.HasPrefix(entry.Name(), ".") && path != root; hidden || nested {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil && callsRecover(parsed) {
			places = append(places, filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path))
		}
		return err
	}))
	assert.Equal(t, []string{"guard/guard.go"}, places)
}

func callsRecover(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, ok := call.Fun.(*ast.Ident)
			found = found || ok && name.Name == "recover"
		}
		return !found
	})
	return found
}
