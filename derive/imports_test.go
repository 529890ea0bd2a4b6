package derive_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const library = "github.com/kates-go/kates/"

// importsOf returns what the files of a folder import, those of tests apart.
func importsOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range parsed.Imports {
			all = append(all, strings.Trim(i.Path.Value, `"`))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A graph knows nothing of clients and streams.
func TestPackageDeriveImportsNothingOfTheLibraryButWhatIsBelowIt(t *testing.T) {
	for _, path := range importsOf(t, ".") {
		first, _, _ := strings.Cut(path, "/")
		switch {
		case !strings.Contains(first, "."): // the standard library
		case strings.HasPrefix(path, "k8s.io/apimachinery/"), strings.HasPrefix(path, "k8s.io/utils/"):
		default:
			assert.Contains(t, []string{library + "internal/base/guard", library + "internal/base/derived"}, path)
		}
	}
	assert.Empty(t, importsOf(t, "../internal/base/derived"))
}

// Programs import package derive. Of the library only what shows or tests graphs does.
func TestTheLibraryImportsPackageDeriveInTheKitThePageAndMetricsAlone(t *testing.T) {
	var who []string
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		if strings.HasPrefix(entry.Name(), ".") && path != ".." || slices.Contains([]string{"bench", "e2e", "examples", "tools"}, name) {
			return filepath.SkipDir
		}
		if slices.Contains(importsOf(t, path), library+"derive") {
			who = append(who, name)
		}
		return nil
	}))
	assert.Equal(t, []string{"kates/katestest", "kates/page", "kates/prometheus"}, who)
}
