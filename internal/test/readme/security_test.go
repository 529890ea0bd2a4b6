package readme

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// securityRow matches a row of the table of tests: the number, the folder and the test.
	securityRow = regexp.MustCompile("(?m)^\\| (\\d+) \\| [^|]+ \\| `([\\w/.-]+)` `((?:Test|Fuzz)\\w+)` \\|$")
	securityRef = regexp.MustCompile(`\[(\d+)\]`)
)

func TestEachPromiseOfSecurityHasItsTest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	require.NoError(t, err)
	promises, table, found := strings.Cut(string(text), "\n## Tests\n")
	require.True(t, found, "the table is gone")
	rows := securityRow.FindAllStringSubmatch(table, -1)
	assert.Len(t, rows, strings.Count(table, "\n| ")-1, "a row that has another form")
	var numbers []string
	for _, row := range rows {
		numbers = append(numbers, row[1])
		files, err := filepath.Glob(filepath.Join(root, row[2], "*_test.go"))
		require.NoError(t, err)
		assert.True(t, slices.ContainsFunc(files, func(name string) bool {
			code, err := os.ReadFile(name)
			require.NoError(t, err)
			return strings.Contains(string(code), "\nfunc "+row[3]+"(")
		}), "%s has no %s", row[2], row[3])
	}
	var named []string
	for _, ref := range securityRef.FindAllStringSubmatch(promises, -1) {
		named = append(named, ref[1])
	}
	slices.Sort(numbers)
	slices.Sort(named)
	assert.Equal(t, numbers, slices.Compact(named), "the numbers in the text, and those of the table")
	assert.Equal(t, numbers, slices.Compact(slices.Clone(numbers)), "a number twice")
}
