package readme

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// supported matches a row of the table of supported versions.
var supported = regexp.MustCompile(`(?m)^\| (1\.\d+) \| [^|]* \| (v\S+) \| (v\S+) \|$`)

// TestTheTableOfVersionsIsWhatIsPinned: the tests run on what the document says, and on no other.
func TestTheTableOfVersionsIsWhatIsPinned(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "versions.md"))
	require.NoError(t, err)
	var documented, pinned [][]string
	for _, row := range supported.FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1:])
	}
	files, err := filepath.Glob(filepath.Join(root, "kates/katestest/apiserver/internal/binaries/pins/*/go.mod.txt"))
	require.NoError(t, err)
	required := func(file, module string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(text)
		require.NotNil(t, found, "%s requires no %s", file, module)
		return string(found[1])
	}
	for _, file := range files {
		pinned = append(pinned, []string{
			filepath.Base(filepath.Dir(file)), required(file, "k8s.io/kubernetes"), required(file, "go.etcd.io/etcd/server/v3"),
		})
	}
	require.NotEmpty(t, pinned)
	require.Equal(t, pinned, documented)
}
