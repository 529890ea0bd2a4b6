package rooms

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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unsafeFiles are the files that import unsafe, and why. A build with the tag kates_safe is without
// those that have a fallback.
var unsafeFiles = map[string]struct{ why, fallback string }{
	"internal/base/words/words.go":                   {"elements of a table without a call for each", "reflection; also if the check at the start fails"},
	"internal/client/wire/intern/intern.go":          {"equal strings and maps of decoded objects share memory", "they do not"},
	"internal/client/wire/intern/plan.go":            {"as intern.go", "as intern.go"},
	"internal/client/wire/parts/decode.go":           {"parts of objects that repeat are not decoded again", "the generated decoders"},
	"internal/client/wire/parts/plan.go":             {"as decode.go", "as decode.go"},
	"internal/client/wire/parts/table.go":            {"as decode.go", "as decode.go"},
	"internal/object/project/compile.go":             {"as direct.go", "as direct.go"},
	"internal/object/project/direct.go":              {"fields are decoded from protobuf without the object", "objects are decoded as a whole"},
	"internal/base/footprint/footprint.go":           {"texts that share memory count once: their address is compared", ""},
	"internal/object/function.go":                    {"closures are told apart by their variables", ""},
	"kates/katestest/internal/mutation/container.go": {"the memory of two slices is compared, in tests of users", ""},
}

const safe = "!kates_safe"

func TestUnsafeStandsInFewFilesEachWithItsReason(t *testing.T) {
	assert.LessOrEqual(t, len(unsafeFiles), 12)
	seen := map[string]bool{}
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil || !slices.ContainsFunc(file.Imports, func(one *ast.ImportSpec) bool { return one.Path.Value == `"unsafe"` }) {
			return err
		}
		seen[name] = true
		known, ok := unsafeFiles[name]
		assert.True(t, ok, "%s imports unsafe: give the reason here, or do without", name)
		tagged := slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
			return c.Pos() < file.Package && c.List[0].Text == "//go:build "+safe
		})
		assert.Equal(t, known.fallback != "", tagged, "%s: a file with a fallback, and no other, has the tag %s", name, safe)
		return nil
	}))
	for name := range unsafeFiles {
		assert.True(t, seen[name], "%s does not import unsafe any more: take it off the list", name)
	}
}
